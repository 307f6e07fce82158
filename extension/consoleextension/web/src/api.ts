// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// What the JSON API answers, as ../openapi.yaml has it.

/** Per second; null is not known. */
export type Rate = number | null;
export type Instant = string | null;

export interface Label {
  name: string;
  value: string;
}

export interface Estimate {
  value: number;
  error: number;
  at_most?: number; // all that is known, if it is there
}

export type Status = "none" | "starting" | "ok" | "recoverable_error" | "permanent_error" | "fatal_error" | "stopping" | "stopped";

export interface Finding {
  severity: "error" | "warning" | "info";
  subject: string;
  title: string;
  detail: string;
  next: string;
  view: string;
  query: Record<string, string>;
}

export interface Counts {
  healthy: number;
  failing: number;
  unknown: number;
  dropped: number;
  elsewhere: number;
}

export interface Rates {
  in: Rate;
  out: Rate;
  limited: Rate;
  dropped: Rate;
  refused: Rate;
  wire_bytes: Rate;
  raw_bytes: Rate;
}

export interface PipelineNode {
  id: string;
  kind: string;
  name: string;
  seen: boolean;
  status: Status;
  status_error: string;
  status_since: Instant;
  rates: Rates | null;
  unit: string;
  outside: { in: "targets" | "clients" | null; out: "destinations" | null };
  /** Its data can be looked at. */
  live: boolean;
  /** Of a receiver that scrapes. */
  targets: Counts | null;
  destinations: Destination[];
}

export interface Edge {
  from: string;
  to: string;
  per_second: Rate;
  bytes_per_second: Rate;
}

export interface Pipeline {
  id: string;
  signal: string;
  nodes: string[];
  edges: Edge[];
  /** Of components that have an instance in each of several pipelines, by node. */
  instances: Record<string, Rates>;
}

export interface Runtime {
  profile: string;
  gogc: number;
  memory_limit: number;
  memory_budget: number;
  cgroup: boolean;
  limiter_soft: number;
  limiter_hard: number;
  from_env: string[] | null;
  complaint: string;
}

export interface Overview {
  now: string;
  /** The process. */
  started: string;
  /** The configuration: all counters began then. */
  loaded: string;
  over_seconds: Rate;
  collector: { name: string; version: string; hostname: string };
  health: "ok" | "degraded" | "failing";
  findings: Finding[];
  process: {
    cpu_cores: Rate;
    cpus: number;
    rss_bytes: number | null;
    heap_live_bytes: number;
    goroutines: number;
    gc_cpu_ratio: Rate;
    gc_cycles_per_second: Rate;
    gogc: number;
    memory_limit_bytes: number;
    runtime: Runtime | null;
  };
  totals: {
    in_per_second: Rate;
    limited_per_second: Rate;
    out_per_second: Rate;
    /** That out_per_second is about: of those that all get the same, the slowest counts. */
    destinations: number;
    dropped_per_second: Rate;
    wire_bytes_per_second: Rate;
    bytes_per_sample: Rate;
    received_wire_bytes_per_second: Rate;
    queued_bytes: number;
  };
  /** What the history would have of this moment, by the names of its series. */
  latest: Record<string, Rate>;
  targets: Counts;
  pipelines: Pipeline[];
  nodes: PipelineNode[];
}

export interface History {
  interval_seconds: number;
  times: number[];
  series: { name: string; unit: string; values: Rate[] }[];
}

export type TargetState = "healthy" | "failing" | "unknown" | "dropped";

export interface Target {
  id: string;
  receiver: string;
  job: string;
  url: string;
  state: TargetState;
  labels: Label[];
  interval_seconds: number;
  timeout_seconds: number;
  last_scrape: Instant;
  last_duration_seconds: number;
  samples: number;
  bytes: number;
  plan_hits: number;
  plan_misses: number;
  refused: number;
  skipped: number;
  last_error: string;
  reason: string;
  reason_text: string;
}

export interface TargetDetail extends Target {
  discovered: Label[];
  relabel_configs: string;
  metric_relabel_configs: string;
  can_look: boolean;
  /** What to do about the last error. */
  next: string;
}

export interface Job extends Counts {
  receiver: string;
  job: string;
  targets: number;
  limit: number;
}

export interface TargetList {
  total: number;
  matched: number;
  offset: number;
  limit: number;
  counts: Counts;
  jobs: Job[];
  errors: { reason: string; reason_text: string; count: number; example: string; jobs: string[]; next: string }[];
  targets: Target[];
}

export interface TargetResponse {
  url: string;
  status: string;
  content_type: string;
  encoding: string;
  wire_bytes: number;
  took_seconds: number;
  truncated: boolean;
  body: string;
}

export interface Point {
  name: string;
  kind: string;
  value: string;
  at: string;
  resource: Label[];
  attributes: Label[];
}

export type Fate = "passed" | "changed" | "gone" | "unknown";

export interface Glance {
  at: string;
  signal: string;
  in: number;
  out: number;
  points: (Point & { fate: Fate; after: Point | null })[];
}

export interface Live {
  node: string;
  place: "out" | "around" | "in";
  batches: Glance[];
}

export interface Step {
  index: number;
  action: string;
  rule: string;
  /** Null of actions without an expression. */
  matched: boolean | null;
  changed: boolean;
  dropped: boolean;
  changes: { name: string; before: string | null; after: string | null }[];
  labels: Label[];
}

export interface Relabelled {
  steps: Step[];
  dropped: boolean;
  labels: Label[];
  skipped: number;
}

