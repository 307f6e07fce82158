// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// How numbers that are estimates, and a few of many values, are shown.

import type * as api from "../api";
import { type Child } from "../dom";
import { short, unknown } from "../format";
import { text } from "../parts";

export function examples(values: string[] | null): Child {
  return (values ?? []).slice(0, 3).map((v, i) => [i ? ", " : "", text(v, 40)]);
}

/** A number and how far it may be off, when that is worth saying. Of one that is not known the API says what it is at most. */
export function estimate(e: api.Estimate | undefined): string {
  if (!e) return unknown;
  if (e.at_most !== undefined) return `up to ${short(e.at_most)}`;
  const value = short(e.value);
  return e.error >= Math.max(1, e.value * 0.01) ? `${value} ± ${short(e.error)}` : e.error > 0 ? `~${value}` : value;
}
