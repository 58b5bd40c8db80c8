// The GPUs of all nodes on a canvas: a box for each node, a cell for each GPU in its job's colour.

import { jobColors } from "./colors.js";
import { css } from "./charts.js";
import { announce, h } from "./dom.js";
import { cpus, gib, gpus, jobLink, number } from "./format.js";

const SIZES = [[60, 15, true], [240, 10, false], [700, 7, false], [Infinity, 5, false]];
const HEAD = 24;
const LABEL = 13;

/** How many GPUs of the node each of its jobs has. Jobs on several nodes are taken to be spread evenly, except where no
 * job is hidden: then what is left of the given GPUs is theirs. */
function gpusOf(node, jobs, hidden) {
  const names = [...new Set(node.jobs)];
  const rows = names.map((name) => jobs.get(name));
  const many = new Map(names.map((name, place) => [name, rows[place] ? Math.max(1, Math.round(rows[place].gpus / Math.max(1, rows[place].nodes))) : 1]));
  const spread = names.filter((_, place) => rows[place]?.nodes > 1);
  if (hidden || !spread.length || rows.some((row) => row?.partners.length)) return many;
  let left = node.gpus_given - names.reduce((sum, name) => sum + (spread.includes(name) ? 0 : many.get(name)), 0);
  spread.forEach((name, place) => {
    const own = place === spread.length - 1 ? left : Math.min(many.get(name), left - (spread.length - 1 - place));
    many.set(name, Math.max(1, own));
    left -= Math.max(1, own);
  });
  return many;
}

/** Which jobs each GPU of a node has: known ones, then those that the user may not see as an empty name. */
export function cellsOf(node, jobs, hidden) {
  const cells = Array.from({ length: node.gpus }, () => []);
  const many = gpusOf(node, jobs, hidden);
  let at = 0;
  const done = new Set();
  const put = (name, number, beside) => {
    let place = beside ?? at;
    for (let one = 0; one < number && node.gpus > 0; one += 1, place += 1) cells[place % node.gpus].push(name);
    if (beside === undefined) at = place;
    return place - number;
  };
  for (const name of many.keys()) {
    if (done.has(name)) continue;
    done.add(name);
    const begin = put(name, many.get(name));
    for (const partner of jobs.get(name)?.partners ?? []) {
      if (done.has(partner) || !many.has(partner)) continue;
      done.add(partner);
      put(partner, many.get(partner), begin);
    }
  }
  let left = Math.min(node.gpus, node.gpus_given) - cells.filter((one) => one.length).length;
  for (const cell of cells) {
    if (hidden && left > 0 && !cell.length) {
      cell.push("");
      left -= 1;
    }
  }
  return cells;
}

