// What would make a waiting job start: asked for by a button, because the cluster is planned again for each change.

import { get } from "./api.js";
import { h } from "./dom.js";
import { failure } from "./parts.js";

export class HelpPart {
  constructor(path, copy) {
    this.path = path;
    this.copy = copy;
    this.told = h("div", { class: "why-lines", role: "status" });
    this.button = h("button", { type: "button", onclick: () => this.#ask() }, "What would help?");
    this.element = h("div", { class: "why-lines" }, h("div", { class: "next" }, this.button), this.told);
  }

  async #ask() {
    this.button.disabled = true;
    this.told.replaceChildren(h("p", { class: "told-small" }, "The next round is planned again with other GPU types, less CPU and memory, fewer GPUs, sharing and more nodes."));
    try {
      this.#draw(await get(`${this.path}/help`));
    } catch (error) {
      this.told.replaceChildren(failure(error, () => this.#ask()));
    } finally {
      this.button.disabled = false;
    }
  }

  #draw({ planned, starts_anyway, remedies, complete }) {
    const line = (one) => h("li", {}, `${one.told[0].toUpperCase()}${one.told.slice(1)}: it would start on ${one.gets}.`, one.step ? h("div", { class: "next" }, h("code", {}, one.step), this.copy(one.step)) : "");
    const nothing = !planned ? "No plan considers the job now." : starts_anyway ? "It starts in the next round, as things are now." : "Nothing that was tried would make it start in the next round.";
    this.told.replaceChildren(remedies.length ? h("ul", {}, remedies.map(line)) : h("p", {}, nothing), complete ? "" : h("p", { class: "told-small" }, "Not all changes were tried: there was no time left."));
  }
}
