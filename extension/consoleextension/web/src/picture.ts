// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// The pipelines as a picture: boxes in the order in which data meets them, what
// flows between them written on the arrows, what is lost leaving downwards.

import { svg, type Child, type Tree } from "./dom";
import type { Tone } from "./parts";

export interface Box {
  id: string;
  /** Empty for what is outside of the collector. */
  kind: string;
  name: string;
  /** What it is called in full, where name is a part of that. */
  words?: string;
  /** One line of what it is doing. */
  line: string;
  /** A second one, of what is outside. */
  more?: string;
  tone: Tone | null;
  /** What leaves here and does not go on. */
  losses: { text: string; tone: "bad" | "warn" }[];
  href: string;
}

export interface Arrow {
  from: string;
  to: string;
  above: string;
  below: string;
  /** Where one sees the data that passes. */
  href?: string;
  words?: string;
}

interface Place {
  box: Box;
  x: number;
  y: number;
}

interface Measure {
  w: number;
  h: number;
  /** Between a box and the next in the order of the flow, and beside it. */
  onward: number;
  beside: number;
}

const across: Measure = { w: 196, h: 66, onward: 112, beside: 34 };
const down: Measure = { w: 158, h: 72, onward: 62, beside: 16 };
const broadest = 220; // of boxes that stand above each other
const outsideWidth = 190;
const narrowest = 152; // of boxes side by side, for what they are doing
const nearest = 88; // to each other
const margin = 6; // room for strokes, and for what stands below the last line

/** Drawn from left to right where there is room for it, in boxes as wide as their names need if that helps, and else from top to bottom. */
export function picture(boxes: Box[], arrows: Arrow[], space: number): Tree {
  const room = space - 2 * margin;
  const ranks = rank(boxes, arrows);
  const most = Math.max(1, ...ranks.map((r) => r.length));
  const row = [lineUp(ranks, arrows, false), lineUp(ranks, arrows, true)].find((r) => room >= r.length * 0.8);
  return row ? horizontal(ranks, arrows, row, most) : vertical(ranks, arrows, most, room);
}

/** How wide boxes are from left to right, and what is between them. */
interface Row {
  widths: number[];
  gaps: number[];
  length: number;
}

function lineUp(ranks: Box[][], arrows: Arrow[], snug: boolean): Row {
  const widths = ranks.map((r) => {
    const broad = r.every((b) => !b.kind) ? outsideWidth : across.w;
    return snug ? Math.min(broad, Math.max(narrowest, ...r.map(nameWidth))) : broad;
  });
  const gaps = ranks.slice(1).map((_, i) => Math.max(snug ? nearest : across.onward, ...arrows.filter((a) => ranks[i]!.some((b) => b.id === a.from)).map(wordsWidth)));
  return { widths, gaps, length: [...widths, ...gaps].reduce((sum, w) => sum + w, 0) };
}

// What the name of a box needs, and no number in it: else the picture would change with these.
const nameWidth = (b: Box): number => Math.ceil(b.kind ? b.name.length * nameLetter + nameRoom : b.name.length * outsideLetter + outsideRoom);
const [nameLetter, nameRoom, outsideLetter, outsideRoom] = [8.4, 26, 8, 34];

// What stands on an arrow must not reach into the boxes at its ends.
const wordsWidth = (a: Arrow): number => lettersWidth(a) + 24;
const lettersWidth = (a: Arrow): number => Math.max(a.above.length * 7.6, a.below.length * 6.8);

