// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Tree } from "./dom";
import { bytes, count, duration, measured, percent, percentError, short, unknown } from "./format";
import { lines, read } from "./labels";
import { changed, href, parse } from "./route";
import { anew, another, leftOut, sorted, table } from "./table";

test("labels are read as they are pasted", () => {
  const f = (source: string, ...want: [string, string][]) => assert.deepEqual(read(source), want.map(([name, value]) => ({ name, value })), source);
  f("");
  f("a=b", ["a", "b"]);
  f('a="b"\nc = d e ', ["a", "b"], ["c", "d e"]);
  f('up{job="a", instance="b:1"}', ["__name__", "up"], ["job", "a"], ["instance", "b:1"]);
  f('{job="a,b", x="}"}', ["job", "a,b"], ["x", "}"]);
  f('{"a.b"="c"}', ["a.b", "c"]);
  f('{"a": "b", "c": 1}', ["a", "b"], ["c", "1"]);
  f('a="\\" \\\\ \\n"', ["a", '" \\ \n']);
  f("__address__: 10.1.2.3:9100", ["__address__", "10.1.2.3:9100"]);
});

test("labels that are written are read again", () => {
  const all = [{ name: "a", value: 'q"\\ \n,}' }, { name: "b", value: "" }, { name: "c", value: "\u202e<script>" }];
  assert.deepEqual(read(lines(all)), all);
});

test("numbers are short, and unknown when they are not known", () => {
  for (const f of [count, short, bytes, percent, duration]) assert.equal(f(null), unknown);
  assert.deepEqual([0, 999.6, 1000, -12_345, 1_234_567, 1e15].map(count), ["0", "1,000", "1,000", "-12,345", "1,234,567", "1,000,000,000,000,000"]);
  assert.deepEqual([0, 7, 999, 999.9, 1000, 51_000.5, 1_234_567].map(short), ["0", "7", "999", "1k", "1k", "51k", "1.23M"]);
  assert.deepEqual([0, 1023, 1024, 58_720_256].map(bytes), ["0 B", "1023 B", "1 KiB", "56 MiB"]);
  assert.deepEqual([0, 0.0004, 0.206, 1].map(percent), ["0%", "<0.1%", "20.6%", "100%"]);
  assert.deepEqual([[0.959, 0.014], [0.959, 0.002], [0.959, 0], [0.01, 0.0004]].map(([share, error]) => percentError(share!, error!)), [" ± 1.4%", "", "", ""]);
  assert.deepEqual([0, 0.0121, 9.5, 59.99, 61, 3600, 7260, 90_000].map(duration), ["0 s", "12.1 ms", "9.5 s", "1 m", "1 m 1 s", "1 h", "2 h 1 m", "1 d 1 h"]);
});

test("a rate is being measured, known, or unknown", () => {
  assert.equal(measured(null, null), "measuring");
  assert.equal(measured(null, 10), unknown);
  assert.equal(measured(0, null), "0/s");
  assert.equal(measured(2048, 10, bytes), "2 KiB");
});

test("an address holds a view's state", () => {
  const route = parse("#/targets/a%2Fb?q=x+y&state=failing");
  assert.equal(route.view, "targets");
  assert.equal(route.id, "a/b");
  assert.equal(route.params.get("q"), "x y");
  assert.equal(changed(route, { state: null, offset: 50 }), "#/targets/a%2Fb?q=x+y&offset=50");
  assert.equal(href("cardinality", "", { processor: null }), "#/cardinality");
  assert.equal(parse("").view, "overview");
  assert.equal(parse("#/targets/%zz").id, "%zz");
});

test("rows sort by number or by word", () => {
  const rows = [{ a: "b", n: 10 }, { a: "a", n: 9 }];
  const values = { a: (r: (typeof rows)[0]) => r.a, n: (r: (typeof rows)[0]) => r.n };
  assert.deepEqual(sorted(rows, { by: "a", down: false }, values).map((r) => r.a), ["a", "b"]);
  assert.deepEqual(sorted(rows, { by: "n", down: true }, values).map((r) => r.n), [10, 9]);
});

test("long lists are drawn in steps", () => {
  const rows = Array.from({ length: 120 }, (_, i) => ({ i }));
  const body = (list: readonly { i: number }[] = rows): readonly Tree[] => {
    const found = table<{ i: number }>({ caption: "Numbers", rows: list, key: (r) => String(r.i), columns: [{ title: "Number", cell: (r) => r.i }] });
    return ((found as Tree).children[0] as Tree).children.at(-1)!.children[0] as Tree[];
  };
  another();
  // As many rows at a time as one has the time for: 25 ms.
  for (const [n, took, more] of [[30, 25, true], [60, 12.5, true], [120, 40, false], [120, 40, false]] as const) {
    assert.equal(body().length, n);
    assert.equal(leftOut(took), more);
  }
  another();
  assert.equal(body().length, 30);
  assert.equal(leftOut(10_000), true);
  assert.equal(body().length, 40, "few on a busy machine");
  assert.equal(leftOut(1), true);
  another();
  assert.equal(body(rows.slice(0, 30)).length, 30);
  assert.equal(leftOut(), false);
});

test("rows of a long list stay as they are until it is their turn", () => {
  const list = (n: number) => Array.from({ length: n }, (_, i) => ({ i }));
  const body = (all: readonly { i: number }[]): readonly Tree[] => {
    const found = table<{ i: number }>({ caption: "Numbers", rows: all, key: (r) => String(r.i), columns: [{ title: "Number", cell: (r) => r.i }] });
    return ((found as Tree).children[0] as Tree).children.at(-1)!.children[0] as Tree[];
  };
  const finish = (all: readonly { i: number }[]): readonly Tree[] => {
    let drawn = body(all);
    while (leftOut(1)) drawn = body(all);
    return drawn;
  };
  const keys = (trees: readonly Tree[]) => trees.map((t) => t.props.key);
  another();
  const before = finish(list(100));
  assert.equal(before.length, 100);
  anew(); // a refresh, with a row that went and one that has moved to the front
  const next = [{ i: 99 }, ...list(99).slice(1)];
  const first = body(next);
  assert.equal(new Set(keys(first)).size, first.length, "none is there twice");
  assert.equal(first.length, 99);
  assert.equal(first[0]!.props.key, "99");
  assert.equal(first.at(-1), before[98], "as it stood");
  assert.equal(leftOut(1), true);
  assert.deepEqual(keys(finish(next)), next.map((r) => String(r.i)));
  assert.equal(leftOut(), false);
});
