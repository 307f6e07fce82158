// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

import type * as api from "../api";
import { get } from "../client";
import { h, type Child } from "../dom";
import { ago, bytes, count, duration, plural, time, unknown } from "../format";
import { lines } from "../labels";
import type { Page, View } from "../page";
import { badge, bar, choice, empty, exports, heading, labels, pager, search, section, text } from "../parts";
import { changed, href, type Route } from "../route";
import { order, table, type Order } from "../table";
import { hits, states } from "./state";
import { targetDetail } from "./target";

type Data = { list: api.TargetList } | { target: api.TargetDetail };

const sizes = [20, 50, 200, 1000].map((n) => [String(n), String(n)] as const);

export const targets: View<Data> = {
  name: "targets",
  title: "Targets",
  every: 5,

  async load(route, signal) {
    if (route.id) return { target: await get<api.TargetDetail>(`targets/${encodeURIComponent(route.id)}`, {}, signal) };
    return { list: await get<api.TargetList>("targets", query(route), signal) };
  },

  render(data, route, page) {
    return "target" in data ? targetDetail(data.target, page) : list(data.list, route, page);
  },
};

// What fails comes first.
const first: Order = { by: "state", down: false };

// A telephone shows less at a time.
const pageSize = (): number => (innerWidth <= 720 ? 20 : 50);

function query(route: Route) {
  const { params } = route;
  const sort = order(route, first);
  return {
    q: params.get("q"),
    receiver: params.get("receiver"),
    job: params.get("job"),
    state: params.get("state"),
    reason: params.get("reason"),
    sort: sort.by,
    order: sort.down ? "desc" : null,
    offset: params.get("offset"),
    limit: params.get("limit") ?? pageSize(),
  };
}

function list(all: api.TargetList, route: Route, page: Page): Child {
  const { counts } = all;
  if (all.total + counts.dropped + counts.elsewhere === 0) {
    return [
      heading("Targets", "What is scraped, and how that goes."),
      all.jobs.length ? empty("There are no targets", "Discovery has found nothing for the jobs below. A first answer can take a few seconds.") : empty("There are no targets", "No receiver of this collector scrapes."),
      all.jobs.length ? jobs(all, route) : null,
    ];
  }
  const { params } = route;
  const filtered = ["q", "receiver", "job", "state", "reason"].some((name) => params.get(name));
  if (params.get("q")) page.say(`${plural(all.matched, "target")} found`);
  return [
    heading("Targets", sentence(counts, all.total), exports("targets", { ...query(route), offset: null, limit: 1000 }, "the list of targets")),
    filtered ? null : failures(all, route),
    section(
      { id: "list", title: filtered ? `${plural(all.matched, "target")} of ${count(all.total)}` : "All targets" },
      null,
      filters(all, route),
      table<api.Target>({
        caption: "Targets",
        rows: all.targets,
        key: (t) => t.id || `${t.job}/${t.url}/${t.labels.map((l) => l.value).join()}`,
        tone: (t) => (t.state === "failing" ? "bad" : ""),
        route,
        initial: first,
        none: empty("No target fits", h("a", { href: href("targets") }, "Show all targets")),
        columns: [
          { title: "Target", head: true, sort: "url", class: "wrap target", cell: name },
          { title: "State", sort: "state", cell: (t) => badge(...states[t.state]) },
          { title: "Job", sort: "job", class: "wrap", cell: (t) => text(t.job, 60) },
          all.targets.some((t) => more(t).length) && { title: "Labels", cell: (t) => labels(more(t), { most: 4 }) },
          { title: "Last scrape", sort: "last_scrape", numeric: true, cell: (t) => (t.last_scrape ? h("time", { datetime: t.last_scrape, title: time(t.last_scrape) }, ago(t.last_scrape)) : "never") },
          { title: "Took", sort: "duration", descending: true, numeric: true, class: "minor", cell: (t) => (t.last_scrape ? duration(t.last_duration_seconds) : unknown) },
          { title: "Samples", sort: "samples", descending: true, numeric: true, cell: (t) => count(t.samples) },
          { title: "Size", sort: "bytes", descending: true, numeric: true, class: "minor", cell: (t) => bytes(t.bytes) },
          { title: "Parse-cache hits", sort: "plan", numeric: true, class: "minor", cell: (t) => hits(t) },
        ],
      }),
      pager(route, all.offset, all.limit, all.matched, choice(route, "limit", "Rows", sizes, String(pageSize()))),
    ),
    filtered ? failures(all, route) : null,
    jobs(all, route),
  ];
}

// What the other columns do not say of a target.
const more = (t: api.Target): api.Label[] => t.labels.filter((l) => t.state === "dropped" || (l.name !== "job" && l.name !== "instance"));

function sentence(counts: api.Counts, total: number): Child {
  const parts = [`${count(counts.healthy)} of ${plural(total, "target")} healthy`];
  if (counts.failing) parts.push(`${count(counts.failing)} failing`);
  if (counts.unknown) parts.push(`${count(counts.unknown)} not scraped yet`);
  if (counts.dropped) parts.push(`${count(counts.dropped)} dropped by relabelling`);
  if (counts.elsewhere) parts.push(`${count(counts.elsewhere)} are scraped by other members`);
  return `${parts.join(", ")}.`;
}