export class NodeGrid {
  constructor() {
    this.canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "GPUs by node" });
    this.bubble = h("div", { class: "bubble", hidden: true });
    this.element = h("div", { class: "nodes" }, this.canvas, this.bubble);
    this.boxes = [];
    this.cursor = -1;
    this.seen = new ResizeObserver(() => this.draw());
    this.seen.observe(this.element);
    this.themed = () => this.draw();
    addEventListener("theme", this.themed);
    this.canvas.addEventListener("pointermove", (event) => this.#point(event));
    this.canvas.addEventListener("pointerleave", () => this.#show(-1));
    this.canvas.addEventListener("click", (event) => this.#open(event));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    this.canvas.addEventListener("blur", () => this.#show(-1));
  }

  remove() {
    this.seen.disconnect();
    removeEventListener("theme", this.themed);
  }

  /** `nodes` in the order to draw, `jobs` by name; `highlight` is the name of a job or nothing, `hidden` the number of jobs that the user may not see. */
  update(nodes, jobs, highlight = "", hidden = 0) {
    Object.assign(this, { nodes, jobs, highlight, hidden });
    this.draw();
  }

  draw() {
    const width = this.element.clientWidth;
    if (!this.nodes || !width) return;
    const height = this.#layout(width);
    const scale = devicePixelRatio || 1;
    const [w, t] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== w || this.canvas.height !== t) {
      this.canvas.width = w;
      this.canvas.height = t;
      this.canvas.style.height = `${height}px`;
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.ink = { text: css("text"), muted: css("muted"), free: css("free"), line: css("line-strong"), surface: css("surface"), accent: css("accent") };
    this.font = getComputedStyle(document.body).fontFamily;
    for (const head of this.heads) this.#head(pen, head);
    this.boxes.forEach((box, place) => this.#box(pen, box, place === this.cursor));
  }

  #layout(width) {
    const [, size, labels] = SIZES.find(([most]) => this.nodes.length <= most);
    const gap = size > 8 ? 2 : 1;
    const apart = size > 8 ? 10 : size > 5 ? 6 : 4;
    this.heads = [];
    this.boxes = [];
    let y = 0;
    for (const [type, nodes] of grouped(this.nodes)) {
      this.heads.push({ y: y + 15, text: type || "No GPU type", nodes });
      y += HEAD;
      let x = 0;
      let tallest = 0;
      for (const node of nodes) {
        const across = Math.max(1, Math.min(node.gpus, 4));
        const down = Math.max(1, Math.ceil(node.gpus / across));
        const wide = across * (size + gap) - gap + 6;
        const tall = down * (size + gap) - gap + 6 + (labels ? LABEL : 0);
        const room = labels ? Math.max(wide, 72) : wide;
        if (x > 0 && x + wide > width) {
          x = 0;
          y += tallest + apart;
          tallest = 0;
        }
        this.boxes.push({ node, x, y, wide, tall, across, size, gap, labels, room });
        x += room + apart;
        tallest = Math.max(tallest, tall);
      }
      y += tallest + 12;
    }
    return Math.max(40, y);
  }

  #head(pen, { y, text, nodes }) {
    pen.font = `600 13px ${this.font}`;
    pen.fillStyle = this.ink.text;
    pen.fillText(text, 0, y);
    const wide = pen.measureText(text).width;
    pen.font = `12px ${this.font}`;
    pen.fillStyle = this.ink.muted;
    pen.fillText(`${number(nodes.length)} nodes, ${gpus(nodes.reduce((sum, one) => sum + one.gpus, 0))}`, wide + 10, y);
  }

  #box(pen, box, focused) {
    const { node, x, y, wide, across, size, gap, labels } = box;
    const tall = box.tall - (labels ? LABEL : 0);
    box.cells = cellsOf(node, this.jobs, this.hidden > 0);
    if (!node.open_to_new) this.#closed(pen, x, y, wide, tall);
    pen.lineWidth = focused ? 2 : 1;
    pen.strokeStyle = focused ? this.ink.accent : this.ink.line;
    pen.setLineDash(node.open_to_new || focused ? [] : [3, 2]);
    pen.strokeRect(x + 0.5, y + 0.5, wide - 1, tall - 1);
    pen.setLineDash([]);
    box.cells.forEach((names, place) => {
      const left = x + 3 + (place % across) * (size + gap);
      const top = y + 3 + Math.floor(place / across) * (size + gap);
      this.#cell(pen, names, left, top, size, node.open_to_new);
    });
    if (!labels) return;
    pen.font = `11px ${this.font}`;
    pen.fillStyle = this.ink.muted;
    const label = node.node.length > 12 ? `${node.node.slice(0, 4)}…${node.node.slice(-7)}` : node.node;
    pen.fillText(label, x, y + tall + 11);
  }

  #closed(pen, x, y, wide, tall) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, wide, tall);
    pen.clip();
    pen.strokeStyle = this.ink.line;
    pen.lineWidth = 1;
    pen.beginPath();
    for (let at = -tall; at < wide; at += 5) {
      pen.moveTo(x + at, y + tall);
      pen.lineTo(x + at + tall, y);
    }
    pen.stroke();
    pen.restore();
  }

  #cell(pen, names, left, top, size, open) {
    const faint = this.highlight && !names.includes(this.highlight);
    pen.globalAlpha = faint ? 0.18 : 1;
    const color = (name) => (name ? jobColors.of(name) : this.ink.line);
    if (names.length === 0) {
      if (open) {
        pen.fillStyle = this.ink.free;
        pen.fillRect(left, top, size, size);
      }
    } else {
      pen.fillStyle = color(names[0]);
      pen.fillRect(left, top, size, size);
    }
    if (names.length > 1) {
      pen.fillStyle = color(names[1]);
      pen.beginPath();
      pen.moveTo(left + size, top);
      pen.lineTo(left + size, top + size);
      pen.lineTo(left, top + size);
      pen.fill();
      if (size > 5) {
        pen.strokeStyle = this.ink.surface;
        pen.lineWidth = 1.5;
        pen.beginPath();
        pen.moveTo(left + size, top);
        pen.lineTo(left, top + size);
        pen.stroke();
      }
    }
    pen.globalAlpha = 1;
  }

  #at(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const place = this.boxes.findIndex((box) => x >= box.x && x <= box.x + box.wide && y >= box.y && y <= box.y + box.tall);
    return [place, x, y];
  }

  #point(event) {
    const [place] = this.#at(event);
    if (place !== this.cursor) this.#show(place);
  }

  #show(place) {
    if (place === this.cursor) return;
    this.cursor = place;
    this.draw();
    const box = this.boxes[place];
    this.bubble.hidden = !box;
    if (!box) return;
    const { node } = box;
    const names = [...new Set(node.jobs)];
    const lines = [
      `${node.gpu_type}: ${number(node.gpus_given)} of ${gpus(node.gpus)} given`,
      `${cpus(node.cpu_millis_given)} of ${cpus(node.cpu_millis)}, ${gib(node.memory_bytes_given)} of ${gib(node.memory_bytes)} given`,
      node.open_to_new ? "" : "Not open to new work",
      box.cells?.some((one) => one.length > 1) ? "Jobs share a GPU here" : "",
    ].filter(Boolean);
    this.bubble.replaceChildren(h("b", {}, node.node), lines.map((one) => h("div", {}, one)).reduce((list, one) => (list.append(one), list), h("div")),
      ...names.slice(0, 8).map((name) => h("div", {}, h("span", { class: "swatch", style: { "--swatch": jobColors.of(name) } }), name)),
      names.length > 8 ? `and ${names.length - 8} more` : "");
    const wide = this.bubble.offsetWidth;
    this.bubble.style.left = `${Math.max(0, Math.min(box.x, this.element.clientWidth - wide))}px`;
    this.bubble.style.top = `${box.y + box.tall + 6}px`;
    return [node.node, ...lines, names.length ? `Jobs: ${names.join(", ")}` : "No jobs"].join(". ");
  }

  #open(event) {
    const [place, x, y] = this.#at(event);
    const box = this.boxes[place];
    if (!box) return;
    const across = Math.floor((x - box.x - 3) / (box.size + box.gap));
    const down = Math.floor((y - box.y - 3) / (box.size + box.gap));
    const names = box.cells[down * box.across + across] ?? [];
    const name = names.find(Boolean) ?? box.node.jobs[0];
    if (name) location.hash = jobLink(name);
  }

  #key(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
    const box = this.boxes[this.cursor];
    let next;
    if (event.key in steps) next = this.cursor + steps[event.key];
    else if (["ArrowDown", "ArrowUp"].includes(event.key)) next = this.#vertical(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Enter" && box?.node.jobs[0]) location.hash = jobLink(box.node.jobs[0]);
    else if (event.key === "Escape") this.#show(-1);
    if (next === undefined) return;
    event.preventDefault();
    const told = this.#show(Math.max(0, Math.min(this.boxes.length - 1, next)));
    if (told) announce(told);
  }

  #vertical(way) {
    const from = this.boxes[this.cursor] ?? { x: 0, y: -1 };
    const rows = this.boxes.map((box, place) => [box, place]).filter(([box]) => way * (box.y - from.y) > 0);
    const best = rows.sort(([a], [b]) => Math.abs(a.y - from.y) - Math.abs(b.y - from.y) || Math.abs(a.x - from.x) - Math.abs(b.x - from.x))[0];
    return best ? best[1] : this.cursor;
  }
}

function grouped(nodes) {
  const groups = new Map();
  for (const node of nodes) {
    if (!groups.has(node.gpu_type)) groups.set(node.gpu_type, []);
    groups.get(node.gpu_type).push(node);
  }
  return groups;
}
