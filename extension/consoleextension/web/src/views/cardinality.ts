// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

import type * as api from "../api";
import { get } from "../client";
import { h, type Child } from "../dom";
import { ago, bytes, count, duration, measured, percent, plural, short, time, unknown } from "../format";
import type { View } from "../page";
import { badge, bar, choice, empty, exports, heading, labels, search, section, stats, text } from "../parts";
import { change, changed, href, type Route } from "../route";
import { table, type Column, type Order } from "../table";
import { estimate, examples } from "./estimate";
import { metricDetail, type Detail } from "./metric";
import { recommended } from "./recommended";

interface Data {
  processors: api.Cardinality[];
  top?: api.Top;
  /** The labels with the most values. */
  worst?: api.Row[];
  /** Asked for only by those who want to see it. */
  advice?: api.Recommendations;
  detail?: Detail;
}

const lists = [
  ["metrics", "Metrics"],
  ["labels", "Labels"],
  ["pairs", "Label values"],
  ["groups", "Groups"],
] as const;

const sizes = [20, 100, 500, 1000].map((n) => [String(n), String(n)] as const);

export const cardinality: View<Data> = {
  name: "cardinality",
  title: "Cardinality",
  every: 5,

  async load(route, signal) {
    const processor = route.params.get("processor");
    if (route.id) {
      const [{ processors }, detail] = await Promise.all([get<{ processors: api.Cardinality[] }>("cardinality", {}, signal), metricDetail(route, processor, signal)]);
      return { processors, detail };
    }
    const { processors } = await get<{ processors: api.Cardinality[] }>("cardinality", {}, signal);
    if (processors.length === 0) return { processors };
    const [top, worst, advice] = await Promise.all([
      get<api.Top>("cardinality/top", query(route), signal),
      get<api.Top>("cardinality/top", { processor, of: "labels", by: "values", n: 5 }, signal),
      route.params.get("advice") ? get<api.Recommendations>("cardinality/recommendations", { processor }, signal) : undefined,
    ]);
    return { processors, top, worst: worst.rows, ...(advice ? { advice } : {}) };
  },

  render({ processors, top, worst, advice, detail }, route, page) {
    const about = "Which metrics and labels make how many series, and what limits do about it.";
    if (processors.length === 0) {
      return [
        heading("Cardinality", about),
        empty("No cardinality processor runs in this collector", ["Add ", h("code", null, "cardinality"), " to the processors of a metrics pipeline. With ", h("code", null, "mode: dry_run"), " it counts and changes nothing."]),
      ];
    }
    if (detail) return detail.render(page);
    const names = processors.map((p) => [p.processor, p.processor] as const);
    const now = processors.find((p) => p.processor === route.params.get("processor")) ?? processors[0]!;
    return [
      heading("Cardinality", about, names.length > 1 ? choice(route, "processor", "Processor", names, names[0]![0]) : null),
      notices(now),
      explosion(worst ?? [], route),
      summary(now),
      recommended(advice, route, page),
      top ? most(top, now, route) : null,
      limits(now),
      rejects(now),
      overflow(now),
      events(now),
    ];
  },
};

function query({ params }: Route) {
  const of = params.get("of") ?? "metrics";
  return {
    processor: params.get("processor"),
    of,
    by: params.get("sort") ?? first(of).by,
    n: params.get("n") ?? 20,
    match: params.get("match"),
    metric: params.get("metric"),
    label: of === "groups" ? (params.get("label") ?? grouping) : params.get("label"),
  };
}

// What most people group by.
const grouping = "service.name";

// What one asks of a list first.
const first = (of: string): Order => ({ by: of === "labels" ? "values" : "series", down: true });

function notices(now: api.Cardinality): Child {
  return [
    now.rules_fault ? h("p", { class: "notice bad" }, h("strong", null, "The rules file is not in force. "), now.rules_fault, " The rules before it still are; correct the file and it is read again.") : null,
    now.mode === "dry_run" ? h("p", { class: "notice warn" }, h("strong", null, "Dry run: "), "limits decide and count, and change nothing. Set ", h("code", null, "mode: enforce"), " to apply them.") : null,
  ];
}