function name(t: api.Target): Child {
  const address = text(t.url || t.labels.find((l) => l.name === "__address__")?.value || "(no address)", 120);
  return [
    t.id ? h("a", { href: href("targets", t.id) }, address) : address,
    t.state === "dropped" ? h("small", { class: "block" }, h("a", { href: href("relabel", "", { job: t.job, labels: lines(t.labels) }) }, "Why was it dropped?")) : null,
    t.last_error ? h("small", { class: "block bad-text" }, text(t.last_error, 200)) : null,
  ];
}

const headline = (s: string): string => s.charAt(0).toUpperCase() + s.slice(1);

type Failure = api.TargetList["errors"][number];

// A line for each reason, the most frequent first.
function failures(all: api.TargetList, route: Route): Child {
  if (!all.errors?.length) return null;
  const here = (e: Failure) => route.params.get("reason") === e.reason;
  return section(
    "Why targets fail",
    null,
    table<Failure>({
      caption: "Why targets fail",
      rows: all.errors,
      key: (e) => e.reason,
      columns: [
        { title: "Targets", numeric: true, class: "bad-text", cell: (e) => h("b", null, count(e.count)) },
        { title: "Reason", head: true, class: "reason", cell: (e) => headline(e.reason_text) },
        { title: "Example", class: "wrap quiet", cell: (e) => [text(e.example, 160), e.jobs?.length ? h("small", { class: "block" }, e.jobs.length === 1 ? "Job " : "Jobs ", e.jobs.slice(0, 5).map((j, i) => [i ? ", " : "", text(j, 60)]), e.jobs.length > 5 ? ` and ${e.jobs.length - 5} more` : "") : null] },
        { title: "Next", class: "wrap", cell: (e) => e.next },
        {
          title: "",
          class: "nowrap",
          cell: (e) =>
            here(e)
              ? h("a", { class: "go", href: changed(route, { reason: null, state: null, offset: null }), "aria-label": `Show all again, not only ${e.reason_text}` }, "Show all again")
              : h("a", { class: "go", href: changed(route, { reason: e.reason, state: "failing", offset: null }), "aria-label": `Show ${e.count === 1 ? "it" : "them"}: ${plural(e.count, "target")}, ${e.reason_text}` }, `Show ${e.count === 1 ? "it" : "them"}`),
        },
      ],
    }),
  );
}

function filters(all: api.TargetList, route: Route): Child {
  const { counts } = all;
  const here = route.params.get("state") ?? "";
  const chip = (state: string, title: string, n: number) =>
    n || here === state ? h("a", { key: `state-${state}`, href: changed(route, { state: here === state ? null : state, reason: null, offset: null }), "aria-current": here === state ? "true" : undefined }, title, h("b", null, count(n))) : null;
  const receivers = [...new Set(all.jobs.map((j) => j.receiver))];
  const names = [...new Set(all.jobs.map((j) => j.job))];
  return h(
    "div",
    { class: "filters", key: "filters" },
    h("div", { class: "tally", role: "group", "aria-label": "State" }, chip("", "All", all.total), chip("failing", "Failing", counts.failing), chip("healthy", "Healthy", counts.healthy), chip("unknown", "Not scraped yet", counts.unknown), chip("dropped", "Dropped", counts.dropped)),
    search(route, "q", "Search in address, labels, job, error"),
    names.length > 1 ? choice(route, "job", "Job", [["", "All"], ...names.map((n) => [n, n.length > 40 ? `${n.slice(0, 40)}…` : n] as const)]) : null,
    receivers.length > 1 ? choice(route, "receiver", "Receiver", [["", "All"], ...receivers.map((r) => [r, r] as const)]) : null,
  );
}

function jobs(all: api.TargetList, route: Route): Child {
  return section(
    "Jobs",
    null,
    table<api.Job>({
      caption: "Jobs",
      rows: all.jobs,
      key: (j) => `${j.receiver}/${j.job}`,
      tone: (j) => (j.failing ? "bad" : ""),
      columns: [
        { title: "Job", head: true, class: "wrap", cell: (j) => h("a", { href: changed(route, { job: j.job, receiver: null, offset: null }) }, text(j.job)) },
        { title: "Receiver", class: "minor", cell: (j) => j.receiver },
        { title: "Healthy", cell: (j) => bar(j.targets ? j.healthy / j.targets : null, `${count(j.healthy)} of ${count(j.targets)}`, "idle") },
        { title: "Failing", numeric: true, cell: (j) => (j.failing ? h("b", { class: "bad-text" }, count(j.failing)) : "0") },
        { title: "Not scraped yet", numeric: true, class: "minor", cell: (j) => count(j.unknown) },
        { title: "Dropped", numeric: true, cell: (j) => count(j.dropped) },
        { title: "Elsewhere", numeric: true, class: "minor", cell: (j) => count(j.elsewhere) },
        { title: "Limit", numeric: true, class: "minor", cell: (j) => (j.limit ? count(j.limit) : "none") },
      ],
      none: empty("No jobs", "A receiver that scrapes has none configured."),
    }),
  );
}
