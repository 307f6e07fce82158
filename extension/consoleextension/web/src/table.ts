// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

import { h, type Child, type Tree } from "./dom";
import { change, parse, type Route } from "./route";

export interface Column<Row> {
  title: string;
  cell: (row: Row) => Child;
  /** Numbers stand right, under each other. */
  numeric?: boolean;
  /** The name under which the address and the API sort by it. */
  sort?: string;
  /** Biggest first is what one asks for first. */
  descending?: boolean;
  /** Heads its row for screen readers. */
  head?: boolean;
  class?: string;
}

export interface Options<Row> {
  caption: string;
  columns: (Column<Row> | null | false)[];
  rows: readonly Row[];
  key?: (row: Row, index: number) => string;
  tone?: (row: Row) => string;
  /** Where the state of sorting is kept; without it nothing sorts. */
  route?: Route;
  initial?: Order;
  /** The API knows only "most first". */
  mostFirst?: boolean;
  none?: Child;
}

export interface Order {
  by: string;
  down: boolean;
}

export function order(route: Route, initial: Order): Order {
  const by = route.params.get("sort");
  return by ? { by, down: route.params.get("order") === "desc" } : { ...initial };
}

/** Of a long list so many rows are drawn at once: a screen and a bit. The others follow, as many at a time as take the time of a step. */
const screenful = 30;
/** How long a step may take, in milliseconds: between two of them the page answers. */
const stepTime = 25;
const fewest = 10;
const most = 100;
/** How many rows are described anew, and how many more will be in the next step. */
let drawn = screenful;
let pace = screenful;
let waiting = false;

/** Which rows were described for the drawing that goes on, so that its next step need not do so again. */
const described = new WeakMap<object, { drawing: number; caption: string; tree: Tree }>();
let drawing = 0;
/** The rows that stand on the page, by the captions of long lists: until its turn comes each stays as it was. */
const standing = new Map<string, Tree[]>();

/** Something is drawn anew, and not the next step of what is there. */
export function anew(): void {
  drawing++;
  drawn = screenful;
}

/** Another list comes: nothing of the one before stays. */
export function another(): void {
  standing.clear();
  drawn = screenful;
}

/** Whether rows were left out; the next time more of them are drawn: by how long this step took, as many as one has the time for. */
export function leftOut(took = 0): boolean {
  const some = waiting;
  waiting = false;
  if (some) {
    pace = Math.max(fewest, Math.min(most, 2 * pace, Math.round((pace * stepTime) / Math.max(1, took))));
    drawn += pace;
  }
  return some;
}

/**
 * On a narrow screen each row becomes a card that names its cells: see data-title in the style sheet. Tables that are
 * not laid out as such lose their roles in browsers, so these are explicit.
 */
export function table<Row>(options: Options<Row>): Child {
  const columns = options.columns.filter((c): c is Column<Row> => !!c);
  if (options.rows.length === 0 && options.none !== undefined) return options.none;
  const rows = options.rows.slice(0, drawn).map((row, i) => line(options, columns, row, i));
  if (options.rows.length > screenful) patient(options, rows);
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "cards", role: "table", "data-many": options.rows.length > screenful },
      h("caption", { class: "unseen" }, options.caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns.map((c) => title(c, options)))),
      h("tbody", { role: "rowgroup" }, rows),
    ),
  );
}

/** Adds to the rows of a long list that were drawn in time those that wait for their turn, as they stand. */
function patient<Row>({ caption, rows: all, key }: Options<Row>, rows: Tree[]): void {
  if (rows.length < all.length) {
    waiting = true;
    const before = new Map(standing.get(caption)?.map((tree) => [tree.props.key, tree]));
    for (let i = rows.length; key && i < all.length; i++) {
      const tree = before.get(key(all[i]!, i));
      if (tree) rows.push(tree);
    }
  }
  standing.set(caption, rows);
}

function line<Row>({ caption, key, tone }: Options<Row>, columns: Column<Row>[], row: Row, i: number): Tree {
  const known = typeof row === "object" && row ? described.get(row) : undefined;
  if (known?.drawing === drawing && known.caption === caption) return known.tree;
  const tree = h(
    "tr",
    { role: "row", key: key?.(row, i), class: tone?.(row) || undefined },
    columns.map((c) => cell(c, row)),
  );
  if (typeof row === "object" && row) described.set(row, { drawing, caption, tree });
  return tree;
}

function cell<Row>(column: Column<Row>, row: Row): Tree {
  const props = { class: [column.numeric ? "n" : "", column.class ?? ""].join(" ").trim() || undefined, "data-title": column.title || undefined };
  return column.head ? h("th", { ...props, scope: "row", role: "rowheader" }, column.cell(row)) : h("td", { ...props, role: "cell" }, h("div", { class: "cell" }, column.cell(row)));
}

function title<Row>(column: Column<Row>, { route, initial = { by: "", down: false }, mostFirst }: Options<Row>): Tree {
  const kind = column.numeric ? "n" : undefined;
  const props = { scope: "col", role: "columnheader", class: kind };
  if (!route || !column.sort) return h("th", props, column.title || h("span", { class: "unseen" }, "More"));
  const shown = order(route, initial);
  if (mostFirst) shown.down = true;
  const here = shown.by === column.sort;
  const sort = () => {
    const now = order(parse(location.hash), initial); // who presses twice means both
    const down = now.by === column.sort ? !now.down : !!column.descending;
    change({ sort: column.sort, order: down && !mostFirst ? "desc" : null, offset: null });
  };
  return h("th", { ...props, "aria-sort": here ? (shown.down ? "descending" : "ascending") : "none" }, h("button", { type: "button", class: "sort", on: { click: sort } }, column.title));
}

/** Sorts rows that are all here by a column of theirs. */
export function sorted<Row>(rows: readonly Row[], { by, down }: Order, values: Record<string, (row: Row) => string | number>): Row[] {
  const value = values[by];
  if (!value) return [...rows];
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const x = value(a);
    const y = value(b);
    return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
  });
}