function horizontal(ranks: Box[][], arrows: Arrow[], { widths, gaps, length }: Row, most: number): Tree {
  const { h, beside } = across;
  const places = new Map<string, Place & { w: number }>();
  let x = 0;
  ranks.forEach((boxes, i) => {
    const w = widths[i]!;
    const top = ((most - boxes.length) * (h + beside)) / 2;
    boxes.forEach((box, j) => places.set(box.id, { box, x, y: top + j * (h + beside), w }));
    if (boxes.length < most) align(boxes, arrows, places, "y", h + beside);
    x += w + (gaps[i] ?? 0);
  });
  return frame(0, length, lowest([...places.values()], h), false, [
    arrows.map((a) => {
      const from = places.get(a.from);
      const to = places.get(a.to);
      if (!from || !to) return null;
      const [x1, y1, x2, y2] = [from.x + from.w, from.y + h / 2, to.x - 8, to.y + h / 2];
      const middle = (x1 + x2) / 2;
      // Where arrows part or meet, each bears its words at the end that is its own.
      const own = arrows.filter((b) => b.from === a.from).length > 1 ? y2 : y1;
      // Of a curve they stand on the side from which it bends away.
      const straight = Math.abs(y2 - y1) <= 1;
      const below = !straight && (own === y2) === y2 > y1;
      const at = straight ? middle : middle + (own === y2 ? -10 : 2);
      return svg(
        "g",
        arrowProps(a),
        look(a, middle, (y1 + y2) / 2),
        svg("path", { class: "edge", d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}` }),
        svg("path", { class: "tip", d: `M${x2 - 1} ${y2 - 5}v10l9-5z` }),
        svg("text", { class: "flow", x: at, y: below ? own + 20 : own - 9, "text-anchor": "middle" }, a.above),
        svg("text", { class: "sub", x: at, y: below ? own + 36 : straight ? own + 20 : own - 25, "text-anchor": "middle" }, a.below),
      );
    }),
    [...places.values()].map((p) => node(p, p.w, h)),
  ]);
}

function vertical(ranks: Box[][], arrows: Arrow[], most: number, room: number): Tree {
  const { h, onward, beside } = down;
  const w = Math.min(broadest, Math.max(down.w, (room + beside) / most - beside));
  const places = new Map<string, Place>();
  const natural = most * (w + beside) - beside;
  const width = Math.max(room, natural);
  ranks.forEach((boxes, i) => {
    // What is wider than the screen begins at its edge, with what all of it follows from.
    const left = natural > room ? 0 : (width - boxes.length * (w + beside) + beside) / 2;
    boxes.forEach((box, j) => places.set(box.id, { box, x: left + j * (w + beside), y: i * (h + onward) }));
    if (boxes.length < most) align(boxes, arrows, places, "x", w + beside);
  });
  let [start, end] = [0, width]; // words may stand beside the boxes
  const ways = arrows.map((a) => {
    const from = places.get(a.from);
    const to = places.get(a.to);
    if (!from || !to) return null;
    const [x1, y1, x2, y2] = [from.x + w / 2, from.y + h, to.x + w / 2, to.y - 8];
    const middle = (y1 + y2) / 2;
    // The same here: beside the end that is straight and its own, and away from what curves beside it.
    const parts = arrows.filter((b) => b.from === a.from).length > 1 || x1 === x2;
    const others = arrows.flatMap((b) => (b === a ? [] : b.from === a.from ? [places.get(b.to)?.x ?? 0] : b.to === a.to ? [places.get(b.from)?.x ?? 0] : []));
    const left = x1 === x2 ? others.some((o) => o > to.x) && !others.some((o) => o < to.x) : parts ? x2 < x1 : x1 < x2;
    const x = (parts ? x2 : x1) + (left ? -10 : 10);
    const y = x1 === x2 ? middle : parts ? y2 - 18 : y1 + 18;
    const anchor = left ? "end" : "start";
    if (left) start = Math.min(start, x - lettersWidth(a));
    else end = Math.max(end, x + lettersWidth(a));
    return svg(
      "g",
      arrowProps(a),
      look(a, (x1 + x2) / 2, middle),
      svg("path", { class: "edge", d: `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}` }),
      svg("path", { class: "tip", d: `M${x2 - 5} ${y2 - 1}h10l-5 9z` }),
      svg("text", { class: "flow", x, y: a.below ? y - 2 : y + 5, "text-anchor": anchor }, a.above),
      svg("text", { class: "sub", x, y: y + 14, "text-anchor": anchor }, a.below),
    );
  });
  return frame(start, end - start, ranks.length * (h + onward) - onward, end - start > room * 1.1, [ways, [...places.values()].map((p) => node(p, w, h, true))]);
}

// What stands on an arrow is for the eye: screen readers have it in the boxes. Where one can look at data it is a link.
const arrowProps = (a: Arrow) => (a.href ? { class: "way" } : { "aria-hidden": "true" });

function look(a: Arrow, x: number, y: number): Tree | null {
  if (!a.href) return null;
  return svg("a", { href: a.href, "aria-label": a.words ?? "Look at data" }, svg("title", null, a.words ?? ""), svg("rect", { class: "hit", x: x - 48, y: y - 26, width: 96, height: 52, rx: 6 }));
}

// What alone follows on something stands in line with it.
function align(boxes: Box[], arrows: Arrow[], places: Map<string, Place>, axis: "x" | "y", apart: number): void {
  for (const box of boxes) {
    const before = arrows.filter((a) => a.to === box.id).map((a) => places.get(a.from));
    const line = before[0]?.[axis];
    if (before.length === 1 && line !== undefined && boxes.every((b) => b === box || Math.abs(places.get(b.id)![axis] - line) >= apart)) places.get(box.id)![axis] = line;
  }
}

// Where the picture ends, with what hangs below a box.
const lowest = (places: Place[], h: number): number => Math.max(0, ...places.map((p) => p.y + h + p.box.losses.length * 20));

// A picture shrinks a little to fit, or it scrolls: what cannot be read is no use.
function frame(left: number, width: number, height: number, scrolls: boolean, content: Child): Tree {
  return svg(
    "svg",
    {
      viewBox: `${left - margin} ${-margin} ${width + 2 * margin} ${height + 2 * margin}`,
      role: "group",
      "aria-label": "The way of the data, from its sources to its destinations",
      style: { [scrolls ? "min-width" : "max-width"]: `${width + 2 * margin}px`, margin: "0 auto" },
    },
    content,
  );
}

// The longest way from a source says how far on a box stands.
function rank(boxes: Box[], arrows: Arrow[]): Box[][] {
  const depth = new Map(boxes.map((b) => [b.id, 0]));
  for (let round = 0; round < boxes.length; round++) {
    let moved = false;
    for (const { from, to } of arrows) {
      const next = (depth.get(from) ?? 0) + 1;
      if (depth.has(to) && next > depth.get(to)! && next < boxes.length) {
        depth.set(to, next);
        moved = true;
      }
    }
    if (!moved) break;
  }
  // What has nothing before it stands right before what it feeds, so that receivers stand together.
  for (const { id } of boxes) {
    const next = arrows.filter((a) => a.from === id).map((a) => depth.get(a.to) ?? 0);
    if (next.length && !arrows.some((a) => a.to === id)) depth.set(id, Math.max(0, Math.min(...next) - 1));
  }
  const ranks: Box[][] = [];
  for (const box of boxes) (ranks[depth.get(box.id)!] ??= []).push(box);
  return ranks.filter((r) => r?.length);
}

function node({ box, x, y }: Place, w: number, h: number, inline = false): Tree {
  const inside = box.kind !== "";
  const letters = Math.floor(inside ? (w - nameRoom) / nameLetter : (w - outsideRoom) / outsideLetter); // those of an address are narrower
  const lossInside = inline && box.losses[0];
  const more = inside || lossInside ? "" : (box.more ?? "");
  const subLetters = Math.floor((w - 20) / 6.3);
  const raised = more ? 9 : 0;
  const words = [box.kind, box.words ?? box.name, box.line, box.more, ...box.losses.map((l) => l.text)].filter(Boolean).join(", ");
  return svg(
    "g",
    null,
    svg(
      "a",
      { href: box.href }, // its title is its name
      svg("title", null, words),
      svg("rect", { class: inside ? "node" : "node outside", x, y, width: w, height: h, rx: 8 }),
      inside ? svg("text", { class: "kind", x: x + 13, y: y + 20 }, box.kind) : null,
      box.tone ? svg("circle", { class: `dot ${box.tone}`, cx: x + w - (inside ? 15 : 11), cy: y + (inside ? 16 : 11), r: 4.5 }) : null,
      svg("text", { class: "name", x: inside ? x + 13 : x + w / 2, y: inside ? y + 40 : y + 33 - raised, "text-anchor": inside ? "start" : "middle" }, shorten(box.name, letters)),
      lossInside
        ? svg("text", { class: `loss ${lossInside.tone}`, x: x + 13, y: y + 58 }, box.losses.map((l) => l.text).join(", "))
        : svg("text", { class: "sub", x: inside ? x + 13 : x + w / 2, y: inside ? y + 58 : y + 51 - raised, "text-anchor": inside ? "start" : "middle" }, shorten(box.line, subLetters)),
      more ? svg("text", { class: "sub", x: x + w / 2, y: y + 57, "text-anchor": "middle" }, shorten(more, subLetters)) : null,
    ),
    !inline && box.losses.map((loss, i) => [
      svg("path", { class: `lost ${loss.tone}`, d: `M${x + 20} ${y + h + i * 18}v15` }),
      svg("text", { class: `loss ${loss.tone}`, x: x + 28, y: y + h + 15 + i * 18 }, loss.text),
    ]),
  );
}

function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