// Which label explodes, without reading a table.
function explosion(worst: api.Row[], route: Route): Child {
  const ids = worst.filter((row) => row.id_like);
  if (ids.length === 0) return null;
  return h(
    "ul",
    { class: "problems" },
    ids.slice(0, 3).map((row) =>
      h(
        "li",
        { class: "problem warn" },
        h("span", { class: "badge warn" }, "Warning"),
        h(
          "div",
          null,
          h("p", { class: "what" }, "The label ", h("code", null, text(row.name, 80)), ` has ${estimate(row.values)} values, nearly one for each series: it looks like an ID.`),
          h("p", { class: "quiet" }, `It is on ${estimate(row.series)} series${row.metrics ? ` of ${plural(row.metrics, "metric")}` : ""}`, row.examples?.length ? [", for example ", examples(row.examples)] : null, "."),
        ),
        h("p", { class: "next" }, h("span", { class: "quiet" }, "Next: "), "Open a metric that has it, tick the label to see what is left without it, and copy the rule."),
        h("a", { class: "go", href: href("cardinality", "", { ...pass(route), of: "pairs", label: row.name }) }, "Show its values"),
      ),
    ),
  );
}

function summary(now: api.Cardinality): Child {
  const share = now.max_series ? now.series / now.max_series : null;
  return stats(
    { label: "Active series", value: short(now.series), note: now.max_series ? `${percent(share)} of ${short(now.max_series)} allowed` : "no limit on the total", tone: share !== null && share >= 1 ? "bad" : share !== null && share >= 0.8 ? "warn" : undefined },
    { label: "Metrics", value: estimate({ value: now.metrics, error: now.metrics_error }), note: plural(now.groups, "group") },
    { label: "Rejected series", value: estimate(now.rejected_series), tone: now.rejected_series.value > 0 ? "warn" : undefined, note: now.rejected_series.value > 0 ? (now.mode === "dry_run" ? "would be kept out" : "kept out by limits") : "no limit has bitten" },
    { label: "New per minute", value: measured(now.new_per_minute, now.over_seconds, short), note: `${lately(now)}${short(now.admitted_total)} ever admitted` },
    { label: "Gone per minute", value: measured(now.gone_per_minute, now.over_seconds, short), note: `${lately(now)}${short(now.expired_total)} since the start` },
    { label: "Memory", value: bytes(now.memory_bytes), note: now.series >= 10_000 ? `${short(now.memory_bytes / now.series)} B per series` : undefined },
    { label: "Sample", value: short(now.sample_size), note: "series that estimates are made from" },
  );
}

const lately = (now: api.Cardinality) => (now.over_seconds === null ? "" : `in the last ${duration(now.over_seconds)}; `);

function most(top: api.Top, now: api.Cardinality, route: Route): Child {
  const of = route.params.get("of") ?? "metrics";
  const within = [
    route.params.get("metric") ? within1(route, "metric", "metric") : null,
    route.params.get("label") && of !== "groups" ? within1(route, "label", "label") : null,
  ].filter(Boolean);
  return section(
    "Which has the most",
    now.sample_since ? ["What is per minute or per second here is the mean since the statistics began, ", h("time", { datetime: now.sample_since, title: time(now.sample_since) }, ago(now.sample_since)), "."] : null,
    h(
      "div",
      { class: "filters", key: "filters" },
      h(
        "div",
        { class: "tally", role: "group", "aria-label": "List of" },
        lists.map(([value, title]) => h("a", { href: changed(route, { of: value === "metrics" ? null : value, sort: null, metric: null, label: null, match: null }), "aria-current": value === of ? "true" : undefined }, title)),
      ),
      search(route, "match", "Name contains"),
      of === "groups" ? groupBy(route) : null,
      choice(route, "n", "Rows", sizes, "20"),
      exports("cardinality/top", query(route), "this list"),
    ),
    within.length ? h("p", { class: "within" }, "Only ", within) : null,
    table<api.Row>({
      caption: `The ${of} with the most series`,
      rows: top.rows,
      key: (row) => `${row.name}=${row.value}`,
      route,
      initial: first(of),
      mostFirst: true,
      columns: columnsOf(of, top, route),
      tone: (row) => (row.limit > 0 && row.used >= row.limit ? "bad" : ""),
      none: nothing(of, now, route),
    }),
    top.more ? h("p", { class: "quiet more-rows" }, "There are more. Raise the number of rows, or search.") : null,
  );
}

function nothing(of: string, now: api.Cardinality, route: Route): Child {
  if (route.params.get("match")) return empty("Nothing matches", "Try a shorter part of the name.");
  if (of !== "groups" || now.series === 0) return empty("No series yet", "The list fills as soon as points pass through the processor.");
  return empty(["No series has the label ", h("code", null, text(route.params.get("label") ?? grouping, 80))], ["Of scraped targets ", h("code", null, "job"), " is ", h("code", null, "service.name"), " here, and ", h("code", null, "instance"), " is ", h("code", null, "service.instance.id"), "."]);
}

function within1(route: Route, param: string, what: string): Child {
  return h("span", { class: "pill" }, `${what} `, h("b", null, text(route.params.get(param) ?? "", 60)), " ", h("a", { href: changed(route, { [param]: null }), "aria-label": `Not only this ${what}` }, "×"));
}

