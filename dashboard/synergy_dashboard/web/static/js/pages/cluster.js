// Is my cluster well used, and what waits for what?

import { tip, Chart } from "../charts.js";
import { h, keyed, setText } from "../dom.js";
import { count, cpus, duration, gib, gpus, jobLink, moment, number, ofTotal, words } from "../format.js";
import { NodeGrid } from "../node-grid.js";
import { tenantColors } from "../colors.js";
import { card, empty, figure, jobName, loading, meter, select, setMeter, swatch } from "../parts.js";
import { read, setFilters } from "../router.js";
import { store } from "../store.js";
import { Table } from "../table.js";

const sum = (rows, part) => rows.reduce((total, row) => total + row[part], 0);

export default class ClusterPage {
  constructor() {
    this.figures = Object.fromEntries([
      ["gpus", "GPUs given"], ["running", "Jobs that run"], ["waiting", "Jobs that wait"], ["longest", "Longest wait"], ["round", "Round ends in"],
    ].map(([name, label]) => [name, figure(label)]));
    this.told = h("span", { class: "told" });
    this.notice = h("p", { class: "notice", hidden: true });
    this.types = card("GPUs by type", { span: 4 });
    this.use = card("Use over the last day", { span: 4 });
    this.waits = card("What jobs wait for", { span: 4 });
    this.typeFilter = h("div");
    this.grid = new NodeGrid();
    this.nodes = card("GPUs by node", { tools: [this.typeFilter] });
    this.chart = new Chart({
      label: "GPUs given and wanted over the last day", height: 206, option: (style) => this.#useOption(style),
      told: () => this.#useTold(), head: ["Time", "GPUs", "Given", "Wanted by waiting jobs", "Jobs waiting"], rows: () => this.#moments().map((one) => [moment(one.at_s, store.now()), one.gpus, one.given, one.wanted, one.waiting]),
    });
    this.table = new Table({
      name: "node-", caption: "Nodes", size: 25, keyOf: (row) => row.node, empty: "There is no node with GPUs.",
      columns: [
        { id: "node", label: "Node", head: true, text: (row) => row.node, sort: (row) => row.node },
        { id: "type", label: "GPU type", text: (row) => row.gpu_type, sort: (row) => row.gpu_type },
        { id: "given", label: "GPUs given", num: true, text: (row) => `${row.gpus_given} of ${row.gpus}`, sort: (row) => row.gpus_given },
        { id: "cpu", label: "CPU given", num: true, text: (row) => `${cpus(row.cpu_millis_given)} of ${cpus(row.cpu_millis)}`, sort: (row) => row.cpu_millis_given },
        { id: "memory", label: "Memory given", num: true, text: (row) => `${gib(row.memory_bytes_given)} of ${gib(row.memory_bytes)}`, sort: (row) => row.memory_bytes_given },
        { id: "open", label: "New work", text: (row) => (row.open_to_new ? "open" : "not open"), sort: (row) => Number(row.open_to_new) },
        { id: "jobs", label: "Jobs", cls: "wide", text: (row) => [...new Set(row.jobs)].join(" "), node: (row) => h("span", { class: "inline-list" }, [...new Set(row.jobs)].map((name) => jobName(name))) },
      ],
    });
    const fold = h("details", { class: "alt" }, h("summary", {}, "Show nodes as a table"), this.table.element);
    fold.addEventListener("toggle", () => this.update());
    this.fold = fold;
    this.typeList = h("ul", { class: "types" });
    this.reasonList = h("ul", { class: "reasons" });
    this.tenantBar = h("div", { class: "stack", "aria-hidden": "true" });
    this.tenantKey = h("ul", { class: "inline-list told-small" });
    this.types.body.append(this.typeList, h("h3", { class: "sub" }, "Given to tenants"), this.tenantBar, this.tenantKey);
    this.waits.body.append(this.reasonList);
    this.use.body.append(this.chart.element);
    this.nodes.body.append(this.#key(), h("div", { style: { height: "10px" } }), this.grid.element, fold);
    this.content = h("div", { hidden: true },
      h("dl", { class: "figures" }, Object.values(this.figures).map((one) => one.element)), this.notice,
      h("div", { class: "grid" }, this.types.element, this.waits.element, this.use.element, this.nodes.element));
    this.wait = loading("the cluster");
    this.element = h("div", {}, h("div", { class: "head" }, h("h1", {}, "Cluster"), this.told), this.wait, this.content);
  }

  #key() {
    const entry = (name, text) => h("span", {}, h("i", { class: name }), text);
    return h("p", { class: "key" }, h("span", {}, "A cell is a GPU in its job's colour:"), entry("k-free", "free"), entry("k-shared", "shared by two jobs"),
      entry("k-hidden", "given to a job that you may not see"), entry("k-closed", "node not open to new work"));
  }

  shown() {
    this.update();
  }

