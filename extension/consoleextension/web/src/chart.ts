// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// The last hour of something, drawn by uPlot. A chart is told apart by its key and
// lives as long as its place on the page.

import uPlot from "uplot";
import { h, type Tree } from "./dom";
import { duration } from "./format";
import { theme, token } from "./settings";

export interface Line {
  label: string;
  values: (number | null)[];
  /** A token of the style sheet. */
  colour: string;
  dashed?: boolean;
}

export interface Chart {
  key: string;
  title: string;
  /** Seconds since 1970. */
  times: number[];
  /** How far back it goes, in seconds: the same for all charts of a page. */
  range: number;
  lines: Line[];
  format: (n: number | null | undefined) => string;
  /** Steps of the axis are powers of two, as those of bytes are. */
  binary?: boolean;
  /** There are no halves. */
  whole?: boolean;
}

interface Drawn {
  plot: uPlot;
  look: string;
}

const drawn = new Map<HTMLElement, Drawn>();
const height = 132;

export function chart(spec: Chart): Tree {
  const last = (line: Line) => spec.format(line.values[line.values.length - 1]);
  return h(
    "figure",
    { class: "chart", key: spec.key },
    h(
      "figcaption",
      null,
      h("span", { class: "chart-title" }, spec.title),
      h("span", { class: "chart-when" }),
      h(
        "span",
        { class: spec.lines.length > 1 ? "legends below" : "legends" },
        spec.lines.map((line) =>
          h(
            "span",
            { class: "legend" },
            h("span", { class: `swatch ${line.colour}${line.dashed ? " dashed" : ""}`, "aria-hidden": "true" }),
            spec.lines.length > 1 ? `${line.label} ` : "",
            h("b", null, last(line)),
          ),
        ),
      ),
    ),
    h("div", { class: "plot", key: `${spec.key}-plot`, role: "img", "aria-label": words(spec), mount: (place) => draw(place, spec) }),
  );
}

// What the picture shows, for those who do not see it.
function words(spec: Chart): string {
  const told = spec.lines.map((line) => {
    const values = line.values.filter((v): v is number => v !== null);
    if (values.length === 0) return `${line.label}: no data yet`;
    return `${line.label}: now ${spec.format(values[values.length - 1])}, lowest ${spec.format(Math.min(...values))}, highest ${spec.format(Math.max(...values))}`;
  });
  return `${spec.title}, last ${duration(spec.range)}. ${told.join(". ")}`;
}

function draw(place: HTMLElement, spec: Chart): void {
  for (const [old, { plot }] of drawn) {
    if (!old.isConnected) {
      plot.destroy();
      drawn.delete(old);
      resized.unobserve(old);
    }
  }
  const data: uPlot.AlignedData = [spec.times, ...spec.lines.map((line) => line.values)];
  // Colours are baked into a plot: another theme or another set of lines is another plot.
  const look = [theme(), token("text"), spec.range, ...spec.lines.map((line) => line.label + line.colour)].join("|");
  const now = drawn.get(place);
  if (now && now.look === look) {
    now.plot.setData(data);
    return;
  }
  now?.plot.destroy();
  place.replaceChildren();
  const width = place.clientWidth || 320;
  drawn.set(place, { look, plot: new uPlot(options(spec, width, place), data, place) });
  resized.observe(place);
}

const resized = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const plot = drawn.get(target as HTMLElement)?.plot;
    if (plot && contentRect.width > 0 && Math.abs(plot.width - contentRect.width) > 1) plot.setSize({ width: Math.floor(contentRect.width), height });
  }
});

function options(spec: Chart, width: number, place: HTMLElement): uPlot.Options {
  const axis: Partial<uPlot.Axis> = {
    stroke: token("muted"),
    font: `11px ${token("sans")}`,
    grid: { stroke: token("grid"), width: 1 },
    ticks: { show: false },
    border: { show: false },
  };
  return {
    width,
    height,
    padding: [8, 16, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 }, sync: { key: "hour" } },
    // All charts of a page have the same times. Those that have just begun do not stretch a minute over the page.
    scales: { x: { time: true, range: (_, min, max) => [Math.max(max - spec.range, Math.min(min, max - 600)), max] }, y: { range: (_, __, max) => [0, (max > 0 ? max : 1) * 1.08] } },
    axes: [
      { ...axis, space: 70, size: 28, gap: 8, incrs: minutes, values: (_, times) => times.map((t) => new Date(t * 1000).toLocaleTimeString("sv-SE", { hour: "2-digit", minute: "2-digit" })) },
      { ...axis, space: 32, size: 58, gap: 4, values: (_, ticks) => ticks.map((t) => spec.format(t)), ...(spec.binary ? { incrs: powers } : spec.whole ? { incrs: wholes } : {}) },
    ],
    series: [
      {},
      ...spec.lines.map(
        (line): uPlot.Series => ({
          label: line.label,
          stroke: token(line.colour),
          width: 1.5,
          points: { size: 4, fill: token(line.colour), filter: (plot, i) => lonely(plot.data[i]!) },
          ...(line.dashed ? { dash: [4, 4] } : {}),
          ...(spec.lines.length === 1 ? { fill: token(`${line.colour}-soft`) } : {}),
        }),
      ),
    ],
    hooks: { setCursor: [(plot) => hover(plot, spec, place)] },
  };
}

// A line needs two values next to each other: one alone is a dot, or nobody would see it.
const lonely = (values: ArrayLike<number | null | undefined>): number[] => Array.from(values, (_, i) => i).filter((i) => values[i] != null && values[i - 1] == null && values[i + 1] == null);

const minutes = [60, 120, 300, 600, 900, 1800, 3600];
const powers = Array.from({ length: 50 }, (_, i) => 2 ** i);
const wholes = Array.from({ length: 10 }, (_, i) => [1, 2, 5].map((n) => n * 10 ** i)).flat();

// The values under the pointer take the place of the latest ones.
function hover(plot: uPlot, spec: Chart, place: HTMLElement): void {
  const caption = place.previousElementSibling;
  const when = caption?.querySelector(".chart-when");
  if (!caption || !when) return;
  const at = plot.cursor.idx;
  const hovered = at !== null && at !== undefined;
  const i = hovered ? at : spec.times.length - 1;
  when.textContent = hovered ? new Date((plot.data[0][i] ?? 0) * 1000).toLocaleTimeString("sv-SE") : "";
  caption.querySelectorAll("b").forEach((value, n) => (value.firstChild!.nodeValue = spec.format(plot.data[n + 1]?.[i])));
}
