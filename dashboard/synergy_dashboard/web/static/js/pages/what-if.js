// Two futures side by side: as it is, and with a change. Nothing on the cluster changes.

import { post } from "../api.js";
import { announce, h, setText } from "../dom.js";
import { count, difference, duration, jobLink, percent } from "../format.js";
import { jobColors } from "../colors.js";
import { card, empty, failure, input, jobName, loading, select, swatch } from "../parts.js";
import { read, setFilters } from "../router.js";
import { store } from "../store.js";
import { Table } from "../table.js";

const POLICIES = ["fifo", "srtf", "las", "ftf", "2d-las", "2d-gittins", "sf", "srsf", "max-min-fairness", "max-min-fairness-water-filling", "finish-time-fairness", "hierarchical",
  "makespan", "max-throughput", "min-cost", "min-cost-slo", "proportional", "isolated", "sjf", "allox", "gandiva", "gavel-fifo"];
const MECHANISMS = ["proportional", "greedy", "tune", "opt", "drf", "tetris"];
const FIELDS = ["policy", "mechanism", "round", "add", "remove", "drain", "set", "name", "namespace", "gpus", "types", "steps", "job"];
const list = (text) => text.split(/[\s,]+/).filter(Boolean);

/** A100:2, T4:1 as an object. Throws an error that names what is wrong. */
export function counted(text) {
  return Object.fromEntries(list(text).map((one) => {
    const [, name, many] = /^(.+):(\d+)$/.exec(one) ?? [];
    if (!name) throw new Error(`Add nodes: write NAME:COUNT, not ${one}`);
    return [name, Number(many)];
  }));
}

/** The request that the fields say. */
export function requestOf(fields) {
  const asked = {};
  if (fields.policy) asked.policy = fields.policy;
  if (fields.mechanism) asked.mechanism = fields.mechanism;
  if (fields.round) asked.round_s = Number(fields.round);
  if (fields.add) asked.add_nodes = counted(fields.add);
  if (fields.remove) asked.remove_nodes = list(fields.remove);
  if (fields.drain) asked.drain_nodes = list(fields.drain);
  if (fields.set) {
    asked.options = Object.fromEntries(list(fields.set).map((one) => {
      const at = one.indexOf("=");
      if (at < 1) throw new Error(`Further options: write KEY=VALUE, not ${one}`);
      return [one.slice(0, at), one.slice(at + 1)];
    }));
  }
  if (fields.job) {
    try {
      asked.add_job = JSON.parse(fields.job);
    } catch (error) {
      throw new Error(`Manifest: it is not JSON (${error.message})`);
    }
  } else if (fields.name || fields.gpus) asked.add_job = manifest(fields);
  return asked;
}

export function manifest(fields) {
  const spec = { gpus: Number(fields.gpus) || 1, steps: Number(fields.steps) || 100000, profile: { mode: "Skip" },
    template: { spec: { containers: [{ name: "train", image: "what-if", command: ["true"] }] } } };
  if (fields.types) spec.gpuTypes = list(fields.types);
  return { apiVersion: "kube-synergy.dev/v1alpha1", kind: "TrainingJob", metadata: { name: fields.name || "added", namespace: fields.namespace || "default" }, spec };
}

