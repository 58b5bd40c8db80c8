// Elements made and kept up to date without rebuilding them.

/** An element. Properties: class, hidden, dataset, style (custom properties too), on* listeners, else attributes. */
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/** Write a text only where it differs, so that nothing is laid out in vain. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Replace the children, unless `signature` says that they would be the same. */
export function fill(element, signature, make) {
  if (element.dataset.of === signature) return;
  element.dataset.of = signature;
  element.replaceChildren(...[make()].flat());
}

/** Bring `parent`'s children in line with `items` by key. `make(item)` gives a new child, `update(child, item)` fills it. */
export function keyed(parent, items, keyOf, make, update) {
  const before = parent.keyedChildren ?? new Map();
  const after = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const child = before.get(key) ?? make(item);
    before.delete(key);
    after.set(key, child);
    update(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of before.values()) child.remove();
  parent.keyedChildren = after;
}

/** Tell a screen reader. */
export function announce(text) {
  setText(document.getElementById("announce"), text);
}
