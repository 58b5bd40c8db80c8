// Which jobs wait, in the policy's order, and what for.

import { h, setText } from "../dom.js";
import { count, duration, jobLink, number, percent, types, words } from "../format.js";
import { card, forecastNode, forecastText, input, jobName, loading, meter, select } from "../parts.js";
import { read, setFilters } from "../router.js";
import { store } from "../store.js";
import { Table } from "../table.js";

const name = (row) => `${row.namespace}/${row.job}`;

export default class QueuePage {
  constructor() {
    const { filters } = read();
    this.told = h("span", { class: "told" });
    this.reasons = h("div");
    this.typeBox = h("div");
    this.search = input("Name or namespace", filters.q ?? "", { type: "search", placeholder: "team-a/resnet", oninput: (q) => setFilters({ q, page: "" }, { typing: true }) });
    this.table = new Table({
      caption: "Jobs that wait", keyOf: name, link: (row) => jobLink(name(row)), empty: "No job waits with these filters.",
      columns: [
        { id: "position", label: "Position", num: true, text: (row) => (row.position === null ? "–" : number(row.position)), sort: (row) => row.position },
        { id: "job", label: "Job", head: true, text: name, node: (row) => jobName(name(row)), sort: name },
        { id: "gpus", label: "GPUs", num: true, text: (row) => number(row.gpus), sort: (row) => row.gpus },
        { id: "types", label: "GPU types", text: (row) => types(row.gpu_types) },
        { id: "reason", label: "Waits because", text: (row) => `${row.reason}: ${row.message}`, sort: (row) => row.reason,
          node: (row) => [h("div", { class: "once" }, words(row.reason)), h("div", { class: "told-small" }, row.message)] },
        { id: "waited", label: "Waited", num: true, text: (row) => duration(store.waited(row)), sort: (row) => store.waited(row) },
        { id: "steps", label: "Steps", num: true, text: (row) => (row.steps ? `${number(row.steps_done)} of ${number(row.steps)}` : "–"), sort: (row) => (row.steps ? row.steps_done / row.steps : 0),
          node: (row) => (row.steps ? [h("span", { title: `${number(row.steps_done)} of ${number(row.steps)}` }, percent(row.steps_done / row.steps)), meter(row.steps_done / row.steps, true)] : "–") },
        this.#forecast("start", "Starts"), this.#forecast("finish", "Ends"),
      ],
    });
    this.card = card("Scheduling queue");
    this.card.body.append(h("div", { class: "filters" }, this.search, this.reasons, this.typeBox), this.table.element);
    this.card.element.hidden = true;
    this.wait = loading("the queue");
    this.element = h("div", {}, h("div", { class: "head" }, h("h1", {}, "Queue"), this.told), this.wait, this.card.element);
  }

  #forecast(part, label) {
    const of = (row) => store.forecasts[name(row)];
    return {
      id: part, label, text: (row) => forecastText(of(row)?.[`${part}_s`], of(row)?.unknown, store.now()).join(" "),
      node: (row) => forecastNode(of(row)?.[`${part}_s`], of(row)?.unknown, store.now()), sort: (row) => of(row)?.[`${part}_s`].p50,
    };
  }

  shown() {
    this.update();
  }

  filters() {
    this.update();
  }

  tick() {
    store.refresh("queue", 60);
    this.update();
  }

  update() {
    if (!store.queue) return;
    this.wait.hidden = true;
    this.card.element.hidden = false;
    const { filters } = read();
    const all = [...store.waiting.values()];
    this.#choices(all, filters);
    const q = (filters.q ?? "").toLowerCase();
    const rows = all.filter((row) => (!filters.reason || row.reason === filters.reason)
      && (!filters.type || !row.gpu_types.length || row.gpu_types.includes(filters.type)) && (!q || name(row).toLowerCase().includes(q)));
    rows.sort((a, b) => (a.position ?? Infinity) - (b.position ?? Infinity) || b.waiting_s - a.waiting_s);
    this.table.update(rows);
    setText(this.card.note, rows.length === all.length ? "" : `${number(rows.length)} of ${count(all.length, "job")}`);
    const wanted = all.reduce((sum, row) => sum + row.gpus, 0);
    const hidden = store.queue.hidden ? `; ${number(store.queue.hidden)} more that you may not see` : "";
    setText(this.told, all.length ? `${count(all.length, "job")} wait for ${count(wanted, "GPU")}${hidden}` : `Nothing waits${hidden}`);
  }

  #choices(all, filters) {
    const reasons = [...new Set([...all.map((row) => row.reason), ...(filters.reason ? [filters.reason] : [])])].sort();
    const kinds = [...new Set(all.flatMap((row) => row.gpu_types))].sort();
    const signature = JSON.stringify([reasons, kinds, filters.reason, filters.type]);
    if (signature === this.choicesOf || this.reasons.contains(document.activeElement) || this.typeBox.contains(document.activeElement)) return;
    this.choicesOf = signature;
    const pick = (key) => (value) => setFilters({ [key]: value, page: "" });
    this.reasons.replaceChildren(select("Reason", filters.reason ?? "", [["", "All"], ...reasons.map((one) => [one, words(one)])], pick("reason")));
    this.typeBox.replaceChildren(select("GPU type", filters.type ?? "", [["", "All"], ...kinds.map((one) => [one, one])], pick("type")));
    const box = this.search.querySelector("input");
    if (box !== document.activeElement) box.value = filters.q ?? "";
  }
}
