// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Numbers and times as people read them. What is unknown is an en dash, never zero.

export const unknown = "–";

type Maybe = number | null | undefined;

const known = (n: Maybe): n is number => typeof n === "number" && Number.isFinite(n);

/** A count, exact: 12,345. */
export function count(n: Maybe): string {
  return known(n) ? String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",") : unknown;
}

/** A count, short: 12.3k. */
export function short(n: Maybe): string {
  if (!known(n)) return unknown;
  const abs = Math.abs(n);
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    if (abs >= size * 0.9995) return digits(n / size) + unit;
  }
  return digits(n);
}

export function rate(n: Maybe): string {
  return known(n) ? `${short(n)}/s` : unknown;
}

/** A rate that is known in a moment is being measured. */
export function measured(n: Maybe, over: Maybe, format: (n: Maybe) => string = rate): string {
  return known(n) ? format(n) : known(over) ? unknown : "measuring";
}

export function bytes(n: Maybe): string {
  if (!known(n)) return unknown;
  const abs = Math.abs(n);
  for (const [size, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]] as const) {
    if (abs >= size * 0.9995) return `${digits(n / size)} ${unit}`;
  }
  return `${digits(n)} B`;
}

export function byteRate(n: Maybe): string {
  return known(n) ? `${bytes(n)}/s` : unknown;
}

export function percent(share: Maybe): string {
  if (!known(share)) return unknown;
  const n = share * 100;
  return n > 0 && n < 0.1 ? "<0.1%" : `${digits(n)}%`;
}

/** How far a share may be off, when that is worth saying: a hundredth of it or more. */
export function percentError(share: number, error: number): string {
  return error >= share / 100 && error >= 0.0005 ? ` ± ${percent(error)}` : "";
}

/** A stretch of time: 340 ms, 12.1 s, 5 m 03 s, 2 h 10 m, 3 d 4 h. */
export function duration(seconds: Maybe): string {
  if (!known(seconds)) return unknown;
  const s = Math.abs(seconds);
  if (s === 0) return "0 s";
  if (s < 0.001) return `${digits(s * 1e6)} µs`;
  if (s < 1) return `${digits(s * 1e3)} ms`;
  if (s < 59.95) return `${digits(s)} s`;
  const two = (a: number, unit: string, b: number, next: string) => (b ? `${a} ${unit} ${b} ${next}` : `${a} ${unit}`);
  const whole = Math.round(s);
  if (whole < 3600) return two(Math.floor(whole / 60), "m", whole % 60, "s");
  if (whole < 86400) return two(Math.floor(whole / 3600), "h", Math.floor((whole % 3600) / 60), "m");
  return two(Math.floor(whole / 86400), "d", Math.floor((whole % 86400) / 3600), "h");
}

/** How long ago an instant was. */
export function ago(when: string | null | undefined, now = Date.now()): string {
  const at = instant(when);
  if (at === null) return "never";
  const s = (now - at) / 1000;
  return s < 1 ? "just now" : `${duration(s < 60 ? Math.floor(s) : s)} ago`;
}

// A browser takes longer to make one than to draw a row.
let full: Intl.DateTimeFormat | undefined;

/** An instant in the reader's own time, in full. */
export function time(when: string | null | undefined): string {
  const at = instant(when);
  return at === null ? unknown : (full ??= new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "long" })).format(at);
}

// Go's zero time means "not yet".
function instant(when: string | null | undefined): number | null {
  const at = when ? Date.parse(when) : NaN;
  return Number.isNaN(at) || at <= 0 ? null : at;
}

function digits(n: number): string {
  const abs = Math.abs(n);
  const places = abs >= 100 || Number.isInteger(n) ? 0 : abs >= 10 ? 1 : 2;
  const text = n.toFixed(places);
  return places ? text.replace(/\.?0+$/, "") : text;
}

/** One thing, two things. */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** The beginning of a text that may be 10 kB long. */
export function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

/** A word of the API as people write it: queue_full is "queue full". */
export const words = (name: string): string => name.replace(/_/g, " ");
