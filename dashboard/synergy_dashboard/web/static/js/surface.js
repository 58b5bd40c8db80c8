// A job's sensitivity surface: its speed by CPU and memory, as a heat map or as lines.

import { Chart, css, tip } from "./charts.js";
import { h } from "./dom.js";
import { cpus, factor, gib, inGib, speed } from "./format.js";
import { card, choice } from "./parts.js";
import { read, setFilters } from "./router.js";

const nearest = (points, value) => points.reduce((best, one, at) => (Math.abs(one - value) < Math.abs(points[best] - value) ? at : best), 0);
const MARKS = [["demand", "Demand", "diamond"], ["given", "Given", "circle"], ["proportional", "GPU-proportional share", "rect"]];
const HEAT = ["#f1f5f9", "#c3dcef", "#7fb8de", "#3c8cc4", "#0a5c9c", "#053a66"];
const HEAT_DARK = ["#1d2833", "#1d4262", "#1f6595", "#2f8ac4", "#6cb4e4", "#c4e2f7"];
const LINES = ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#d55e00"];

/** `proportional(surface)` gives the CPU and memory of the GPU-proportional share, or null. */
export class SurfaceCard {
  constructor(proportional) {
    this.proportional = proportional;
    this.tools = h("div", { class: "tools" });
    this.card = card("Sensitivity: speed by CPU and memory", { span: 7, tools: [this.tools] });
    this.element = this.card.element;
    this.words = h("dl", { class: "facts" });
    this.chart = new Chart({
      height: 300, label: "Speed by CPU and memory", option: (style) => (this.#lines() ? this.#lineOption(style) : this.#heatOption(style)),
      told: () => this.#told(), head: ["CPU", "Memory", "Steps/s"],
      rows: () => this.now.cpu_millis.flatMap((cpu, c) => this.now.memory_bytes.map((memory, m) => [cpus(cpu), gib(memory), this.now.steps_per_s[c][m]])),
    });
    this.card.body.append(this.chart.element, h("div", { style: { height: "12px" } }), this.words);
  }

  #lines() {
    return read().filters.surface === "lines" || this.now.memory_bytes.length < 2;
  }

  update(surfaces) {
    this.surfaces = surfaces;
    const { filters } = read();
    this.now = surfaces.find((one) => one.gpu_type === filters.on) ?? surfaces.find((one) => one.given) ?? surfaces[0];
    const { now } = this;
    const signature = JSON.stringify([surfaces.map((one) => one.gpu_type), now.gpu_type, this.#lines()]);
    if (signature !== this.toolsOf) {
      this.toolsOf = signature;
      this.tools.replaceChildren(
        surfaces.length > 1 ? choice("GPU type", now.gpu_type, surfaces.map((one) => [one.gpu_type, one.gpu_type]), (on) => setFilters({ on })) : now.gpu_type,
        choice("Drawn as", this.#lines() ? "lines" : "heat", [["heat", "Heat map"], ["lines", "Lines"]], (surface) => setFilters({ surface: surface === "heat" ? "" : surface })));
    }
    const share = this.proportional(now);
    const at = (point) => (point ? `${cpus(point[0])}, ${gib(point[1])}: ${speed(this.#speedAt(point))}` : "not known");
    const gain = now.given && share ? `, ${factor(this.#speedAt(now.given) / this.#speedAt(share))} the speed of the share` : "";
    const sure = now.runs ? `${now.confidence || "not known"}${now.uncertainty === null ? "" : `, within ±${(100 * now.uncertainty).toFixed(1)} %`}, from ${now.runs} runs` : "not measured: the spec provides it";
    const rows = [["Demand", at(now.demand)], ["Given", now.given ? `${at(now.given)}${gain}` : "nothing on this GPU type"], ["GPU-proportional share", at(share)], ["Confidence", sure]];
    this.words.replaceChildren(...rows.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]));
    this.chart.draw();
  }

  #speedAt([cpu, memory]) {
    return this.now.steps_per_s[nearest(this.now.cpu_millis, cpu)][nearest(this.now.memory_bytes, memory)];
  }

  #told() {
    const best = Math.max(...this.now.steps_per_s.flat());
    return `On ${this.now.gpu_type} the highest speed is ${speed(best)}.`;
  }