export interface Limit {
  rule: string;
  what: string;
  label: string;
  match: string;
  max: number;
  used: number;
  groups: number;
  action: string;
  rejected_series: Estimate;
  rejected_points: number;
  last_rejection: Instant;
  last_match?: string;
  owner?: Label[];
  fullest: { group: Label[]; used: number; max: number }[];
}

export interface Reject {
  at: string;
  rule: string;
  reason: string;
  action: string;
  tenant: string;
  metric: string;
  labels: Label[];
}

export interface Overflow {
  rule: string;
  metric: string;
  labels: Label[];
  members: number;
}

export interface Happening {
  at: string;
  kind: string;
  rule: string;
  text: string;
}

export interface Cardinality {
  processor: string;
  over_seconds: Rate;
  new_per_minute: Rate;
  gone_per_minute: Rate;
  mode: "enforce" | "dry_run";
  series: number;
  max_series: number;
  metrics: number;
  metrics_error: number;
  rejected_series: Estimate;
  admitted_total: number;
  expired_total: number;
  memory_bytes: number;
  groups: number;
  sample_size: number;
  sample_since: Instant;
  rules_fault: string;
  limits: Limit[];
  rejects: Reject[];
  overflow: Overflow[];
  events: Happening[];
}

export interface Row {
  name: string;
  value: string;
  type: string;
  temporality: string;
  unit: string;
  series: Estimate;
  new_per_minute: Estimate;
  gone_per_minute: Estimate;
  points_per_second: Estimate;
  rejected_series: Estimate;
  limit: number;
  used: number;
  worst_label: string;
  values: Estimate;
  metrics: number;
  id_like: boolean;
  examples: string[];
}

export interface Top {
  processor: string;
  total_series: number;
  more: boolean;
  rows: Row[];
}

export interface MetricDetail extends Row {
  processor: string;
  labels: Row[];
  example_series: Label[][];
}

export interface Projection {
  before: Estimate;
  after: Estimate;
  merged: Estimate;
  note: string;
  /** An entry of the processor's `rules`; empty when no rule does that. */
  rule: string;
}

/** How many series there are less. */
export interface Saving {
  saved: Estimate;
  /** Of all series, from 0 to 1. */
  saved_ratio: number;
  saved_ratio_error: number;
}

export interface Recommendations extends Saving {
  before: Estimate;
  after: Estimate;
  rules: Recommendation[];
  /** All of them, to be pasted. */
  yaml: string;
}

export interface Recommendation extends Saving {
  name: string;
  metrics: string[];
  labels: string[];
  before: Estimate;
  after: Estimate;
  gauges: boolean;
  note: string;
}

export interface Stream {
  state: string;
  age_seconds: number;
  pending: number;
  acked: number;
}

export interface Loss {
  reason: string;
  count: number;
  per_second: Rate;
  next: string;
}

export interface Destination {
  name: string;
  state: "ok" | "retrying" | "throttled" | "breaker_open" | "dropping";
  protocol: string;
  transport: string;
  compression: string;
  fallback: number;
  last_error: string;
  /** What to do about its state; of what is lost, each reason has its own. */
  next: string;
  queue: { items: number; bytes: number; capacity: number; unit: "bytes" | "items" | "requests"; used: Rate; age_seconds: number; on_disk: boolean };
  in_flight: { requests: number; bytes: number; max_requests: number; max_bytes: number };
  /** The sum of sent, dropped and waiting. */
  taken: number;
  taken_per_second: Rate;
  sent: number;
  sent_per_second: Rate;
  lost_per_second: Rate;
  waiting: number;
  waiting_per_second: Rate;
  dropped: Loss[];
  requests: number;
  responses: { status: string; count: number }[];
  retries: number;
  retries_per_second: Rate;
  resent: number;
  ack_seconds: Rate;
  ack_p50_seconds: Rate;
  ack_p99_seconds: Rate;
  raw_bytes_per_second: Rate;
  wire_bytes: number;
  wire_bytes_per_second: Rate;
  bytes_per_item: Rate;
  breaker_open: boolean;
  throttled_seconds: number;
  streams: Stream[];
}

export interface Exporter {
  exporter: string;
  signal: string;
  shards: number;
  /** Destinations share the data; else each gets all of it. */
  split: boolean;
  cache: { series: number; hits: number; misses: number } | null;
  destinations: Destination[];
}

export interface Intake {
  receiver: string;
  addresses: string[];
  streams: number;
  max_streams: number;
  in_flight_bytes: number;
  max_in_flight_bytes: number;
  taken_per_second: Rate;
  refused_per_second: Rate;
  dropped: Loss[];
  last_error: string;
  last_error_at: Instant;
  next: string;
  requests: { outcome: string; count: number }[];
}

export interface DestinationHistory {
  interval_seconds: number;
  times: number[];
  destinations: { exporter: string; signal: string; destination: string; series: History["series"] }[];
}

export interface Delivery {
  now: string;
  over_seconds: Rate;
  exporters: Exporter[];
  receivers: Intake[];
}

export interface Component {
  id: string;
  kind: string;
  name: string;
  type: string;
  module: string;
  version: string;
  status: Status;
  status_error: string;
  status_since: Instant;
  pipelines: string[];
  seen: boolean;
}

export interface Configuration {
  collector: { name: string; version: string; description: string; go: string; platform: string };
  yaml: string;
  redacted: number;
  components: Component[];
  modules: { path: string; version: string }[];
}
