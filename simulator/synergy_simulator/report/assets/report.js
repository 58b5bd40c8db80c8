"use strict";
(() => {
  const drawn = JSON.parse(document.getElementById("drawn").textContent);
  const DASHES = ["solid", [7, 4], [2, 3], [10, 3, 2, 3]];
  const MARKERS = ["circle", "rect", "triangle", "diamond"];
  const MARKED = 30; // so few points each have a marker
  const SMALL = { fontSize: 11 };

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const theme = () => ({
    text: style("--text"), soft: style("--soft"), line: style("--line"), back: style("--back"),
    colours: [0, 1, 2, 3, 4, 5, 6, 7].map((index) => style("--c" + index)),
  });
  const short = (value) => {
    const size = Math.abs(value);
    if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(2);
    return String(+value.toPrecision(4));
  };
  const safe = (text) => String(text).replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);

  // The height of a line at x: between two points it is straight.
  const heightAt = (points, x) => {
    if (x < points[0][0] || x > points[points.length - 1][0]) return null;
    let low = 0, high = points.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle][0] <= x) low = middle; else high = middle;
    }
    const [x0, y0] = points[low], [x1, y1] = points[high];
    return x1 > x0 ? y0 + ((y1 - y0) * (x - x0)) / (x1 - x0) : y1;
  };

  const axis = (now, more) => ({
    axisLine: { onZero: false, lineStyle: { color: now.soft } }, axisLabel: { color: now.text, hideOverlap: true, ...SMALL },
    splitLine: { lineStyle: { color: now.line, width: 0.6 } }, nameTextStyle: { color: now.soft, ...SMALL }, ...more,
  });
  const frame = (now, more) => ({
    animation: false, legend: { show: false }, textStyle: { fontFamily: "system-ui, sans-serif" },
    grid: { left: 12, right: 18, top: 30, bottom: 34, containLabel: true }, ...more,
  });
  const tooltip = (now, more) => ({
    confine: true, backgroundColor: now.back, borderColor: now.soft, textStyle: { color: now.text, fontSize: 12 }, ...more,
  });
  const named = (now, name, side) => side === "x"
    ? { name, nameLocation: "middle", nameGap: 26 }
    : { name, nameLocation: "end", nameTextStyle: { color: now.soft, align: "left", ...SMALL } };
  const swatch = (colour) => `<span class="key" style="background:${colour}"></span>`;

  // The ends of an interval around a point.
  const whisker = (api, colour) => {
    const [[x, low], [, high]] = [1, 2].map((end) => api.coord([api.value(0), api.value(end)]));
    const mark = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: colour, lineWidth: 1.5 } });
    return { type: "group", children: [mark(x, low, x, high), mark(x - 4, low, x + 4, low), mark(x - 4, high, x + 4, high)] };
  };

  const lineOptions = (of, now, shown) => {
    const series = [];
    of.series.forEach((one) => {
      const colour = now.colours[one.colour], variant = one.variant % DASHES.length;
      if (one.band.length) {
        series.push({
          type: "custom", name: one.label, silent: true, z: 1, clip: true, itemStyle: { color: colour },
          data: one.points.map(([x], at) => [x, ...one.band[at]]), encode: { x: 0, y: [1, 2] },
          renderItem: (params, api) => {
            if (one.points.length <= MARKED) return whisker(api, colour);
            if (params.dataIndexInside) return null;
            const lower = one.points.map(([x], at) => api.coord([x, one.band[at][0]]));
            const upper = one.points.map(([x], at) => api.coord([x, one.band[at][1]]));
            return { type: "polygon", shape: { points: [...upper, ...lower.reverse()] }, style: { fill: colour, opacity: 0.18 } };
          },
        });
      }
      series.push({
        type: "line", name: one.label, data: one.points, color: colour, z: 3, symbol: MARKERS[variant], symbolSize: 7,
        showSymbol: one.points.length <= MARKED, showAllSymbol: true, lineStyle: { width: 2, type: DASHES[variant] },
        emphasis: { focus: "series" },
      });
    });
    const rows = (x) => of.series.filter((one) => shown.has(one.label)).map((one) => {
      const y = heightAt(one.points, x);
      if (y === null) return "";
      const around = [0, 1].map((end) => one.band.length ? heightAt(one.points.map(([at], index) => [at, one.band[index][end]]), x) : 0);
      const interval = one.band.length ? ` (${short(around[0])} to ${short(around[1])})` : "";
      return `<br>${swatch(now.colours[one.colour])}${safe(one.label)}: <b>${short(y)}</b>${interval}`;
    });
    // One place alone is drawn in the middle; few places stay clear of the edges.
    const marked = !of.log && of.series.every((one) => one.points.length <= MARKED);
    const edge = (end) => (value) => {
      const room = value.max > value.min ? (marked ? (value.max - value.min) * 0.04 : 0) : Math.max(1, Math.abs(value.max) / 2);
      return (end < 0 ? value.min : value.max) + end * room;
    };
    const ends = of.log ? {} : { min: edge(-1), max: edge(1) };
    const most = of.top ? { max: (value) => Math.max(of.top, value.max) > of.top ? null : of.top } : {};
    return frame(now, {
      xAxis: axis(now, { type: of.log ? "log" : "value", scale: true, ...ends, ...named(now, of.x, "x"),
        axisLabel: { color: now.text, hideOverlap: true, showMinLabel: of.log, showMaxLabel: of.log, ...SMALL, formatter: short } }),
      yAxis: axis(now, { type: "value", ...most, ...named(now, of.y, "y"),
        axisLabel: { color: now.text, ...SMALL, formatter: short } }),
      tooltip: tooltip(now, { trigger: "axis", axisPointer: { type: "line" },
        formatter: (params) => `${safe(of.x)}: ${short(params[0].axisValue)}${rows(params[0].axisValue).join("")}` }),
      dataZoom: [{ type: "inside", filterMode: "none", zoomOnMouseWheel: "shift", moveOnMouseWheel: false }],
      series,
    });
  };

  // Bars of a category side by side, each with the ends of its interval.
  const barOptions = (of, now) => frame(now, {
    xAxis: axis(now, { type: "category", data: of.categories, axisTick: { show: false }, splitLine: { show: false } }),
    yAxis: axis(now, { type: "value", ...named(now, of.y, "y") }),
    tooltip: tooltip(now, { trigger: "item", formatter: (one) => {
      const [at, value, low, high] = one.value;
      const interval = low === undefined ? "" : ` (${short(low)} to ${short(high)})`;
      return `${safe(of.categories[at])}<br>${swatch(one.color)}${safe(one.seriesName)}: <b>${short(value)}</b>${interval}`;
    } }),
    series: of.series.map((one, index) => ({
      type: "custom", name: one.label, itemStyle: { color: now.colours[one.colour] },
      data: one.points.map((point, at) => [...point, ...(one.band[at] || [])]), encode: { x: 0, y: one.band.length ? [1, 2, 3] : [1] },
      renderItem: (_params, api) => {
        const width = (api.size([1, 0])[0] * 0.8) / of.series.length;
        const [middle, top] = api.coord([api.value(0), api.value(1)]);
        const base = api.coord([0, 0])[1];
        const left = middle + (index - of.series.length / 2) * width;
        const solid = one.variant % 2 === 0;
        const colour = now.colours[one.colour];
        const bar = { type: "rect", shape: { x: left, y: top, width: Math.max(1, width - 2), height: Math.max(1, base - top) },
          style: { fill: colour, opacity: solid ? 1 : 0.55, stroke: colour, lineWidth: solid ? 0 : 1.5 } };
        if (!one.band.length) return bar;
        const centre = left + width / 2 - 1;
        const ends = [2, 3].map((end) => api.coord([api.value(0), api.value(end)])[1]);
        const mark = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: now.text, lineWidth: 1.5 } });
        return { type: "group", children: [bar, mark(centre, ends[0], centre, ends[1]),
          ...ends.map((y) => mark(centre - 4, y, centre + 4, y))] };
      },
    })),
  });

  const luminance = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
    .reduce((sum, part, at) => sum + part * [0.3, 0.59, 0.11][at], 0);

  const ganttOptions = (of, now, shown, _width, only) => {
    const lanes = of.nodes.reduce((sum, [, count]) => sum + count, 0);
    let top = 0;
    const nodes = of.nodes.map(([name, count]) => [of.window[0], (top += count) - count, count, name]);
    const widest = Math.min(110, 10 + 6.2 * Math.max(...of.nodes.map(([name]) => name.length)));
    return frame(now, {
      grid: { left: widest, right: 18, top: 8, bottom: 62 },
      xAxis: axis(now, { type: "value", min: of.window[0], max: of.window[1], splitLine: { show: false }, ...named(now, of.x, "x"),
        axisLabel: { color: now.text, hideOverlap: true, ...SMALL, formatter: short } }),
      yAxis: { type: "value", min: 0, max: lanes, inverse: true, show: false },
      tooltip: tooltip(now, { trigger: "item", formatter: (one) => one.seriesIndex !== 1 ? "" :
        `<b>${safe(of.jobs[one.value[0]])}</b><br>${one.value[2]} GPU${one.value[2] > 1 ? "s" : ""}, hours ${short(one.value[3])} to ${short(one.value[4])}` }),
      dataZoom: [
        { type: "inside", filterMode: "weakFilter", zoomOnMouseWheel: "shift", moveOnMouseWheel: false },
        { type: "slider", filterMode: "weakFilter", height: 16, bottom: 6, brushSelect: false, showDetail: false },
      ],
      series: [
        { type: "custom", silent: true, clip: false, data: nodes, encode: { x: 0, y: 1 }, z: 1,
          renderItem: (params, api) => {
            const [, first, count, name] = nodes[params.dataIndex];
            const area = params.coordSys, y = api.coord([0, first])[1], end = api.coord([0, first + count])[1];
            return { type: "group", children: [
              { type: "line", shape: { x1: 0, y1: y, x2: area.x + area.width, y2: y }, style: { stroke: now.line, lineWidth: 0.8 } },
              { type: "text", style: { text: name, x: area.x - 6, y: (y + end) / 2, align: "right", verticalAlign: "middle",
                fill: now.text, fontSize: 11, width: area.x - 8, overflow: "truncate" } },
            ] };
          } },
        { type: "custom", name: "jobs", clip: true, data: of.boxes, encode: { x: [3, 4], y: 1 }, z: 2,
          renderItem: (params, api) => {
            const [job, lane, count, start, end] = [0, 1, 2, 3, 4].map((at) => api.value(at));
            const [x, y] = api.coord([start, lane]), [right, bottom] = api.coord([end, lane + count]);
            const rect = echarts.graphic.clipRectByRect({ x, y, width: right - x, height: bottom - y }, params.coordSys);
            if (!rect) return null;
            const colour = now.colours[of.colours[job]], name = of.jobs[job];
            const faded = only.job !== null && only.job !== job;
            const room = shown.has("job names") && rect.height >= 9 && rect.width > 14;
            return { type: "rect", shape: rect,
              style: { fill: colour, opacity: faded ? 0.12 : 1, stroke: now.back, lineWidth: rect.width > 3 ? 0.7 : 0 },
              textConfig: { position: "insideLeft", distance: 3 },
              textContent: !room || faded ? undefined : { style: { text: name, fill: luminance(colour) > 0.55 ? "#000" : "#fff",
                fontSize: Math.min(11, rect.height - 1), width: rect.width - 5, overflow: "truncate", ellipsis: "" } } };
          } },
        { type: "custom", silent: true, clip: true, z: 3, encode: { x: 0 }, data: shown.has("rounds") ? of.rounds.map((at) => [at, 0]) : [],
          renderItem: (params, api) => {
            const x = api.coord([api.value(0), 0])[0], area = params.coordSys;
            return { type: "line", shape: { x1: x, y1: area.y, x2: x, y2: area.y + area.height },
              style: { stroke: now.soft, lineWidth: 0.6, opacity: 0.6 } };
          } },
      ],
    });
  };

  const OPTIONS = { lines: lineOptions, bars: barOptions, gantt: ganttOptions };

  // A button of the legend: the dashes and the marker of a series, or a swatch.
  const symbol = (of, one, now) => {
    if (!one) return "";
    const colour = now.colours[one.colour];
    if (of.kind === "bars") return `<span class="key" style="background:${colour};opacity:${one.variant % 2 ? 0.55 : 1}"></span>`;
    const dash = DASHES[one.variant % DASHES.length];
    const marker = ["<circle cx='13' cy='5' r='3.4'/>", "<rect x='9.8' y='1.8' width='6.4' height='6.4'/>",
      "<path d='M13 1l4 7.4H9z'/>", "<path d='M13 .8l4.2 4.2-4.2 4.2L8.8 5z'/>"][one.variant % 4];
    return `<svg aria-hidden="true" fill="${colour}" stroke="${colour}"><path d="M0 5H26" stroke-width="2" ` +
      `stroke-dasharray="${dash === "solid" ? "" : dash}"/>${marker}</svg>`;
  };

  const setUp = (of, at) => {
    const plot = document.getElementById("plot-" + at), legend = plot.parentElement.querySelector(".legend");
    const names = of.kind === "gantt" ? ["job names", "rounds"] : of.series.map((one) => one.label);
    const shown = new Set(names), only = { job: null };
    if (of.kind !== "gantt" && !names.length) {
      plot.textContent = "Nothing to show.";
      return;
    }
    const lanes = of.kind === "gantt" ? of.nodes.reduce((sum, [, count]) => sum + count, 0) : 0;
    plot.style.height = of.kind === "gantt" ? `${lanes * Math.min(22, Math.max(6, 480 / lanes)) + 70}px` : "320px";
    const chart = echarts.init(plot, null, { renderer: "canvas" });
    const buttons = names.map((name, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.onclick = () => {
        if (!shown.delete(name)) shown.add(name);
        draw();
      };
      legend.append(button);
      return [button, name, of.series && of.series[index]];
    });
    if (of.kind === "gantt") find(legend, of, only, () => draw(), at);
    else if (names.length > 2) all(legend, names, shown, () => draw());
    const draw = () => {
      const now = theme();
      buttons.forEach(([button, name, one]) => {
        button.innerHTML = symbol(of, one, now) + safe(name);
        button.setAttribute("aria-pressed", shown.has(name));
      });
      const options = OPTIONS[of.kind](of, now, shown, plot.clientWidth, only);
      options.legend.selected = Object.fromEntries(names.map((name) => [name, shown.has(name)]));
      chart.setOption(options, { replaceMerge: ["series"] });
    };
    draw();
    if (of.kind === "gantt") {
      chart.on("click", (one) => {
        if (one.seriesIndex !== 1) return;
        only.job = only.job === one.value[0] ? null : one.value[0];
        legend.querySelector("input").value = only.job === null ? "" : of.jobs[only.job];
        draw();
      });
    }
    new ResizeObserver(() => chart.resize()).observe(plot);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  };

  const all = (legend, names, shown, draw) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "all / none";
    button.onclick = () => {
      const every = shown.size === names.length;
      names.forEach((name) => every ? shown.delete(name) : shown.add(name));
      draw();
    };
    legend.append(button);
  };

  const find = (legend, of, only, draw, at) => {
    const input = document.createElement("input"), list = document.createElement("datalist");
    list.id = "jobs-" + at;
    list.append(...of.jobs.map((job) => Object.assign(document.createElement("option"), { value: job })));
    input.setAttribute("list", list.id);
    input.type = "search";
    input.placeholder = "highlight a job";
    input.setAttribute("aria-label", "highlight a job");
    input.oninput = () => {
      const job = of.jobs.indexOf(input.value);
      only.job = job < 0 ? null : job;
      draw();
    };
    legend.append(input, list);
  };

  drawn.forEach(setUp);
  if (window.frameElement) { // in a notebook: as tall as its content
    const fit = () => { window.frameElement.style.height = `${document.documentElement.scrollHeight + 8}px`; };
    fit();
    new ResizeObserver(fit).observe(document.body);
  }
})();
