// Parts that several pages show: cards, states, figures, links to jobs, forecasts.

import { ApiError } from "./api.js";
import { jobColors, tenantColors } from "./colors.js";
import { h } from "./dom.js";
import { duration, fullMoment, jobLink, moment, shortName } from "./format.js";

let serial = 0;

/** A card with a heading. `body` is where its content goes. */
export function card(title, { span = 12, told = "", tools = [], cls = "" } = {}) {
  serial += 1;
  const heading = h("h2", { id: `card-${serial}` }, title);
  const note = h("span", { class: "told" }, told);
  const body = h("div");
  const element = h("section", { class: `card span-${span} ${cls}`.trim(), "aria-labelledby": heading.id },
    h("header", {}, heading, note, tools.length ? h("div", { class: "tools" }, tools) : null), body);
  return { element, body, heading, note };
}

export const loading = (what) =>
  h("div", { class: "bones", role: "status" }, h("i"), h("i"), h("i"), h("span", { class: "unseen" }, `Loading ${what}`));

export const empty = (title, told = "") => h("p", { class: "state" }, h("strong", {}, title), told);

const HEADINGS = {
  0: "No connection",
  401: "The server does not accept your token",
  403: "You are not allowed to see this",
  404: "Nothing has this name",
  422: "The request has an error",
  503: "The dashboard is not ready",
};

export function failure(error, again) {
  const known = error instanceof ApiError;
  if (!known) console.error(error);
  const heading = known ? (HEADINGS[error.status] ?? `The server answered ${error.status}`) : "This page has an error";
  return h("div", { class: "state bad page", role: "alert" },
    h("strong", {}, heading), error.message,
    again && error.status !== 403 ? h("div", {}, h("button", { type: "button", onclick: again }, "Try again")) : null);
}

export const swatch = (color) => h("span", { class: "swatch", "aria-hidden": "true", style: { "--swatch": color } });
export const jobName = (name, { short = false } = {}) =>
  h("a", { href: jobLink(name), class: "once", title: name }, swatch(jobColors.of(name)), short ? shortName(name) : name);
export const tenantName = (name) => h("span", { class: "once" }, swatch(tenantColors.of(name)), name);
export const time = (seconds, now) =>
  h("time", { datetime: new Date(1000 * seconds).toISOString(), title: fullMoment(seconds) }, moment(seconds, now));

export const meter = (part, thin = false) =>
  h("span", { class: thin ? "meter thin" : "meter", "aria-hidden": "true" },
    h("i", { style: { width: `${Math.min(100, Math.max(0, 100 * part))}%` } }));

export const setMeter = (element, part) => {
  element.firstElementChild.style.width = `${Math.min(100, Math.max(0, 100 * part))}%`;
};

/** A figure of the top row. `update(value, unit, note)` fills it. */
export function figure(label) {
  const value = h("span");
  const unit = h("small");
  const note = h("div", { class: "note" });
  const element = h("div", { class: "figure" }, h("dt", {}, label), h("dd", {}, h("div", { class: "value" }, value, " ", unit), note));
  const put = (node, text) => {
    if (node.textContent !== text) node.textContent = text;
  };
  return {
    element,
    update(text, ofUnit = "", told = "") {
      put(value, text);
      put(unit, ofUnit);
      put(note, told);
    },
  };
}

const UNKNOWN = {
  NoSteps: "unknown: the steps of an epoch are not known yet",
  NotProfiled: "unknown until it is profiled",
  NeverFits: "never: it fits on no node",
};

/** A forecast time in words: how far away its median is, and the range that holds eight of ten. */
export function forecastText(quantiles, unknown, now) {
  if (unknown) return [UNKNOWN[unknown] ?? unknown, ""];
  if (!quantiles) return ["–", ""];
  const { p10, p50, p90 } = quantiles;
  const far = (at) => (at === null ? "beyond the horizon" : at <= now + 1 ? "now" : duration(at - now));
  const away = (at) => (at > now + 1 ? `in ${far(at)}` : far(at));
  if (p50 === null && p10 === null) return ["beyond the horizon", ""];
  const range = p10 === p90 ? "" : `${far(p10)} to ${far(p90)}`;
  return [p50 === null ? "beyond the horizon" : away(p50), range];
}

export function forecastNode(quantiles, unknown, now) {
  const [median, range] = forecastText(quantiles, unknown, now);
  return h("span", { class: "range" }, median, range ? h("span", { class: "told-small" }, range) : null);
}

export const select = (label, value, options, onchange) => {
  serial += 1;
  const list = h("select", { id: `field-${serial}`, onchange: (event) => onchange(event.target.value) },
    options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
  return h("div", { class: "field" }, h("label", { for: list.id }, label), list);
};

export const input = (label, value, { oninput = () => {}, ...rest } = {}) => {
  serial += 1;
  const box = h("input", { id: `field-${serial}`, value, autocomplete: "off", spellcheck: "false", ...rest,
    oninput: (event) => oninput(event.target.value) });
  return h("div", { class: "field" }, h("label", { for: box.id }, label), box);
};

/** Buttons of which one is pressed. */
export const choice = (label, value, options, onchange) => {
  const buttons = options.map(([key, text]) =>
    h("button", { type: "button", "aria-pressed": String(key === value), onclick: () => {
      for (const one of buttons) one.setAttribute("aria-pressed", String(one.dataset.key === key));
      onchange(key);
    }, dataset: { key } }, text));
  return h("div", { class: "pair", role: "group", "aria-label": label }, buttons);
};

/** A plain table in a fold: what a chart shows, for those who do not see it. */
export function alternative(caption, head, rows) {
  const holder = h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption });
  const fold = h("details", { class: "alt" }, h("summary", {}, "Show as a table"), holder);
  const draw = () => {
    if (!fold.open) return;
    const lines = rows().slice(0, 1000);
    holder.replaceChildren(h("table", {}, h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, head.map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, lines.map(([first, ...rest]) =>
        h("tr", {}, h("th", { scope: "row" }, first), rest.map((one) => h("td", {}, String(one))))))));
  };
  fold.addEventListener("toggle", draw);
  return { element: fold, draw };
}