function groupBy(route: Route): Child {
  return h(
    "label",
    { class: "field", key: "group-by" },
    h("span", null, "Group by label"),
    h("input", { value: route.params.get("label") ?? grouping, on: { change: (e: Event) => change({ label: (e.target as HTMLInputElement).value }) } }),
  );
}

// Both are estimates: a part is never more than the whole. Where the part is not known, neither is its share.
const partOf = (row: api.Row, top: api.Top): number | null => (top.total_series > 0 && row.series.at_most === undefined ? Math.min(1, row.series.value / top.total_series) : null);

function columnsOf(of: string, top: api.Top, route: Route): (Column<api.Row> | false)[] {
  const number = (title: string, sort: string, value: (row: api.Row) => api.Estimate): Column<api.Row> => ({ title, sort, descending: true, numeric: true, ...(title === "Gone/min" || title === "Points/s" ? { class: "minor" } : {}), cell: (row) => estimate(value(row)) });
  const series = number("Series", "series", (r) => r.series);
  const share: Column<api.Row> = { title: "Share", class: "minor", cell: (row) => bar(partOf(row, top), percent(partOf(row, top)), "idle") };
  // Not every processor counts everything for every list: a column of nothing but zeros says nothing.
  const counted = (column: Column<api.Row>, value: (row: api.Row) => api.Estimate) => (top.rows.some((row) => value(row).value > 0) ? column : false);
  const fresh = counted(number("New/min", "new", (r) => r.new_per_minute), (r) => r.new_per_minute);
  const gone = counted(number("Gone/min", "gone", (r) => r.gone_per_minute), (r) => r.gone_per_minute);
  const points = counted(number("Points/s", "points", (r) => r.points_per_second), (r) => r.points_per_second);
  switch (of) {
    case "labels":
      return [
        { title: "Label", head: true, class: "wrap", cell: (row) => h("a", { href: changed(route, { of: "pairs", label: row.name, sort: null, match: null }) }, text(row.name)) },
        number("Distinct values", "values", (r) => r.values),
        top.rows.some((row) => row.id_like) && { title: "", cell: (row) => (row.id_like ? badge("warn", "looks like an ID") : null) },
        top.rows.some((row) => row.examples?.length) && { title: "For example", class: "wrap quiet", cell: (row) => examples(row.examples) },
        { title: "Metrics", numeric: true, cell: (row) => count(row.metrics) },
        series,
        share,
        fresh,
      ];
    case "pairs":
      return [
        { title: "Label", head: true, class: "wrap", cell: (row) => h("a", { href: changed(route, { label: row.name }) }, text(row.name)) },
        { title: "Value", class: "wrap mono", cell: (row) => text(row.value) },
        series,
        share,
        fresh,
        gone,
      ];
    case "groups":
      return [
        { title: "Group", head: true, class: "wrap", cell: (row) => text(row.value || row.name) },
        series,
        share,
        fresh,
        gone,
        points,
        counted(number("Rejected", "rejected", (r) => r.rejected_series), (r) => r.rejected_series),
      ];
    default:
      return [
        { title: "Metric", head: true, class: "wrap", cell: (row) => [h("a", { href: href("cardinality", row.name, pass(route)) }, text(row.name)), row.type ? h("small", { class: "quiet block" }, [row.type, row.temporality, row.unit].filter(Boolean).join(" · ")) : null] },
        series,
        share,
        { title: "Most values", class: "wrap", cell: (row) => (row.worst_label ? h("code", null, text(row.worst_label, 60)) : unknown) },
        { title: "Of its limit", cell: (row) => (row.limit > 0 ? bar(row.used / row.limit, `${percent(row.used / row.limit)} of ${short(row.limit)}`) : h("span", { class: "quiet" }, "no limit")) },
        fresh,
        gone,
        points,
        number("Rejected", "rejected", (r) => r.rejected_series),
      ];
  }
}

const pass = (route: Route) => ({ processor: route.params.get("processor") });

