// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// One metric: where its series come from, what they would be with less, and the
// rule that makes it so.

import type * as api from "../api";
import { get } from "../client";
import { h, type Child } from "../dom";
import { count, percent, percentError } from "../format";
import type { Page } from "../page";
import { badge, bar, copy, empty, exports, heading, labels, section, stats, text } from "../parts";
import { change, go, href, type Route } from "../route";
import { table } from "../table";
import { estimate, examples } from "./estimate";

export interface Detail {
  render(page: Page): Child;
}

export async function metricDetail(route: Route, processor: string | null, signal: AbortSignal): Promise<Detail> {
  const metric = await get<api.MetricDetail>("cardinality/metric", { processor, name: route.id }, signal);
  const drop = route.params.getAll("drop");
  const max = Number(route.params.get("max") ?? 0);
  const whatIf = drop.length || max ? await get<api.Projection>("cardinality/whatif", whatIfQuery(route, processor), signal) : null;
  return { render: (page) => render(metric, whatIf, route, page) };
}

function whatIfQuery(route: Route, processor: string | null): URLSearchParams {
  const params = new URLSearchParams();
  if (processor) params.set("processor", processor);
  params.set("metric", route.id);
  for (const label of route.params.getAll("drop")) params.append("drop", label);
  const max = route.params.get("max");
  if (max) params.set("max", max);
  return params;
}

// Of the series there would be without limits: values of those that were kept out are known, too.
const ofSeries = (metric: api.MetricDetail) => (label: api.Row) => Math.min(1, label.values.value / Math.max(1, metric.series.value + metric.rejected_series.value));

function render(metric: api.MetricDetail, whatIf: api.Projection | null, route: Route, page: Page): Child {
  const processor = route.params.get("processor");
  const share = ofSeries(metric);
  return [
    h("div", null, h("p", { class: "crumbs" }, h("a", { href: href("cardinality", "", { processor }) }, "Cardinality"), " / metric"), heading(metric.name, [metric.type, metric.temporality, metric.unit].filter(Boolean).join(" · ") || null, exports("cardinality/metric", { processor, name: metric.name }, "this metric", ["json"]))),
    stats(
      { label: "Series", value: estimate(metric.series) },
      { label: "New per minute", value: estimate(metric.new_per_minute) },
      metric.gone_per_minute.value > 0 && { label: "Gone per minute", value: estimate(metric.gone_per_minute) },
      metric.points_per_second.value > 0 && { label: "Points per second", value: estimate(metric.points_per_second) },
      { label: "Rejected series", value: estimate(metric.rejected_series), tone: metric.rejected_series.value > 0 ? "warn" : undefined },
      metric.limit > 0 && { label: "Of its limit", value: percent(metric.used / metric.limit), note: `${count(metric.used)} of ${count(metric.limit)}`, tone: metric.used >= metric.limit ? "bad" : undefined },
    ),
    section(
      "Labels",
      "Tick labels to see how many series would be left without them.",
      table<api.Row>({
        caption: `Labels of ${metric.name}`,
        rows: metric.labels ?? [],
        key: (l) => l.name,
        none: empty("This metric has no labels", "It is one series for each resource."),
        columns: [
          { title: "Drop", cell: (l) => h("input", { type: "checkbox", "aria-label": `Without ${l.name}`, checked: route.params.getAll("drop").includes(l.name), on: { change: () => toggle(route, l.name) } }) },
          { title: "Label", head: true, class: "wrap", cell: (l) => h("a", { href: href("cardinality", "", { processor, of: "pairs", metric: metric.name, label: l.name }) }, text(l.name)) },
          { title: "Distinct values", numeric: true, cell: (l) => estimate(l.values) },
          { title: "Values per series", cell: (l) => bar(share(l), percent(share(l)), l.id_like ? "warn" : "idle") },
          { title: "", cell: (l) => (l.id_like ? badge("warn", "looks like an ID") : null) },
          { title: "For example", class: "wrap quiet", cell: (l) => examples(l.examples) },
        ],
      }),
    ),
    section("What if", null, projection(metric, whatIf, route, page)),
    examplesOf(metric),
  ];
}