  filters() {
    this.update();
  }

  tick() {
    if (!store.cluster) return;
    store.refresh("cluster", 300);
    this.#round();
    this.#longest();
  }

  update() {
    const { cluster } = store;
    if (!cluster) return;
    this.wait.hidden = true;
    this.content.hidden = false;
    this.#figures();
    this.#types(cluster.types);
    this.#tenants();
    this.#reasons();
    this.#grid();
    if (this.useOf !== cluster.use) {
      this.useOf = cluster.use;
      this.chart.draw();
    }
  }

  #figures() {
    const { cluster } = store;
    const [total, given] = [sum(cluster.types, "gpus"), sum(cluster.types, "gpus_given")];
    const waiting = store.waitingCount;
    const wanted = sum(cluster.tenants, "gpus_wanted");
    this.figures.gpus.update(ofTotal(given, total), "", `${number(given)} of ${gpus(total)}, ${number(Math.max(0, total - given))} free`);
    this.figures.running.update(number(store.jobs.size), "", `of ${count(cluster.tenants.filter((one) => one.running).length, "tenant")}`);
    this.figures.waiting.update(number(waiting), "", wanted ? `they want ${gpus(wanted)}` : "nothing waits");
    this.#longest();
    this.#round();
    const { policy } = cluster;
    setText(this.told, policy ? `Policy ${policy.name}, mechanism ${policy.mechanism}, rounds of ${duration(policy.round_s)}` : "No SchedulingPolicy is in force");
    this.notice.hidden = cluster.hidden === 0;
    setText(this.notice, `${count(cluster.hidden, "job")} in namespaces that you may not see. Their GPUs count, their names are not shown.`);
  }

  #longest() {
    let most = null;
    for (const row of store.waiting.values()) if (!most || store.waited(row) > store.waited(most)) most = row;
    this.figures.longest.update(most ? duration(store.waited(most)) : store.queue ? "none" : "…", "", most ? `${most.namespace}/${most.job}` : "");
  }

  #round() {
    const { policy } = store.cluster;
    const left = policy?.round_ends_s ? policy.round_ends_s - store.now() : null;
    this.figures.round.update(left === null ? "–" : left > 0 ? duration(left) : "now", "", policy ? `rounds of ${duration(policy.round_s)}` : "no policy");
  }

  #types(types) {
    keyed(this.typeList, types, (one) => one.gpu_type, (one) => {
      const parts = { name: h("b", {}, one.gpu_type), share: h("span"), bar: meter(0), told: h("span", { class: "told-small" }) };
      return Object.assign(h("li", { class: "row" }, parts.name, parts.share, parts.bar, parts.told), { parts });
    }, ({ parts }, one) => {
      setText(parts.share, one.gpus ? `${number(one.gpus_given)} of ${number(one.gpus)} given` : `${number(one.gpus_given)} given`);
      setMeter(parts.bar, one.gpus ? one.gpus_given / one.gpus : 0);
      const free = Math.max(0, one.gpus - one.gpus_given);
      setText(parts.told, `${number(free)} free on ${count(one.nodes, "node")}${one.gpus_wanted ? `; waiting jobs could use ${number(one.gpus_wanted)}` : ""}`);
    });
    if (!types.length && !this.noTypes) this.types.body.append((this.noTypes = empty("No GPUs", "No node of the cluster has GPUs.")));
    if (types.length) this.noTypes?.remove();
  }

  #tenants() {
    const { types, tenants } = store.cluster;
    const given = tenants.filter((one) => one.gpus_given).sort((a, b) => b.gpus_given - a.gpus_given);
    const total = Math.max(1, sum(types, "gpus"), sum(given, "gpus_given"));
    keyed(this.tenantBar, given, (one) => one.tenant, (one) => h("i", { title: one.tenant, style: { background: tenantColors.of(one.tenant) } }),
      (element, one) => (element.style.width = `${(100 * one.gpus_given) / total}%`));
    keyed(this.tenantKey, given.slice(0, 8), (one) => one.tenant, (one) => h("li", { class: "once" }, swatch(tenantColors.of(one.tenant)), h("span")),
      (element, one) => setText(element.lastChild, `${one.tenant} ${number(one.gpus_given)}`));
  }

  #reasons() {
    const longest = new Map();
    for (const row of store.waiting.values()) {
      const before = longest.get(row.reason);
      if (!before || store.waited(row) > store.waited(before)) longest.set(row.reason, row);
    }
    const rows = Object.entries(store.cluster.waiting_by_reason).filter(([, many]) => many > 0).sort((a, b) => b[1] - a[1]).slice(0, 5);
    const most = Math.max(1, ...rows.map(([, many]) => many));
    keyed(this.reasonList, rows, ([reason]) => reason, ([reason]) => {
      const parts = { count: h("span", { class: "count" }), bar: meter(0, true), told: h("span", { class: "told-small" }), longest: h("a"), waits: h("span") };
      parts.told.append("longest: ", parts.waits, " ", parts.longest);
      return Object.assign(h("li", {}, h("a", { href: `#/queue?reason=${reason}` }, words(reason)), parts.count, parts.bar, parts.told), { parts });
    }, ({ parts }, [reason, many]) => {
      setText(parts.count, count(many, "job"));
      setMeter(parts.bar, many / most);
      const row = longest.get(reason);
      parts.told.hidden = !row;
      if (!row) return;
      const name = `${row.namespace}/${row.job}`;
      setText(parts.longest, name);
      if (parts.longest.getAttribute("href") !== jobLink(name)) parts.longest.href = jobLink(name);
      setText(parts.waits, duration(store.waited(row)));
    });
    if (!rows.length && !this.noWaits) this.waits.body.append((this.noWaits = empty("Nothing waits", "Every job has its GPUs.")));
    if (rows.length && this.noWaits) this.noWaits = void this.noWaits.remove();
  }

  #grid() {
    const { filters } = read();
    const names = store.cluster.types.map((one) => one.gpu_type);
    const signature = `${names} ${filters.type}`;
    if (this.typesOf !== signature) {
      this.typesOf = signature;
      this.typeFilter.replaceChildren(select("GPU type", filters.type ?? "", [["", "All"], ...names.map((one) => [one, one])], (type) => setFilters({ type })));
    }
    const nodes = [...store.nodes.values()].filter((node) => !filters.type || node.gpu_type === filters.type);
    nodes.sort((a, b) => (a.gpu_type < b.gpu_type ? -1 : a.gpu_type > b.gpu_type ? 1 : 0));
    const closed = nodes.filter((node) => !node.open_to_new).length;
    setText(this.nodes.note, `${count(nodes.length, "node")}${closed ? `, ${number(closed)} not open to new work` : ""}`);
    this.grid.canvas.setAttribute("aria-label", `GPUs by node: ${count(nodes.length, "node")}, ${number(sum(nodes, "gpus_given"))} of ${gpus(sum(nodes, "gpus"))} given. Move with the arrow keys.`);
    this.grid.update(nodes, store.jobs, filters.job, store.cluster.hidden);
    if (this.fold.open) this.table.update(nodes);
  }

  #moments() {
    const moments = new Map();
    for (const one of store.cluster?.use ?? []) {
      const at = moments.get(one.at_s) ?? { at_s: one.at_s, gpus: 0, given: 0, wanted: 0, waiting: 0 };
      at.gpus += one.gpus;
      at.given += one.gpus_given;
      at.wanted = Math.max(at.wanted, one.gpus_wanted);
      at.waiting = Math.max(at.waiting, one.waiting);
      moments.set(one.at_s, at);
    }
    return [...moments.values()];
  }

  #useTold() {
    const all = this.#moments();
    if (!all.length) return "Nothing is recorded yet.";
    return `On average ${ofTotal(sum(all, "given"), sum(all, "gpus"))} of the GPUs were given.`;
  }

  #useOption(style) {
    const all = this.#moments();
    const now = store.now();
    const [blue, orange] = [["given", "GPUs given"], ["wanted", "Wanted by waiting jobs"]];
    const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const line = ([part, name], shade, area) => ({
      name, type: "line", step: "end", showSymbol: false, color: shade, lineStyle: { width: 2, type: area ? "solid" : [5, 3] },
      areaStyle: area ? { opacity: 0.18 } : undefined, data: all.map((one) => [1000 * one.at_s, one[part]]),
    });
    return {
      grid: { left: 8, right: 12, top: 34, bottom: 4, containLabel: true },
      legend: { ...style.legend, top: 0, left: 0 },
      tooltip: { ...style.tooltip, trigger: "axis", formatter: ([{ dataIndex }]) => {
        const one = all[dataIndex];
        return tip(moment(one.at_s, now), `${number(one.given)} of ${gpus(one.gpus)} given`, `${gpus(one.wanted)} wanted by ${count(one.waiting, "waiting job")}`);
      } },
      xAxis: { type: "time", ...style.axis, splitLine: { show: false }, min: 1000 * (now - 86400), max: 1000 * now },
      yAxis: { type: "value", ...style.axis, minInterval: 1 },
      series: [
        line(blue, color("--given"), true), line(orange, color("--wanted"), false),
        { name: "All GPUs", type: "line", step: "end", showSymbol: false, color: style.axis.axisLabel.color, lineStyle: { width: 1, type: "dotted" }, data: all.map((one) => [1000 * one.at_s, one.gpus]) },
      ],
      graphic: all.length ? [] : [{ type: "text", left: "center", top: "middle", style: { text: "Nothing is recorded yet", fill: style.axis.axisLabel.color, fontSize: 13 } }],
    };
  }

  remove() {
    this.chart.remove();
    this.grid.remove();
  }
}