  #points() {
    const { now } = this;
    const found = { demand: now.demand, given: now.given, proportional: this.proportional(now) };
    return MARKS.filter(([key]) => found[key]).map(([key, name, symbol]) => ({ name, symbol, point: found[key] }));
  }

  #heatOption(style) {
    const { now } = this;
    const data = now.steps_per_s.flatMap((row, c) => row.map((value, m) => [c, m, value]));
    const dark = document.documentElement.dataset.theme === "dark";
    const marks = this.#points().map(({ name, symbol, point: [cpu, memory] }, place) => ({
      name, type: "scatter", symbol, symbolSize: 15, symbolOffset: [13 * (place - 1), 0], data: [[nearest(now.cpu_millis, cpu), nearest(now.memory_bytes, memory)]],
      itemStyle: { color: LINES[[1, 2, 3][place]], borderColor: css("surface"), borderWidth: 2 }, tooltip: { formatter: () => tip(name, `${cpus(cpu)}, ${gib(memory)}`) }, z: 5,
    }));
    return {
      grid: { left: 8, right: 76, top: 34, bottom: 24, containLabel: true },
      legend: { ...style.legend, icon: undefined, top: 0, left: 0, data: marks.map((one) => one.name) },
      tooltip: { ...style.tooltip, formatter: ({ data: [c, m, value] }) => tip(speed(value), `${cpus(now.cpu_millis[c])}, ${gib(now.memory_bytes[m])}`, now.measured.includes(now.cpu_millis[c]) ? "measured CPU point" : "from the model") },
      xAxis: { type: "category", name: "CPU", nameLocation: "middle", nameGap: 26, ...style.axis, data: now.cpu_millis.map((one) => String(one / 1000)), splitLine: { show: false } },
      yAxis: { type: "category", name: "Memory, GiB", ...style.axis, nameTextStyle: { color: css("muted"), align: "left", padding: [0, 0, -4, 0] }, nameLocation: "end", nameGap: 6, data: now.memory_bytes.map((one) => String(inGib(one))), splitLine: { show: false } },
      visualMap: { min: 0, max: Math.max(...now.steps_per_s.flat()), right: 0, top: 34, itemHeight: 150, itemWidth: 12, text: ["steps/s", ""], seriesIndex: 0, calculable: false, textStyle: { color: css("muted"), fontSize: 12 }, inRange: { color: dark ? HEAT_DARK : HEAT } },
      series: [{ type: "heatmap", data, itemStyle: { borderColor: css("surface"), borderWidth: 1 } }, ...marks],
    };
  }

  #lineOption(style) {
    const { now } = this;
    const chosen = now.memory_bytes.map((_, at) => at).filter((at, _, all) => all.length <= 6 || at % Math.ceil(all.length / 6) === 0 || at === all.length - 1);
    const series = chosen.map((m, place) => ({
      name: gib(now.memory_bytes[m]), type: "line", color: LINES[place % LINES.length], symbol: place % 2 ? "rect" : "circle", symbolSize: 6,
      data: now.cpu_millis.map((cpu, c) => [cpu / 1000, now.steps_per_s[c][m]]),
    }));
    const marks = this.#points().map(({ name, point: [cpu] }) => ({ name, xAxis: cpu / 1000 }));
    if (series.length) {
      series[0].markLine = { symbol: "none", silent: true, lineStyle: { color: css("text"), type: "dashed" }, data: marks,
        label: { formatter: "{b}", color: css("text"), fontSize: 11, rotate: 0 } };
      series[0].markLine.data = marks.map((one, place) => ({ ...one, label: { distance: [0, 4 + 14 * place] } }));
    }
    return {
      grid: { left: 8, right: 40, top: 78, bottom: 24, containLabel: true }, legend: { ...style.legend, top: 0, left: 0 },
      tooltip: { ...style.tooltip, trigger: "axis", formatter: (lines) => tip(`${lines[0].value[0]} CPU`, ...lines.map((one) => `${one.seriesName}: ${speed(one.value[1])}`)) },
      xAxis: { type: "value", name: "CPU", nameLocation: "middle", nameGap: 26, ...style.axis, splitLine: { show: false } },
      yAxis: { type: "value", ...style.axis, name: "steps/s", nameTextStyle: { color: css("muted"), align: "left" } }, series,
    };
  }

  remove() {
    this.chart.remove();
  }
}