function limits(now: api.Cardinality): Child {
  return section(
    "Limits",
    "Used is that of the fullest group of a rule. Known series pass a full limit; only new ones are kept out.",
    table<api.Limit>({
      caption: "Limits and how far they are used",
      rows: now.limits ?? [],
      key: (l) => `${l.rule}/${l.what}/${l.label}`,
      tone: (l) => (l.max > 0 && l.used >= l.max ? "bad" : ""),
      none: empty("No limits are set", "Pick a metric above: its page can write a rule for you."),
      columns: [
        { title: "Rule", head: true, class: "wrap", cell: (l) => [l.rule, l.match && l.match !== "*" ? h("small", { class: "quiet block" }, l.match) : null, labels(l.owner)] },
        { title: "Limits", class: "wrap", cell: (l) => (l.label ? [l.what, " ", h("code", null, text(l.label))] : l.what) },
        { title: "Used", cell: (l) => [l.max > 0 || l.label ? bar(l.max > 0 ? l.used / l.max : 1, `${count(l.used)} of ${count(l.max)}`) : `${count(l.used)}, only counted`, fullest(l)] },
        { title: "If full", cell: (l) => l.action },
        { title: "Rejected", numeric: true, cell: (l) => (l.rejected_points || l.rejected_series.value ? [`${estimate(l.rejected_series)} series`, h("small", { class: "quiet block" }, `${short(l.rejected_points)} points`)] : "nothing") },
        { title: "Last rejection", class: "nowrap", cell: (l) => ago(l.last_rejection) },
        now.limits.some((l) => l.last_match) && { title: "Last match", class: "nowrap", cell: (l) => (l.last_match ? ago(l.last_match) : unknown) },
      ],
    }),
  );
}

function fullest(l: api.Limit): Child {
  if (l.groups <= 1 || !l.fullest?.length) return null;
  return h(
    "small",
    { class: "quiet block wrap" },
    `Fullest of ${count(l.groups)}: `,
    l.fullest.slice(0, 3).map((g, i) => [i ? ", " : "", text((g.group ?? []).map((x) => x.value).join(" "), 60), ` ${short(g.used)}`]),
  );
}

function rejects(now: api.Cardinality): Child {
  if (!now.rejects?.length) return null;
  return section(
    now.mode === "dry_run" ? "Series that would be rejected" : "Series that were rejected",
    "Examples, the latest first.",
    table<api.Reject>({
      caption: "Examples of rejected series",
      rows: now.rejects.slice(0, 20),
      columns: [
        { title: "When", class: "nowrap", cell: (r) => h("time", { datetime: r.at, title: time(r.at) }, ago(r.at)) },
        { title: "Metric", head: true, class: "wrap", cell: (r) => h("a", { href: href("cardinality", r.metric) }, text(r.metric)) },
        { title: "Labels", cell: (r) => labels(telling(r, now.rejects), { most: 8 }) },
        { title: "Kept out by", class: "wrap brief", cell: (r) => [r.rule, h("small", { class: "quiet block" }, r.reason)] },
        { title: "What became of it", cell: (r) => r.action },
      ],
    }),
  );
}

// What tells a series from others of its metric comes first: that is what explodes.
function telling(reject: api.Reject, all: api.Reject[]): api.Label[] {
  const others = all.filter((r) => r.metric === reject.metric);
  const differs = (l: api.Label) => others.some((r) => !r.labels.some((o) => o.name === l.name && o.value === l.value));
  return [...reject.labels.filter(differs), ...reject.labels.filter((l) => !differs(l))];
}

function overflow(now: api.Cardinality): Child {
  if (!now.overflow?.length) return null;
  return section(
    "Series made of others",
    "Points of rejected series are added up here, so that sums stay right.",
    table<api.Overflow>({
      caption: "Overflow series",
      rows: now.overflow.slice(0, 20),
      columns: [
        { title: "Metric", head: true, class: "wrap", cell: (o) => text(o.metric) },
        { title: "Labels", cell: (o) => labels(o.labels, { most: 8 }) },
        now.overflow.some((o) => o.rule) && { title: "Rule", cell: (o) => o.rule },
        { title: "Made of", numeric: true, cell: (o) => plural(o.members, "series", "series") },
      ],
    }),
  );
}

function events(now: api.Cardinality): Child {
  if (!now.events?.length) return null;
  const words: Record<string, string> = { first_rejection: "first rejection", limit_reached: "limit reached", release: "room again", rule_silent: "rule matches nothing", rules_applied: "rules applied", rules_failed: "rules failed" };
  return section(
    "What happened",
    null,
    table<api.Happening>({
      caption: "Events of limits and rules",
      rows: now.events.slice(0, 30),
      columns: [
        { title: "When", class: "nowrap", cell: (e) => h("time", { datetime: e.at, title: time(e.at) }, ago(e.at)) },
        { title: "What", cell: (e) => badge(e.kind === "rules_failed" || e.kind === "limit_reached" ? "bad" : e.kind === "first_rejection" || e.kind === "rule_silent" ? "warn" : "ok", words[e.kind] ?? e.kind) },
        { title: "Rule", cell: (e) => e.rule },
        { title: "In words", class: "wrap", cell: (e) => e.text },
      ],
    }),
  );
}
