// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Charts of the last minutes, of one moment's numbers and what a history has of earlier ones.

import type * as api from "../api";
import { chart, type Line } from "../chart";
import { get } from "../client";
import { h, type Child } from "../dom";
import { byteRate, bytes, count } from "../format";
import { choice } from "../parts";
import type { Route } from "../route";

const ranges = [["600", "10 minutes"], ["1800", "30 minutes"], ["3600", "1 hour"]] as const;
const initial = "3600";

export const range = (route: Route): number => Number(route.params.get("range") ?? initial);

export const chooseRange = (route: Route): Child => h("div", { class: "filters", key: "range" }, choice(route, "range", "Time range", ranges, initial));

/** A history gains a point every ten seconds; asking more often learns nothing. */
export function remembered<T>(path: string): (signal: AbortSignal) => Promise<T> {
  let kept: { at: number; history: T } | undefined;
  return async (signal) => {
    if (!kept || Date.now() - kept.at > 9000) kept = { at: Date.now(), history: await get<T>(path, {}, signal) };
    return kept.history;
  };
}

export type Format = (n: number | null | undefined) => string;
export type Drawn = [name: string, label: string, colour: string];

/** Draws charts that end with the numbers of this moment; null while there is nothing to draw yet. */
export function drawer(history: { times: number[] }, series: api.History["series"], now: string, latest: Record<string, api.Rate>, range: number) {
  const at = Date.parse(now) / 1000;
  const from = history.times.findIndex((t) => t >= at - range);
  const known = from < 0 ? [] : history.times.slice(from).filter((t) => t < at);
  const times = [...known, at];
  if (times.length < 3) return null;
  const values = (name: string): (number | null)[] | undefined => {
    const found = series.find((s) => s.name === name)?.values;
    const all = found && [...found.slice(from, from + known.length), latest[name] ?? null];
    return all?.some((v) => v !== null) ? all : undefined;
  };
  const draw = (key: string, title: string, format: Format, ...lines: Drawn[]): Child => {
    const drawn = lines.map(([name, label, colour]): Line | null => ((v) => v && { label, values: v, colour })(values(name)) ?? null).filter((l): l is Line => !!l);
    return drawn.length ? chart({ key, title, times, range, lines: drawn, format, binary: format === bytes || format === byteRate, whole: format === count }) : null;
  };
  return { draw, some: (name: string): boolean => !!values(name)?.some((v) => v) };
}
