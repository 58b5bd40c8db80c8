// All about one job: why it is where it is, what it is worth where, and what it has had.

import { get } from "../api.js";
import { Chart, css, tip } from "../charts.js";
import { h, setText } from "../dom.js";
import { count, cpus, digits, duration, factor, gib, gpus, inGib, moment, number, percent, speed, types, words } from "../format.js";
import { card, empty, failure, figure, forecastText, jobName, loading, tenantName, time } from "../parts.js";
import { store } from "../store.js";
import { HelpPart } from "../help.js";
import { SurfaceCard } from "../surface.js";

const TONES = { Running: "good", Succeeded: "good", Starting: "good", Failed: "bad", Yielding: "warn", Suspended: "warn" };
const copy = (text) => h("button", { type: "button", onclick: (event) => {
  const done = (word) => setText(event.target, word);
  (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(() => done("Copied"), () => done("Select and copy it"));
} }, "Copy");
const metricsText = (metrics) => metrics.map(([name, value]) => `${name} ${digits(value)}`).join(", ");
const fold = (title, names) =>
  names.length ? h("details", {}, h("summary", {}, title), h("div", { class: "inline-list" }, names)) : null;

export default class JobPage {
  constructor({ rest: [namespace = "", name = ""] }) {
    this.full = `${namespace}/${name}`;
    this.path = `jobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
    this.phase = h("span", { class: "chip" });
    this.told = h("span", { class: "told" });
    this.figures = Object.fromEntries([["steps", "Steps"], ["speed", "Speed"], ["starts", "Starts"], ["ends", "Ends"], ["runs", "Runs"]].map(([key, label]) => [key, figure(label)]));
    this.why = card("Why", { span: 7 });
    this.help = new HelpPart(this.path, copy);
    this.place = card("What it holds", { span: 5 });
    this.surface = new SurfaceCard((surface) => this.#proportional(surface));
    this.noSurface = card("Sensitivity: speed by CPU and memory", { span: 7 });
    this.noSurface.body.append(empty("No profile yet", "Its speed by CPU and memory is known once the job is profiled."));
    this.amounts = this.#chart("CPU and memory given over time", 5, ["Time", "CPU", "Memory"], (one) => [cpus(one.cpu_millis), gib(one.memory_bytes)], (style) => this.#amountsOption(style));
    this.speeds = this.#chart("Speed over time", 6, ["Time", "Steps/s", "Steps"], (one) => [one.steps_per_s, one.steps], (style) => this.#speedOption(style));
    this.metrics = this.#chart("Metrics over time", 6, ["Time", "Metrics"], (one) => [metricsText(one.metrics)], (style) => this.#metricsOption(style));
    this.events = card("Events", { span: 6 });
    this.runs = card("Runs");
    this.waits = card("Waits");
    this.content = h("div", { hidden: true }, h("dl", { class: "figures" }, Object.values(this.figures).map((one) => one.element)),
      h("div", { class: "grid" }, this.why.element, this.place.element, this.surface.element, this.noSurface.element, this.amounts.element, this.speeds.element, this.metrics.element,
        this.events.element, this.runs.element, this.waits.element));
    this.wait = loading("the job");
    this.problem = h("div");
    this.head = h("h1", {}, jobName(this.full));
    this.head.firstElementChild.replaceWith(...jobName(this.full).childNodes);
    this.element = h("div", {}, h("div", { class: "head" }, this.head, this.phase, this.told), this.wait, this.problem, this.content);
  }

  #chart(title, span, head, cells, option) {
    const part = card(title, { span });
    const chart = new Chart({
      height: span === 5 ? 392 : 260, label: title, option, head, told: () => `${count(this.data.samples.length, "sample")}.`,
      rows: () => this.data.samples.map((one) => [moment(one.at_s, this.data.now), ...cells(one)]),
    });
    const none = empty("No samples yet", "They are taken while the job runs.");
    part.body.append(chart.element, none);
    return { element: part.element, chart, draw: () => {
      const some = this.data.samples.length > 0;
      chart.element.hidden = !some;
      none.hidden = some;
      if (some) chart.draw();
    } };
  }

  shown() {
    this.#load();
  }

  filters() {
    if (this.data?.surfaces.length) this.surface.update(this.data.surfaces);
  }

  update() {
    this.tick();
  }

  /** Load again what is older than half a minute, or than five seconds if the job's row has changed since. */
  tick() {
    if (!this.data || this.busy) return;
    const row = store.jobs.get(this.full) ?? store.waiting.get(this.full);
    if (performance.now() - this.asked > (row === this.row ? 30000 : 5000)) this.#load();
  }

  async #load() {
    this.busy = true;
    this.asked = performance.now();
    try {
      this.row = store.jobs.get(this.full) ?? store.waiting.get(this.full);
      const data = await get(this.path);
      if (this.gone) return;
      this.data = data;
      this.problem.replaceChildren();
      this.wait.hidden = true;
      this.content.hidden = false;
      this.#draw();
    } catch (error) {
      if (this.gone) return;
      this.wait.hidden = true;
      const old = this.data && h("p", { class: "notice" }, `This is as of ${moment(this.data.now, store.now())}. It could not be loaded again: ${error.message}.`);
      this.problem.replaceChildren(old ?? failure(error, () => this.#load()));
    } finally {
      this.busy = false;
    }
  }

  #draw() {
    const { data } = this;
    const phase = data.phase || "Deleted";
    setText(this.phase, phase);
    this.phase.dataset.tone = TONES[phase] ?? "";
    this.told.replaceChildren("tenant ", tenantName(data.tenant), ` · ${gpus(data.gpus)} · GPU types: ${types(data.gpu_types)} · created `, time(data.created_s, data.now));
    this.#figures();
    this.#why();
    this.#held();
    const profiled = data.surfaces.length > 0;
    this.surface.element.hidden = !profiled;
    this.noSurface.element.hidden = profiled;
    if (profiled) this.surface.update(data.surfaces);
    this.amounts.draw();
    this.speeds.draw();
    this.metrics.element.hidden = !this.#metricNames().length;
    if (!this.metrics.element.hidden) this.metrics.draw();
    this.#runs();
    this.#waits();
    this.#events();
  }

  #figures() {
    const { data } = this;
    const { forecast } = data;
    this.figures.steps.update(data.steps ? percent(data.steps_done / data.steps) : number(data.steps_done), "", data.steps ? `${number(data.steps_done)} of ${number(data.steps)}` : "the job does not say how many");
    const run = data.runs.find((one) => one.ended_s === null && one.purpose === "Train");
    const gain = run && run.proportional_steps_per_s > 0 ? `planned ${factor(run.steps_per_s / run.proportional_steps_per_s)} of its GPU share` : "";
    const [value, unit] = data.steps_per_s ? speed(data.steps_per_s).split(" ") : ["–", ""];
    this.figures.speed.update(value, unit, data.steps_per_s ? gain : "it does not run");
    const starts = data.steps_per_s || run ? ["now", run ? `since ${moment(run.granted_s, data.now)}` : ""] : forecastText(forecast?.start_s, forecast?.unknown, data.now);
    const ends = data.finished_s ? [moment(data.finished_s, data.now), "finished"] : forecastText(forecast?.finish_s, forecast?.unknown, data.now);
    const range = (text) => (/ to /.test(text) ? `8 of 10: ${text}` : text);
    this.figures.starts.update(starts[0], "", range(starts[1]));
    this.figures.ends.update(ends[0], "", range(ends[1]));
    this.figures.runs.update(number(data.runs.length), "", `${count(data.preemptions, "preemption")}, ${count(data.failures, "failure")}`);
  }

  #why() {
    const { why } = this.data;
    if (!why) {
      this.why.body.replaceChildren(empty("The job was deleted", "Only its history is left."));
      return;
    }
    const command = /^kubectl /.test(why.next_step);
    const holders = why.holders.slice(0, 30).map((one) => h("span", { class: "once" }, jobName(one.job), ` ${number(one.gpus)} × ${one.gpu_type}`));
    this.why.body.replaceChildren(h("div", { class: "why-lines" },
      h("p", { class: "why" }, h("span", { class: "reason" }, words(why.reason)), why.message ? `: ${why.message}.` : ""),
      why.explanation ? h("p", {}, why.explanation) : "",
      why.next_step ? h("div", { class: "next" }, h("span", {}, "Next step:"), command ? [h("code", {}, why.next_step), copy(why.next_step)] : why.next_step) : "",
      why.position ? h("p", { class: "told-small" }, `Position ${number(why.position)} in the queue.`) : "",
      why.position ? this.help.element : "",
      fold(`${count(why.ahead.length, "job")} higher in the queue`, why.ahead.slice(0, 50).map((one) => jobName(one))) ?? "",
      fold(`${count(why.holders.length, "job")} with GPUs that it could use`, holders) ?? "",
      why.notes.map((one) => h("p", { class: "notice", style: { "margin-bottom": "0" } }, one))));
  }

  #held() {
    const run = this.data.runs.findLast((one) => one.ended_s === null);
    if (!run) {
      this.place.body.replaceChildren(empty("It holds nothing", "It has no GPUs, CPU or memory now."));
      return;
    }
    const resize = this.data.resizes.findLast((one) => one.run === run.run);
    const shares = resize?.shares ?? run.shares;
    const row = (share) => h("tr", {}, h("th", { scope: "row" }, share.node), h("td", { class: "num" }, number(share.gpus)), h("td", { class: "num" }, cpus(share.cpu_millis)), h("td", { class: "num" }, gib(share.memory_bytes)));
    const head = (text, num) => h("th", { scope: "col", class: num ? "num" : null }, text);
    this.place.body.replaceChildren(
      h("div", { class: "scroll" }, h("table", {}, h("caption", { class: "unseen" }, "What it holds by node"), h("thead", {}, h("tr", {}, head("Node"), head(`${run.gpu_type} GPUs`, 1), head("CPU", 1), head("Memory", 1))), h("tbody", {}, shares.map(row)))),
      run.partners.length ? h("p", {}, "Shares its GPUs with ", run.partners.map((one) => jobName(one))) : "",
      resize ? h("p", { class: "told-small" }, "CPU and memory were resized at ", time(resize.at_s, this.data.now), " without a restart.") : "");
  }

  /** CPU and memory of the GPU-proportional share on the nodes of a type. */
  #proportional({ gpu_type }) {
    const node = [...store.nodes.values()].find((one) => one.gpu_type === gpu_type && one.gpus > 0);
    return node ? [(node.cpu_millis / node.gpus) * this.data.gpus, (node.memory_bytes / node.gpus) * this.data.gpus] : null;
  }

  #time(style) {
    return { type: "time", ...style.axis, splitLine: { show: false } };
  }

  #amountsOption(style) {
    const { samples, now } = this.data;
    const line = (name, part, axis, color, type) => ({ name, type: "line", step: "end", showSymbol: false, yAxisIndex: axis, color, lineStyle: { width: 2, type }, data: samples.map((one) => [1000 * one.at_s, part(one)]) });
    return {
      grid: { left: 8, right: 8, top: 56, bottom: 4, containLabel: true }, legend: { ...style.legend, top: 0, left: 0 },
      tooltip: { ...style.tooltip, trigger: "axis", formatter: ([{ dataIndex }]) => tip(moment(samples[dataIndex].at_s, now), cpus(samples[dataIndex].cpu_millis), gib(samples[dataIndex].memory_bytes)) },
      xAxis: this.#time(style),
      yAxis: [{ type: "value", name: "CPU", ...style.axis, nameTextStyle: { color: css("muted"), align: "left" } }, { type: "value", name: "GiB", ...style.axis, nameTextStyle: { color: css("muted"), align: "right" }, splitLine: { show: false } }],
      series: [line("CPU", (one) => one.cpu_millis / 1000, 0, css("given"), "solid"), line("Memory, GiB", (one) => one.memory_bytes / 2 ** 30, 1, css("wanted"), [5, 3])],
    };
  }

  #speedOption(style) {
    const { samples, runs, now } = this.data;
    const planned = runs.findLast((one) => one.purpose === "Train" && one.steps_per_s > 0);
    const mark = (name, value) => ({ name, yAxis: value, label: { formatter: `${name} {c}`, position: "insideEndTop", color: css("muted"), fontSize: 11 } });
    return {
      grid: { left: 8, right: 12, top: 26, bottom: 4, containLabel: true },
      tooltip: { ...style.tooltip, trigger: "axis", formatter: ([{ dataIndex }]) => tip(moment(samples[dataIndex].at_s, now), speed(samples[dataIndex].steps_per_s), `step ${number(samples[dataIndex].steps)}`) },
      xAxis: this.#time(style), yAxis: { type: "value", name: "steps/s", ...style.axis, nameTextStyle: { color: css("muted"), align: "left" } },
      series: [{ type: "line", showSymbol: false, color: css("given"), lineStyle: { width: 2 }, data: samples.map((one) => [1000 * one.at_s, one.steps_per_s]),
        markLine: planned ? { symbol: "none", silent: true, lineStyle: { color: css("line-strong"), type: "dashed" }, data: [mark("planned", planned.steps_per_s), mark("GPU share", planned.proportional_steps_per_s)] } : undefined }],
    };
  }

  #metricNames() {
    return [...new Set(this.data.samples.flatMap((one) => one.metrics.map(([name]) => name)))].sort();
  }

  /** One line a metric, each on a scale of its own: a loss and a learning rate have no common one. */
  #metricsOption(style) {
    const { samples, now } = this.data;
    const value = (one, name) => one.metrics.find(([known]) => known === name)?.[1] ?? null;
    const names = this.#metricNames();
    return {
      grid: { left: 8, right: 12, top: 56, bottom: 4, containLabel: true }, legend: { ...style.legend, top: 0, left: 0 },
      tooltip: { ...style.tooltip, trigger: "axis", formatter: ([{ dataIndex }]) => tip(moment(samples[dataIndex].at_s, now), metricsText(samples[dataIndex].metrics)) },
      xAxis: this.#time(style),
      yAxis: names.map((name, at) => ({ type: "value", scale: true, name, show: at === 0, ...style.axis, nameTextStyle: { color: css("muted"), align: "left" } })),
      series: names.map((name, at) => ({ name, type: "line", yAxisIndex: at, showSymbol: false, lineStyle: { width: 2, type: at ? [5, 3] : "solid" },
        color: css(["given", "wanted"][at % 2]), data: samples.map((one) => [1000 * one.at_s, value(one, name)]) })),
    };
  }

  #table(part, caption, head, rows, none) {
    if (!rows.length) return void part.body.replaceChildren(empty(none));
    part.body.replaceChildren(h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, h("table", {}, h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, head.map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row", class: "once" }, first), rest.map((one) => h("td", {}, one))))))));
  }

  /** The run's reason, in which the names of jobs that are known are links. */
  #reason(text) {
    return text.split(/([\w.-]+\/[\w.-]*[\w-])/).map((part) => (store.jobs.has(part) || store.waiting.has(part) ? jobName(part) : part));
  }

  #runs() {
    const { runs, now } = this.data;
    const rows = runs.toReversed().map((one) => {
      if (!one.seen) return [String(one.run), "not recorded", "", "", "", "", ""];
      const ended = one.ended_s === null ? h("span", { class: "chip", dataset: { tone: "good" } }, one.started_s === null ? "starts" : "runs") : [h("span", { class: "chip" }, words(one.outcome)), " ", one.reason];
      const preempted = one.revoked_s === null ? "" : h("div", { class: "told-small" }, "preempted ", time(one.revoked_s, now), ": ", this.#reason(one.revoked_reason));
      return [String(one.run), one.purpose === "Profile" ? "profile" : "train", h("span", { class: "once" }, time(one.granted_s, now)), duration((one.ended_s ?? now) - one.granted_s),
        `${number(one.gpus)} × ${one.gpu_type} on ${count(one.shares.length, "node")}`, one.partners.length ? one.partners.map((name) => jobName(name)) : "–", h("div", {}, ended, preempted)];
    });
    this.#table(this.runs, "Runs", ["Run", "For", "Granted", "Lasted", "GPUs", "Shared with", "Ended"], rows, "It has not run yet");
  }

  #waits() {
    const { waits, now } = this.data;
    const rows = waits.toReversed().map((one) => [time(one.since_s, now), duration((one.until_s ?? now) - one.since_s), one.position === null ? "–" : number(one.position), h("span", {}, words(one.reason), h("div", { class: "told-small" }, one.message))]);
    this.#table(this.waits, "Waits", ["Since", "For", "Position", "Because"], rows, "It has not waited");
  }

  #events() {
    const { events, now } = this.data;
    this.events.body.replaceChildren(events.length ? h("ol", { class: "events", tabindex: "0", "aria-label": "Events, the newest first" }, events.toReversed().map((one) =>
      h("li", {}, time(one.at_s, now), h("span", {}, h("b", {}, words(one.what)), one.message ? `: ${one.message}` : "")))) : empty("No events", "Kubernetes keeps events for an hour by default."));
  }

  remove() {
    this.gone = true;
    for (const one of [this.surface, this.amounts.chart, this.speeds.chart]) one.remove();
  }
}
