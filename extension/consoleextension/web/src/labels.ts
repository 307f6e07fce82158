// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Labels as people write and paste them.

import type { Label } from "./api";

/** Characters that reorder or hide text. */
export const invisible = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** As lines, which read() reads. */
export function lines(all: readonly Label[]): string {
  return all.map((l) => `${l.name}=${JSON.stringify(l.value).replace(invisible, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)}`).join("\n");
}

/** Reads name="value" or name=value, one a line or between braces, or a JSON object. */
export function read(source: string): Label[] {
  const trimmed = source.trim();
  if (trimmed.startsWith("{") && /^\{\s*"/.test(trimmed)) {
    try {
      return Object.entries(JSON.parse(trimmed) as Record<string, unknown>).map(([name, value]) => ({ name, value: String(value) }));
    } catch {
      // Then it is a series: {"name"="value"} is one, too.
    }
  }
  const all: Label[] = [];
  const metric = /^([a-zA-Z_:][a-zA-Z0-9_:]*)\s*\{/.exec(trimmed);
  if (metric) all.push({ name: "__name__", value: metric[1]! });
  const inner = metric ? trimmed.slice(metric[0].length) : trimmed;
  const pair = /"?([^\s"=:,{}]+)"?\s*[=:]\s*(?:"((?:[^"\\]|\\.)*)"|([^\n,}]*))/g;
  for (const [, name, quoted, bare] of inner.matchAll(pair)) all.push({ name: name!, value: quoted !== undefined ? unquote(quoted) : bare!.trim() });
  return all;
}

function unquote(quoted: string): string {
  try {
    return JSON.parse(`"${quoted}"`) as string;
  } catch {
    return quoted;
  }
}
