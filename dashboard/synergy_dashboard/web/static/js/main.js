// Begins the page: sign-in, the shell, and the pages by their address.

import { ApiError, get, takeToken, token } from "./api.js";
import { announce, h, setText } from "./dom.js";
import { duration } from "./format.js";
import { failure, loading } from "./parts.js";
import { read } from "./router.js";
import { store } from "./store.js";

const PAGES = [
  ["cluster", "Cluster"], ["queue", "Queue"], ["rounds", "Rounds"], ["tenants", "Tenants"], ["what-if", "What-if"], ["policy", "Policy"],
];
const TITLES = { ...Object.fromEntries(PAGES), job: "Job" };
const main = document.getElementById("main");
let shown = null;
let view = null;
let turn = 0;
let attempt = 0;
let failed = false;

function theme() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const chosen = localStorage.getItem("theme");
    const now = chosen ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = now;
    setText(button, now === "dark" ? "Light" : "Dark");
    button.setAttribute("aria-label", `Use ${now === "dark" ? "light" : "dark"} colours`);
    dispatchEvent(new Event("theme"));
  };
  button.addEventListener("click", () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    if (next === (system.matches ? "dark" : "light")) localStorage.removeItem("theme");
    else localStorage.setItem("theme", next);
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

function navigation() {
  document.getElementById("nav").replaceChildren(...PAGES.map(([page, title]) =>
    h("li", {}, h("a", { href: `#/${page}`, dataset: { page } }, title))));
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  document.getElementById("sign-out").addEventListener("click", () => {
    token.set("");
    store.stop();
    signIn("You are signed out.");
  });
}

function liveState() {
  const box = document.getElementById("live");
  const { state, retry_s } = store.live;
  const told = { live: "Live", connecting: "Connecting", down: "Not live" }[state];
  box.dataset.state = state;
  box.title = state === "down" ? `The page may be out of date. It reconnects in ${duration(Math.max(1, retry_s))}.` : "";
  setText(box.lastElementChild, told);
}

function leave() {
  view?.remove?.();
  view = null;
  shown = null;
}

async function show() {
  const route = read();
  const key = [route.page, ...route.rest].join("/");
  if (key === shown && view) return void view.filters?.(route);
  turn += 1;
  const mine = turn;
  leave();
  shown = key;
  const title = TITLES[route.page];
  for (const link of document.querySelectorAll("#nav a")) {
    const here = link.dataset.page === route.page || (route.page === "job" && link.dataset.page === "queue");
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!title) {
    main.replaceChildren(failure(new ApiError(404, "There is no page at this address.")));
    return;
  }
  document.title = `${route.page === "job" ? route.rest[1] : title} · kube-synergy`;
  main.replaceChildren(loading(title));
  try {
    const { default: Page } = await import(`./pages/${route.page}.js`);
    if (mine !== turn) return;
    view = new Page(route);
    main.replaceChildren(view.element);
    view.shown?.();
    firstContent();
  } catch (error) {
    if (mine === turn) main.replaceChildren(failure(error, () => location.reload()));
  }
}

function refused(error, mine) {
  if (mine !== attempt) return;
  if (error.status === 401) {
    attempt += 1;
    store.stop();
    signIn(token.get() ? "The server does not accept this token." : "");
  } else if (!store.cluster) {
    failed = true;
    leave();
    turn += 1;
    main.replaceChildren(failure(error, () => location.reload()));
  }
}

function signIn(told) {
  leave();
  turn += 1;
  const field = h("input", { id: "token", type: "password", autocomplete: "off", required: true, "aria-describedby": "token-told" });
  const submit = (event) => {
    event.preventDefault();
    token.set(field.value.trim());
    begin();
  };
  main.replaceChildren(h("section", { class: "card sign-in", "aria-labelledby": "sign-in" },
    h("form", { onsubmit: submit },
      h("h1", { id: "sign-in" }, "Sign in"),
      told ? h("p", { role: "alert" }, told) : null,
      h("div", { class: "field" }, h("label", { for: "token" }, "Token"), field),
      h("p", { id: "token-told", class: "told-small" },
        "The token of a user or service account of the cluster. It stays in this tab until you close it. ",
        "Get one with ", h("code", {}, "kubectl create token NAME"), ", or let ", h("code", {}, "kubectl synergy dashboard"), " open this page."),
      h("button", { class: "first", type: "submit" }, "Sign in"))));
  field.focus();
}

function begin() {
  attempt += 1;
  const mine = attempt;
  document.getElementById("sign-out").hidden = !token.get();
  get("me").then((me) => {
    store.me = me;
    setText(document.getElementById("user"), me.user);
    document.getElementById("user").title = `${me.user}, version ${me.version}`;
    store.dispatchEvent(new CustomEvent("me"));
  }, (error) => refused(error, mine));
  const first = store.start();
  show();
  first.catch((error) => refused(error, mine));
}

/** Note when the first page with data is on the screen, and how long each change took, for those who measure. */
function firstContent() {
  if (!view || !store.cluster || performance.getEntriesByName("first-content").length) return;
  requestAnimationFrame(() => setTimeout(() => performance.mark("first-content")));
}

function measure() {
  if (!performance.getEntriesByName("change", "mark").length) return;
  performance.measure("update", "change");
  performance.clearMarks("change");
  const all = performance.getEntriesByName("update", "measure");
  if (all.length > 500) performance.clearMeasures("update");
}

/** Draw once for all that came since the last frame. */
function redraw() {
  let waits = false;
  const draw = (measured) => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      try {
        view?.update?.();
      } catch (error) {
        leave();
        main.replaceChildren(failure(error, () => location.reload()));
      }
      firstContent();
      if (measured) setTimeout(measure);
    });
  };
  store.addEventListener("loaded", () => {
    if (failed) show();
    failed = false;
    draw(false);
  });
  store.addEventListener("change", () => draw(true));
  store.addEventListener("live", liveState);
  store.addEventListener("live", () => {
    if (store.live.state === "down") announce("Updates have stopped. The page is reconnecting.");
  });
  setInterval(() => {
    if (!document.hidden) view?.tick?.();
  }, 1000);
}

takeToken();
theme();
navigation();
redraw();
addEventListener("hashchange", () => {
  if (/^#token=/.test(location.hash)) {
    takeToken();
    begin();
  } else show();
});
addEventListener("popstate", () => view && show());
addEventListener("filters", () => view?.filters?.(read()));
begin();
