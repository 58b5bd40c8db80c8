// A colour for each job and each tenant, the same on all pages. Okabe and Ito's hues, each in three lightnesses.

const HUES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b3a600"];

function mixed(hex, other, part) {
  const read = (text, at) => parseInt(text.slice(at, at + 2), 16);
  const channel = (at) => Math.round(read(hex, at) * (1 - part) + read(other, at) * part);
  return `#${[1, 3, 5].map((at) => channel(at).toString(16).padStart(2, "0")).join("")}`;
}

export const PALETTE = [
  ...HUES,
  ...HUES.map((hue) => mixed(hue, "#10202e", 0.38)),
  ...HUES.map((hue) => mixed(hue, "#ffffff", 0.42)),
];

function hash(name) {
  let value = 2166136261;
  for (let at = 0; at < name.length; at += 1) value = Math.imul(value ^ name.charCodeAt(at), 16777619);
  return value >>> 0;
}

/** Gives each name the colour of its hash, or the next one that fewer names have. */
class Colors {
  constructor(kind) {
    this.kept = `colours of ${kind}`;
    this.places = new Map();
    this.uses = new Array(PALETTE.length).fill(0);
    for (const [name, place] of JSON.parse(sessionStorage.getItem(this.kept) ?? "[]")) this.#put(name, place);
  }

  #put(name, place) {
    this.places.set(name, place);
    this.uses[place] += 1;
  }

  of(name) {
    let place = this.places.get(name);
    if (place === undefined) {
      const least = Math.min(...this.uses);
      place = hash(name) % PALETTE.length;
      while (this.uses[place] > least) place = (place + 1) % PALETTE.length;
      this.#put(name, place);
    }
    return PALETTE[place];
  }

  /** Colours for names in their order, so that the same names get the same colours, and kept for a reload. */
  know(names) {
    for (const name of [...names].sort()) this.of(name);
    const some = [...this.places].slice(-2000);
    sessionStorage.setItem(this.kept, JSON.stringify(some));
  }
}

export const jobColors = new Colors("jobs");
export const tenantColors = new Colors("tenants");