// What all examples have in common is said once; what tells them apart is what one looks for.
function examplesOf(metric: api.MetricDetail): Child {
  const all = metric.example_series ?? [];
  const common = all.length < 2 ? [] : all[0]!.filter((l) => all.every((series) => series.some((other) => other.name === l.name && other.value === l.value)));
  return section(
    "Example series",
    common.length ? "Each of these, besides what is in all of them." : null,
    table<api.Label[]>({
      caption: `Series of ${metric.name}`,
      rows: all,
      none: empty("No examples yet", "They are taken from the sample as it fills."),
      columns: [{ title: "Labels", cell: (series) => labels(series, { hide: common.map((l) => l.name) }) }],
    }),
    common.length ? [h("h3", { class: "under" }, "In all of them"), labels(common)] : null,
  );
}

function toggle(route: Route, label: string): void {
  const params = new URLSearchParams(route.params);
  const ticked = params.getAll("drop");
  params.delete("drop");
  for (const l of ticked.includes(label) ? ticked.filter((t) => t !== label) : [...ticked, label]) params.append("drop", l);
  go(href(route.view, route.id, params), true);
}

// What is left may be too few to be known: then it is said what it is at most, and what that means.
function fewer(before: api.Estimate, after: api.Estimate): Child {
  const share = (left: number) => Math.max(0, 1 - left / before.value);
  if (after.at_most !== undefined) return [": at least ", h("b", null, percent(share(after.at_most))), " fewer"];
  const part = share(after.value);
  const error = Math.hypot(after.error, (1 - part) * before.error) / before.value;
  return [": ", h("b", null, percent(part) + percentError(part, error)), " fewer"];
}

function projection(metric: api.MetricDetail, whatIf: api.Projection | null, route: Route, page: Page): Child {
  const drop = route.params.getAll("drop");
  const yaml = whatIf?.rule ? `rules:\n${whatIf.rule}` : "";
  return h(
    "div",
    { class: "panel whatif" },
    h(
      "div",
      { class: "filters" },
      h(
        "label",
        { class: "field" },
        h("span", null, "Limit on its series"),
        h("input", { type: "number", min: "0", step: "1", inputmode: "numeric", placeholder: "none", value: route.params.get("max") ?? "", on: { change: (e: Event) => change({ max: (e.target as HTMLInputElement).value }, true) } }),
      ),
      drop.length ? h("p", null, "Without ", drop.map((d, i) => [i ? ", " : "", h("code", null, text(d))])) : null,
    ),
    whatIf
      ? [
          h(
            "p",
            { class: "outcome", role: "status" },
            h("b", null, estimate(whatIf.before)),
            " series become ",
            h("b", null, estimate(whatIf.after)),
            whatIf.before.value > 0 ? fewer(whatIf.before, whatIf.after) : null,
            whatIf.merged.value > 0 ? `, ${estimate(whatIf.merged)} of them added up with others` : null,
            ".",
          ),
          whatIf.note ? h("p", { class: "quiet" }, whatIf.note) : null,
          yaml ? h("pre", { tabindex: "0", role: "region", "aria-label": "The rule as YAML" }, yaml) : h("p", { class: "quiet" }, "No rule of the processor does exactly this."),
          yaml && h("p", null, copy(page, "Copy the rule", () => yaml), h("span", { class: "quiet" }, " Put it under the ", h("code", null, "cardinality"), " processor, or into its rules file, which is read without a restart.")),
        ]
      : h("p", { class: "quiet" }, "Tick labels above, or set a limit, and the outcome is shown here with the rule for it. Nothing is changed by looking. ", metric.series.value > 0 ? `Now ${estimate(metric.series)} series.` : ""),
  );
}

