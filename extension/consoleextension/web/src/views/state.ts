// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// How the state of a target is shown, in lists and by itself.

import type * as api from "../api";
import { percent, unknown } from "../format";
import { type Tone } from "../parts";

export const states: Record<api.TargetState, [Tone, string]> = {
  healthy: ["ok", "Healthy"],
  failing: ["bad", "Failing"],
  unknown: ["idle", "Not scraped yet"],
  dropped: ["idle", "Dropped"],
};

export function hits(t: api.Target): string {
  const all = t.plan_hits + t.plan_misses;
  return all ? percent(t.plan_hits / all) : unknown;
}
