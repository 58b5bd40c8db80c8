// Who ran where and when, and what each round decided.

import { get } from "../api.js";
import { Chart, css, tip } from "../charts.js";
import { jobColors, tenantColors } from "../colors.js";
import { announce, h, setText } from "../dom.js";
import { count, duration, gpus, jobLink, moment, number, words } from "../format.js";
import { card, choice, empty, failure, input, jobName, loading, select, time } from "../parts.js";
import { lanes } from "../lanes.js";
import { read, setFilters } from "../router.js";
import { store } from "../store.js";

const MANY = [["12", "12 rounds"], ["24", "24 rounds"], ["48", "48 rounds"], ["96", "96 rounds"]];

export default class RoundsPage {
  constructor() {
    const { filters } = read();
    this.told = h("span", { class: "told" });
    this.back = h("button", { type: "button", onclick: () => this.#walk(-1) }, "← Earlier");
    this.on = h("button", { type: "button", onclick: () => this.#walk(1) }, "Later →");
    this.latest = h("button", { type: "button", onclick: () => setFilters({ until_s: "" }) }, "Now");
    this.search = input("Node or job", filters.q ?? "", { type: "search", oninput: (q) => setFilters({ q }, { typing: true }) });
    this.many = h("div");
    this.color = h("div");
    this.typeBox = h("div");
    this.gantt = card("Runs by node");
    this.chart = new Chart({
      height: 420, label: "Runs by node over time", option: (style) => this.#option(style), told: () => `${count(this.bars?.length ?? 0, "run")} on ${count(this.names?.length ?? 0, "node")}.`,
      head: ["Job", "Node", "GPUs", "From", "To", "Ended"], rows: () => (this.bars ?? []).map((one) => [one.job, one.node, one.gpus, moment(one.start_s, this.data.now), one.end_s === null ? "runs" : moment(one.end_s, this.data.now), one.outcome]),
      onclick: ({ data }) => data?.job && (location.hash = jobLink(data.job)),
    });
    this.nothing = empty("No runs here", "Nothing ran in this time, or nothing matches the filters.");
    this.gantt.body.append(h("div", { class: "filters" }, this.search, this.typeBox, this.many, this.color), this.chart.element, this.nothing);
    this.list = card("What each round decided");
    this.content = h("div", { class: "grid", hidden: true }, this.gantt.element, this.list.element);
    this.wait = loading("the rounds");
    this.problem = h("div");
    this.element = h("div", {}, h("div", { class: "head" }, h("h1", {}, "Rounds"), this.told, h("div", { class: "tools" }, this.back, this.on, this.latest)),
      this.wait, this.problem, this.content);
  }

  shown() {
    this.filters(read());
  }

  filters({ filters }) {
    const wanted = `rounds?rounds=${Number(filters.rounds) || 24}${filters.until_s ? `&until_s=${Number(filters.until_s) || 0}` : ""}`;
    if (wanted !== this.wanted) this.#load(wanted);
    else this.#draw();
  }

  /** The newest rounds are loaded again once each round has begun. */
  tick() {
    const { data } = this;
    if (data && !read().filters.until_s && !this.busy && store.now() > Math.max(data.until_s, data.now + 30) + 5) this.#load(this.wanted);
  }

  async #load(wanted) {
    this.wanted = wanted;
    this.busy = true;
    try {
      const data = await get(wanted);
      if (this.gone || wanted !== this.wanted) return;
      const first = !this.data;
      this.data = data;
      this.problem.replaceChildren();
      this.wait.hidden = true;
      this.content.hidden = false;
      this.#draw();
      if (!first) announce(`Rounds from ${moment(data.since_s, data.now)} to ${moment(data.until_s, data.now)}`);
    } catch (error) {
      if (this.gone) return;
      this.wait.hidden = true;
      this.content.hidden = true;
      this.problem.replaceChildren(failure(error, () => this.#load(wanted)));
    } finally {
      this.busy = false;
    }
  }

  #walk(way) {
    const { since_s, until_s, now } = this.data;
    // a moment in the last round that is wanted
    const until = way < 0 ? since_s - 1 : 2 * until_s - since_s - 1;
    setFilters({ until_s: until >= now ? "" : String(Math.round(until)) });
  }

  #draw() {
    const { data } = this;
    if (!data) return;
    const { filters } = read();
    this.on.disabled = !filters.until_s;
    this.latest.disabled = !filters.until_s;
    setText(this.told, `${moment(data.since_s, data.now)} to ${moment(data.until_s, data.now)}, rounds of ${duration(data.round_s)}`);
    const kinds = [...new Set(data.segments.map((one) => one.gpu_type))].sort();
    this.many.replaceChildren(select("Show", filters.rounds ?? "24", MANY, (rounds) => setFilters({ rounds: rounds === "24" ? "" : rounds })));
    this.typeBox.replaceChildren(select("GPU type", filters.type ?? "", [["", "All"], ...kinds.map((one) => [one, one])], (type) => setFilters({ type })));
    this.color.replaceChildren(h("div", { class: "field" }, h("span", { class: "label" }, "Colour"),
      choice("Colour by", filters.by ?? "job", [["job", "by job"], ["tenant", "by tenant"]], (by) => setFilters({ by: by === "job" ? "" : by }))));
    const q = (filters.q ?? "").toLowerCase();
    this.bars = data.segments.filter((one) => (!filters.type || one.gpu_type === filters.type) && (!q || one.node.includes(q) || one.job.toLowerCase().includes(q)));
    this.names = [...new Set(this.bars.map((one) => one.node))].sort().reverse();
    this.lanes = lanes(this.bars, (node) => store.nodes.get(node)?.gpus ?? 0);
    this.nothing.hidden = this.bars.length > 0;
    this.chart.element.hidden = !this.bars.length;
    setText(this.gantt.note, `${count(this.names.length, "node")}, ${count(this.bars.length, "run")}. A bar is as high as its GPUs; drag the sliders to zoom.`);
    this.chart.setHeight(Math.min(660, Math.max(170, 82 + 26 * Math.min(this.names.length, 24))));
    if (this.bars.length) this.chart.draw();
    if (this.roundsOf !== data) this.#rounds();
  }

  #option(style) {
    const { data, names } = this;
    const by = read().filters.by ?? "job";
    const place = new Map(names.map((name, at) => [name, at]));
    const surface = css("surface");
    const color = (one) => (by === "tenant" ? tenantColors.of(one.tenant) : jobColors.of(one.job));
    const rows = this.bars.map((one, at) => ({
      job: one.job, one, value: [place.get(one.node), 1000 * Math.max(one.start_s, data.since_s), 1000 * Math.min(one.end_s ?? data.now, data.until_s), at], itemStyle: { color: color(one) },
    }));
    const paint = (_, api) => {
      const at = api.value(3);
      const [lane, high, all] = this.lanes[at];
      const [x, middle] = api.coord([api.value(1), api.value(0)]);
      const [end] = api.coord([api.value(2), api.value(0)]);
      const row = api.size([0, 1])[1] * 0.84;
      const top = middle - row / 2 + (row * lane) / all;
      const profile = this.bars[at].purpose === "Profile";
      return {
        type: "rect", transition: [], shape: { x, y: top, width: Math.max(1.5, end - x), height: Math.max(1, (row * high) / all - (row / all > 3 ? 1 : 0)) },
        style: { fill: api.visual("color"), stroke: surface, lineWidth: row / all > 3 ? 1 : 0, opacity: profile ? 0.5 : 1 },
      };
    };
    const lines = data.rounds.length <= 48 ? data.rounds.map((one) => ({ xAxis: 1000 * one.start_s })) : [];
    const last = names.length - 1;
    return {
      grid: { left: 8, right: names.length > 24 ? 34 : 12, top: 8, bottom: 44, containLabel: true },
      tooltip: { ...style.tooltip, formatter: ({ data: { one } }) => tip(one.job, `${gpus(one.gpus)} (${one.gpu_type}) of ${one.node}, run ${one.run}${one.purpose === "Profile" ? ", a profile run" : ""}`,
        `${moment(one.start_s, data.now)} to ${one.end_s === null ? "now" : moment(one.end_s, data.now)}, ${duration((one.end_s ?? data.now) - one.start_s)}`, `tenant ${one.tenant}`,
        one.outcome && `${words(one.outcome)}: ${one.reason}`) },
      xAxis: { type: "time", ...style.axis, min: 1000 * data.since_s, max: 1000 * data.until_s },
      yAxis: { type: "category", data: names, ...style.axis, axisLabel: { ...style.axis.axisLabel, interval: names.length > 60 ? "auto" : 0 }, splitLine: { show: true, lineStyle: { color: css("line") } } },
      dataZoom: [
        { type: "slider", xAxisIndex: 0, height: 18, bottom: 8, filterMode: "weakFilter", showDetail: false, ...style.zoom },
        { type: "inside", xAxisIndex: 0, filterMode: "weakFilter", zoomOnMouseWheel: "ctrl", moveOnMouseMove: true },
        ...(names.length > 24 ? [{ type: "slider", yAxisIndex: 0, width: 14, right: 4, filterMode: "weakFilter", startValue: last, endValue: last - 23, showDetail: false, ...style.zoom }] : []),
      ],
      series: [{ type: "custom", renderItem: paint, encode: { x: [1, 2], y: 0 }, clip: true, data: rows,
        markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: css("line"), type: "solid", width: 1 }, data: lines } }],
    };
  }

