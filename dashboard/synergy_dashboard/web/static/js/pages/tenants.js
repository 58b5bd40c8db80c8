// What each tenant has, wants and has had.

import { get } from "../api.js";
import { h, setText } from "../dom.js";
import { count, gpus, number, ofTotal } from "../format.js";
import { card, choice, failure, loading, meter, tenantName } from "../parts.js";
import { read, setFilters } from "../router.js";
import { store } from "../store.js";
import { Table } from "../table.js";

const DAY = 86400;
const TIMES = [["1", "1 day"], ["7", "7 days"], ["30", "30 days"], ["90", "90 days"]];
const sum = (rows, part) => rows.reduce((total, row) => total + row[part], 0);

export default class TenantsPage {
  constructor() {
    this.told = h("span", { class: "told" });
    this.tools = h("div", { class: "tools" });
    const used = (part) => (one) => sum(one.usage, part);
    const amount = (id, label, of, text) => ({ id, label, num: true, sort: of, text: (one) => text(of(one)) });
    this.table = new Table({
      caption: "Tenants", keyOf: (one) => one.row.tenant, empty: "There is no tenant that you may see.", sorted: "-gpu_hours",
      columns: [
        { id: "tenant", label: "Tenant", head: true, text: (one) => one.row.tenant, node: (one) => tenantName(one.row.tenant), sort: (one) => one.row.tenant },
        { id: "share", label: "GPUs now", text: (one) => `${number(one.row.gpus_given)} (${ofTotal(one.row.gpus_given, this.total)})`, sort: (one) => one.row.gpus_given,
          node: (one) => [h("span", { class: "once" }, `${number(one.row.gpus_given)} (${ofTotal(one.row.gpus_given, this.total)})`), meter(this.total ? one.row.gpus_given / this.total : 0, true)] },
        { id: "guaranteed", label: "Guaranteed", text: (one) => one.guaranteed || "-", sort: (one) => one.guaranteed },
        { id: "borrowed", label: "Borrowed", text: (one) => one.borrowed || "-", sort: (one) => one.borrowed },
        amount("running", "Jobs running", (one) => one.row.running, number),
        amount("waiting", "Jobs waiting", (one) => one.row.waiting, number),
        amount("wanted", "GPUs wanted", (one) => one.row.gpus_wanted, number),
        amount("gpu_hours", "GPU-hours", used("gpu_hours"), number),
        amount("waited", "Job-hours waited", used("waiting_hours"), number),
        amount("gained", "GPU-hours saved", used("gained_gpu_hours"), number),
        amount("runs", "Runs", used("runs"), number),
        amount("preemptions", "Preemptions", used("preemptions"), number),
        { id: "cap", label: "Caps", text: (one) => this.#cap(one) },
      ],
    });
    this.list = card("Tenants", { tools: [this.tools] });
    this.list.body.append(this.table.element);
    this.spaces = new Table({
      name: "ns-", caption: "Use by namespace", keyOf: (one) => `${one.tenant} ${one.namespace}`, sorted: "-hours", size: 25,
      columns: [
        { id: "namespace", label: "Namespace", head: true, text: (one) => one.namespace, sort: (one) => one.namespace },
        { id: "tenant", label: "Tenant", text: (one) => one.tenant, node: (one) => tenantName(one.tenant), sort: (one) => one.tenant },
        amount("hours", "GPU-hours", (one) => one.gpu_hours, number), amount("waited", "Job-hours waited", (one) => one.waiting_hours, number),
        amount("gained", "GPU-hours saved", (one) => one.gained_gpu_hours, number), amount("runs", "Runs", (one) => one.runs, number),
        amount("preemptions", "Preemptions", (one) => one.preemptions, number),
      ],
    });
    this.byNamespace = card("Use by namespace", { told: "GPU-hours saved: what the same steps would have taken more at the GPU-proportional share" });
    this.byNamespace.body.append(this.spaces.element);
    this.content = h("div", { class: "grid", hidden: true }, this.list.element, this.byNamespace.element);
    this.wait = loading("the tenants");
    this.problem = h("div");
    this.element = h("div", {}, h("div", { class: "head" }, h("h1", {}, "Tenants"), this.told), this.wait, this.problem, this.content);
  }

  #cap(one) {
    const never = one.never_preempted_gpus === null ? "" : `${gpus(one.never_preempted_gpus)} never preempted`;
    const weight = one.max_weight === null ? "" : `weight ${one.max_weight}`;
    return [never, weight].filter(Boolean).join(", ") || "none";
  }

  shown() {
    this.filters(read());
  }

  filters({ filters }) {
    const days = TIMES.some(([key]) => key === filters.days) ? filters.days : "7";
    if (days !== this.days) this.#load(days);
    else this.#draw();
  }

  update() {
    if (!this.data) return;
    const rows = new Map(store.cluster?.tenants.map((row) => [row.tenant, row]));
    for (const one of this.data.tenants) one.row = rows.get(one.row.tenant) ?? one.row;
    this.#draw();
  }

  async #load(days) {
    this.days = days;
    this.tools.replaceChildren(choice("Use in the last", days, TIMES, (key) => setFilters({ days: key === "7" ? "" : key })));
    try {
      const data = await get(`tenants?since_s=${Math.round(store.now() - Number(days) * DAY)}`);
      if (this.gone || days !== this.days) return;
      this.data = data;
      this.problem.replaceChildren();
      this.wait.hidden = true;
      this.content.hidden = false;
      this.#draw();
    } catch (error) {
      if (this.gone) return;
      this.wait.hidden = true;
      this.content.hidden = true;
      this.problem.replaceChildren(failure(error, () => this.#load(days)));
    }
  }

  #draw() {
    if (!this.data) return;
    this.total = sum(store.cluster?.types ?? [], "gpus");
    this.table.update(this.data.tenants);
    this.spaces.update(this.data.tenants.flatMap((one) => one.usage));
    const hidden = this.data.hidden ? `, ${number(this.data.hidden)} more that you may not see` : "";
    setText(this.told, `${count(this.data.tenants.length, "tenant")}${hidden}`);
    setText(this.list.note, "GPUs and jobs are those of now; hours, runs and preemptions are of the time chosen");
  }

  remove() {
    this.gone = true;
  }
}