export default class WhatIfPage {
  constructor() {
    const { filters } = read();
    const field = (label, key, rest = {}) => input(label, filters[key] ?? "", { ...rest, oninput: (value) => setFilters({ [key]: value }, { typing: true }) });
    const pick = (label, key, options) => select(label, filters[key] ?? "", [["", "as it is"], ...options.map((one) => [one, one])], (value) => setFilters({ [key]: value }, { typing: true }));
    const text = h("textarea", { id: "manifest", spellcheck: "false", oninput: (event) => setFilters({ job: event.target.value }, { typing: true }) });
    text.value = filters.job ?? "";
    this.text = text;
    this.nodes = h("datalist", { id: "node-names" });
    this.try = h("button", { class: "first", type: "submit" }, "Try it");
    this.form = h("form", { class: "what-if", onsubmit: (event) => {
      event.preventDefault();
      this.#ask();
    } },
    pick("Policy", "policy", POLICIES), pick("Mechanism", "mechanism", MECHANISMS), field("Round length, seconds", "round", { type: "number", min: "1" }),
    field("Add nodes (pool, type or node: count)", "add", { placeholder: "A100:2" }), field("Remove nodes", "remove", { placeholder: "node names", list: "node-names" }),
    field("Drain nodes", "drain", { placeholder: "node names", list: "node-names" }), field("Further options", "set", { placeholder: "key=value" }), this.nodes,
    h("fieldset", {}, h("legend", {}, "Add a job"), h("div", {},
      field("Name", "name", { placeholder: "none" }), field("Namespace", "namespace", { placeholder: "default" }), field("GPUs", "gpus", { type: "number", min: "1", placeholder: "1" }),
      field("GPU types", "types", { placeholder: "any" }), field("Steps", "steps", { type: "number", min: "1", placeholder: "100000" })),
    h("details", { open: Boolean(filters.job), style: { "margin-top": "10px" } }, h("summary", {}, "Or a whole manifest"),
      h("div", { class: "field wide", style: { "margin-top": "8px" } }, h("label", { for: "manifest" }, "TrainingJob as JSON; it replaces the fields above"), text))),
    h("div", { class: "next wide" }, this.try, h("button", { type: "button", onclick: () => this.#clear() }, "Clear"), h("span", { class: "told-small" }, "Nothing on the cluster changes.")));
    this.change = card("Change");
    this.change.body.append(this.form);
    this.result = card("Answer");
    this.result.element.hidden = true;
    this.table = this.#table();
    this.element = h("div", {}, h("div", { class: "head" }, h("h1", {}, "What if"), h("span", { class: "told" }, "Try a change in the simulator, from the cluster as it is now")),
      h("div", { class: "grid" }, this.change.element, this.result.element));
  }

  #table() {
    const now = () => store.now();
    const away = (at) => (at === null ? "–" : at <= now() ? "now" : `in ${duration(at - now())}`);
    const change = ([before, after]) => (before === null || after === null ? null : after - before);
    const pair = (id, label) => [
      { id, label: `${label}, as it is`, num: true, text: (one) => away(one[`${id}_s`][0]), sort: (one) => one[`${id}_s`][0] },
      { id: `${id}-if`, label: `${label}, with the change`, num: true, text: (one) => away(one[`${id}_s`][1]), sort: (one) => one[`${id}_s`][1] },
      { id: `${id}-by`, label: "Difference", num: true, sort: (one) => change(one[`${id}_s`]), text: (one) => this.#by(change(one[`${id}_s`])),
        node: (one) => this.#colored(change(one[`${id}_s`])) },
    ];
    return new Table({
      name: "if-", caption: "Jobs in both futures", keyOf: (one) => one.job, link: (one) => (store.jobs.has(one.job) || store.waiting.has(one.job) ? jobLink(one.job) : undefined), size: 25, sorted: "",
      columns: [{ id: "job", label: "Job", head: true, text: (one) => one.job, node: (one) => (store.jobs.has(one.job) || store.waiting.has(one.job) ? jobName(one.job) : [swatch(jobColors.of(one.job)), `${one.job} (added)`]), sort: (one) => one.job }, ...pair("start", "Starts"), ...pair("finish", "Ends")],
    });
  }

  #by(change) {
    return change === null ? "–" : Math.abs(change) < 1 ? "same" : difference(change);
  }

  #colored(change) {
    const told = this.#by(change);
    if (change === null || Math.abs(change) < 1) return h("span", { class: "told-small" }, told);
    return h("span", { class: change < 0 ? "better" : "worse" }, `${told} ${change < 0 ? "sooner" : "later"}`.replace(/^[−+]/, ""));
  }

  shown() {
    this.update();
  }

  update() {
    const names = [...store.nodes.keys()].slice(0, 300);
    if (names.length !== this.nodes.childElementCount) this.nodes.replaceChildren(...names.map((name) => h("option", { value: name })));
  }

  #clear() {
    setFilters(Object.fromEntries(FIELDS.map((key) => [key, ""])));
    this.form.reset();
    for (const box of this.form.querySelectorAll("input, textarea")) box.value = "";
    for (const box of this.form.querySelectorAll("select")) box.value = "";
    this.result.element.hidden = true;
  }

  async #ask() {
    this.result.element.hidden = false;
    this.try.disabled = true;
    this.result.body.replaceChildren(loading("both futures"));
    setText(this.result.note, "");
    try {
      this.answer = await post("what-if", requestOf(read().filters));
      if (!this.gone) this.#show();
    } catch (error) {
      const own = !("status" in error);
      this.result.body.replaceChildren(own ? h("p", { class: "state bad", role: "alert" }, h("strong", {}, "The change has an error"), error.message) : failure(error));
    } finally {
      this.try.disabled = false;
    }
  }

  #show() {
    const { as_is: before, what_if: after, jobs, seconds } = this.answer;
    setText(this.result.note, `simulated in ${seconds.toFixed(1)} s`);
    const span = (value) => (value === null ? "–" : value < 36000 ? duration(value) : `${(value / 3600).toFixed(1)} h`);
    const part = (value) => (value === null ? "–" : percent(value));
    const row = (name, key, text, lowerIsBetter) => {
      const [old, own] = [before[key], after[key]];
      const change = old === null || own === null ? null : own - old;
      const told = change === null ? "–" : lowerIsBetter ? this.#by(change) : `${change < 0 ? "−" : "+"}${(100 * Math.abs(change)).toFixed(1)} points`;
      const tone = change === null || change === 0 ? "" : (change < 0) === lowerIsBetter ? "better" : "worse";
      return h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "num" }, text(old)), h("td", { class: "num" }, text(own)), h("td", { class: `num ${tone}` }, told));
    };
    const head = (text, num) => h("th", { scope: "col", class: num ? "num" : null }, text);
    const totals = h("table", { style: { "max-width": "640px", "margin-bottom": "18px" } }, h("caption", { class: "unseen" }, "Both futures in sum"),
      h("thead", {}, h("tr", {}, head("In sum"), head("As it is", 1), head("With the change", 1), head("Difference", 1))),
      h("tbody", {}, row("Mean job completion time", "avg_jct_s", span, true), row("Until the last job ends", "makespan_s", span, true), row("GPUs in use", "gpu_utilization", part, false)));
    this.result.body.replaceChildren(h("div", { class: "scroll" }, totals), jobs.length ? this.table.element : empty("No jobs", "There is no job to forecast."));
    jobs.sort((a, b) => (b.start_s[0] === null && b.finish_s[0] === null) - (a.start_s[0] === null && a.finish_s[0] === null));
    this.table.update(jobs);
    announce(`Done: ${count(jobs.length, "job")}`);
  }

  filters() {
    if (this.answer) this.table.update(this.answer.jobs);
  }

  remove() {
    this.gone = true;
  }
}
