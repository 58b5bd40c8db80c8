// A sortable table in pages. Rows are kept by key, and a cell is written only when its text changes.

import { h, keyed, setText } from "./dom.js";
import { number } from "./format.js";
import { read, setFilters } from "./router.js";

/**
 * Columns: {id, label, text(row), node?(row), sort?(row), num?, head?, cls?, title?(row)}. `node` makes what a cell shows
 * when `text`, its signature, changes. `link(row)` is where a row leads. Sort and page stand in the address by `name`.
 */
export class Table {
  constructor({ name = "", caption, columns, keyOf, link, size = 50, empty = "Nothing to show.", sorted = "" }) {
    Object.assign(this, { name, columns, keyOf, link, size, empty, sorted, rows: [] });
    this.heads = columns.map((column) =>
      h("th", { scope: "col", class: column.num ? "num" : null },
        column.sort ? h("button", { type: "button", onclick: () => this.#sortBy(column) }, column.label) : column.label));
    this.body = h("tbody");
    this.told = h("p", { class: "state" }, empty);
    this.where = h("span");
    this.back = h("button", { type: "button", onclick: () => this.#go(-1) }, "Previous");
    this.on = h("button", { type: "button", onclick: () => this.#go(1) }, "Next");
    this.pager = h("nav", { class: "pager", "aria-label": `Pages: ${caption}` }, this.back, this.on, this.where);
    const table = h("table", {}, h("caption", { class: "unseen" }, caption), h("thead", {}, h("tr", {}, this.heads)), this.body);
    this.scroll = h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, table);
    this.element = h("div", {}, this.scroll, this.told, this.pager);
  }

  #state() {
    const { filters } = read();
    return { sort: filters[`${this.name}sort`] ?? this.sorted, page: Number(filters[`${this.name}page`] ?? 1) || 1 };
  }

  #sortBy(column) {
    const { sort } = this.#state();
    const next = sort === column.id ? `-${column.id}` : column.id;
    setFilters({ [`${this.name}sort`]: next === this.sorted ? "" : next, [`${this.name}page`]: "" });
    this.update(this.rows);
  }

  #go(step) {
    setFilters({ [`${this.name}page`]: String(this.#state().page + step) });
    this.update(this.rows);
    this.scroll.scrollIntoView({ block: "nearest" });
  }

  update(rows) {
    this.rows = rows;
    const { sort, page } = this.#state();
    const shown = this.#sort(rows, sort);
    const pages = Math.max(1, Math.ceil(shown.length / this.size));
    const at = Math.min(Math.max(1, page), pages);
    const begin = (at - 1) * this.size;
    const slice = shown.slice(begin, begin + this.size);
    keyed(this.body, slice, this.keyOf, () => this.#make(), (element, row) => this.#fill(element, row));
    this.told.hidden = rows.length > 0;
    this.scroll.hidden = rows.length === 0;
    this.pager.hidden = pages === 1;
    this.back.disabled = at === 1;
    this.on.disabled = at === pages;
    setText(this.where, `${number(begin + 1)} to ${number(begin + slice.length)} of ${number(shown.length)}`);
  }

  #sort(rows, sort) {
    const down = sort.startsWith("-");
    const column = this.columns.find((one) => one.id === sort.replace("-", ""));
    this.columns.forEach((one, place) => {
      if (one.sort) this.heads[place].setAttribute("aria-sort", one !== column ? "none" : down ? "descending" : "ascending");
    });
    if (!column?.sort) return rows;
    const keys = rows.map((row) => [column.sort(row), row]);
    const compare = (a, b) => {
      if (a === b) return 0;
      if (a === null || a === undefined) return 1;
      if (b === null || b === undefined) return -1;
      const order = typeof a === "string" ? a.localeCompare(b) : a - b;
      return down ? -order : order;
    };
    return keys.sort(([a], [b]) => compare(a, b)).map(([, row]) => row);
  }

  #make() {
    const cells = this.columns.map((column) =>
      h(column.head ? "th" : "td", { scope: column.head ? "row" : null, class: [column.num ? "num" : "", column.cls ?? ""].join(" ").trim() }));
    const row = h("tr", {}, cells);
    row.cells_ = cells;
    row.texts_ = [];
    row.addEventListener("click", (event) => {
      if (row.link_ && !event.target.closest("a, button") && !String(getSelection())) location.hash = row.link_;
    });
    return row;
  }

  #fill(element, row) {
    const link = this.link?.(row);
    if (link !== element.link_) {
      element.link_ = link;
      if (link) element.dataset.link = "";
      else delete element.dataset.link;
    }
    this.columns.forEach((column, place) => {
      const text = column.text(row);
      if (element.texts_[place] === text) return;
      element.texts_[place] = text;
      const cell = element.cells_[place];
      if (column.node) cell.replaceChildren(...[column.node(row)].flat().filter(Boolean));
      else if (column.head && link) cell.replaceChildren(h("a", { href: link }, text));
      else cell.textContent = text;
    });
  }
}
