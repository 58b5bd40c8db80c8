// Charts by Apache ECharts, which is loaded when the first chart is shown.

import { h } from "./dom.js";
import { alternative } from "./parts.js";

let library = null;

function load() {
  library ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL("vendor/echarts.min.js", document.baseURI);
    script.onload = () => resolve(globalThis.echarts);
    script.onerror = () => reject(new Error("the chart library cannot be loaded"));
    document.head.append(script);
  });
  return library;
}

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** What all charts share, in the colours of the theme. */
export function style() {
  const muted = css("muted");
  const axis = {
    axisLine: { lineStyle: { color: css("line-strong") } },
    axisTick: { show: false },
    axisLabel: { color: muted, fontSize: 12, hideOverlap: true },
    nameTextStyle: { color: muted, fontSize: 12 },
    splitLine: { lineStyle: { color: css("line") } },
  };
  return {
    axis,
    text: css("text"),
    legend: { textStyle: { color: muted, fontSize: 12 }, itemWidth: 14, itemHeight: 9, icon: "roundRect", type: "scroll", pageIconColor: muted, pageTextStyle: { color: muted } },
    tooltip: { backgroundColor: css("surface"), borderColor: css("line-strong"), textStyle: { color: css("text"), fontSize: 12 }, confine: true },
    zoom: { borderColor: css("line"), fillerColor: css("accent-soft"), textStyle: { color: muted, fontSize: 11 }, handleStyle: { color: css("surface"), borderColor: css("line-strong") },
      moveHandleStyle: { color: css("line-strong") }, dataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } }, selectedDataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } } },
  };
}

/** Lines of a tooltip as elements, so that no name is read as HTML. */
export const tip = (title, ...lines) => h("div", { class: "tip" }, h("b", {}, title), lines.filter(Boolean).map((one) => h("div", {}, one)));

/**
 * A chart with its text alternative. `option()` gives ECharts' option, `told()` one sentence of what it shows,
 * `head` and `rows()` the table. `draw()` shows the newest data.
 */
export class Chart {
  constructor({ height = 240, label, option, told, head, rows, onclick }) {
    Object.assign(this, { label, option, told, height });
    this.box = h("div", { class: "chart", role: "img", style: { height: `${height}px` } });
    this.table = alternative(label, head, rows);
    this.element = h("div", {}, this.box, this.table.element);
    this.onclick = onclick;
    this.resized = new ResizeObserver(() => this.chart?.resize());
    this.themed = () => this.draw();
    addEventListener("theme", this.themed);
  }

  setHeight(height) {
    if (height === this.height) return;
    this.height = height;
    this.box.style.height = `${height}px`;
    this.chart?.resize();
  }

  async draw() {
    this.box.setAttribute("aria-label", `${this.label}. ${this.told()}`);
    this.table.draw();
    const echarts = await load();
    if (this.gone || !this.box.isConnected) return;
    if (!this.chart) {
      this.chart = echarts.init(this.box, null, { renderer: "canvas" });
      this.chart.on("click", (event) => this.onclick?.(event));
      this.resized.observe(this.box);
    }
    this.chart.setOption({ animation: false, textStyle: { fontFamily: "inherit" }, ...this.option(style()) }, { notMerge: true });
  }

  remove() {
    this.gone = true;
    removeEventListener("theme", this.themed);
    this.resized.disconnect();
    this.chart?.dispose();
  }
}