  #rounds() {
    const { data } = this;
    if (this.roundsOf?.since_s !== data.since_s) this.most = 12;
    this.roundsOf = data;
    const some = (label, nodes) => (nodes.length ? h("div", {}, h("span", { class: "label" }, label), h("div", {}, nodes)) : null);
    const jobs = (names) => h("span", { class: "inline-list" }, names.map((name) => jobName(name)));
    const more = data.rounds.length - this.most;
    const rounds = data.rounds.slice(0, this.most);
    this.list.body.replaceChildren(rounds.length ? h("ol", { class: "rounds" }, rounds.map((one) => {
      const moves = [
        some("Came", one.came.length ? [jobs(one.came)] : []),
        some("Left", one.left.map((left) => h("div", {}, jobName(left.job), ` ${words(left.outcome).toLowerCase()}`, left.reason ? h("span", { class: "told-small" }, `: ${left.reason}`) : null))),
        some("Resized", one.resized.length ? [jobs(one.resized)] : []),
      ].filter(Boolean);
      return h("li", {}, h("div", {}, h("b", {}, time(one.start_s, data.now)), h("div", { class: "told-small" }, `${number(one.gpus_given)} GPUs given`)),
        h("div", { class: "moves" }, moves.length ? moves : h("span", { class: "told-small" }, "Every job kept its place.")));
    })) : empty("No rounds", "Nothing is recorded of this time."),
    more > 0 ? h("button", { type: "button", onclick: () => {
      this.most += 24;
      this.#rounds();
    } }, `Show ${count(Math.min(24, more), "more round")}`) : "");
    setText(this.list.note, "the newest first");
  }

  remove() {
    this.gone = true;
    this.chart.remove();
  }
}
