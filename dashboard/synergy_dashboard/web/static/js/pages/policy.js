// The policy in force, and what the simulator reads of this cluster.

import { download } from "../api.js";
import { h } from "../dom.js";
import { duration, fullMoment, moment } from "../format.js";
import { card, empty, loading } from "../parts.js";
import { store } from "../store.js";

/** An object of JSON as YAML, which is how people wrote it. */
export function yaml(value, indent = "") {
  if (Array.isArray(value) && value.length) {
    return value.map((one) => {
      const told = yaml(one, `${indent}  `);
      return told.startsWith("\n") ? `\n${indent}- ${told.slice(indent.length + 3)}` : `\n${indent}- ${told}`;
    }).join("");
  }
  if (value !== null && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length) {
    return Object.entries(value).map(([key, one]) => {
      const told = yaml(one, `${indent}  `);
      return `\n${indent}${key}:${told.startsWith("\n") ? "" : " "}${told}`;
    }).join("");
  }
  return typeof value === "string" && /^[\w./-]*[A-Za-z][\w./-]*$/.test(value) ? value : JSON.stringify(value);
}

export default class PolicyPage {
  constructor() {
    this.now = card("In force", { span: 5 });
    this.spec = card("Spec", { span: 7, told: "what is not set has its default" });
    this.export = card("For the simulator", { span: 12 });
    this.state = h("span", { class: "told-small", role: "status" });
    const button = h("button", { type: "button", onclick: () => this.#download(button) }, "Download the trace of 7 days");
    this.export.body.append(h("p", {}, "A zip file with trace.csv, profiles.json and cluster.yaml, for kube-synergy simulate and kube-synergy compare."),
      h("p", { class: "next", style: { "margin-top": "10px" } }, button, this.state));
    this.body = h("div", { class: "grid" }, this.now.element, this.spec.element, this.export.element);
    this.wait = loading("the policy");
    this.element = h("div", {}, h("div", { class: "head" }, h("h1", {}, "Policy")), this.wait, this.body);
    this.body.hidden = true;
  }

  async #download(button) {
    button.disabled = true;
    this.state.textContent = "The server collects it…";
    try {
      await download(`export?since_s=${Math.round(store.now() - 7 * 86400)}`, "kube-synergy-export.zip");
      this.state.textContent = "Saved.";
    } catch (error) {
      this.state.textContent = `It failed: ${error.message}`;
    }
    button.disabled = false;
  }

  shown() {
    this.update();
  }

  update() {
    if (!store.cluster) return;
    this.wait.hidden = true;
    this.body.hidden = false;
    const { policy, recorded_since_s: since } = store.cluster;
    const signature = JSON.stringify([policy, since, store.me]);
    if (signature === this.of) return;
    this.of = signature;
    if (!policy) {
      this.now.body.replaceChildren(empty("No policy is in force", "The scheduler goes by the SchedulingPolicy named default; without one it uses its defaults."));
      this.spec.element.hidden = true;
      return;
    }
    this.spec.element.hidden = false;
    const { me } = store;
    const rows = [
      ["Policy", policy.name], ["Mechanism", policy.mechanism], ["Round", duration(policy.round_s)],
      ["This round ends", policy.round_ends_s ? h("time", { title: fullMoment(policy.round_ends_s) }, moment(policy.round_ends_s, store.now())) : "not known"],
      ["History since", since ? h("time", { title: fullMoment(since) }, moment(since, store.now())) : "nothing recorded yet"],
      ["You are", me?.user ?? "…"], ["You may see", me ? (me.everything ? "all namespaces" : me.namespaces.join(", ") || "no namespace with jobs") : "…"], ["Version", me?.version ?? "…"],
    ];
    this.now.body.replaceChildren(h("dl", { class: "facts" }, rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
    this.spec.body.replaceChildren(h("pre", { class: "spec", tabindex: "0", role: "group", "aria-label": "Spec as YAML" }, yaml(policy.spec).trim()));
  }
}
