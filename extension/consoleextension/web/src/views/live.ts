// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Data as it passes a component: some points of a batch, and of a processor what
// became of them. The collector looks only while this view asks.

import type * as api from "../api";
import { Failure, get, post } from "../client";
import { h, type Child } from "../dom";
import { ago, count, plural, time } from "../format";
import type { Page, View } from "../page";
import { badge, choice, empty, heading, labels, section, text, type Tone } from "../parts";
import { href, type Route } from "../route";
import { table } from "../table";

// What was seen stays until another component is looked at.
let seen: { node: string; looking: boolean; place: api.Live["place"]; batch?: api.Glance; error?: string } = { node: "", looking: false, place: "around" };

// Between two batches: nobody reads faster. By chance, or targets that are scraped at regular times would show the same one always.
const pause = (): number => 1000 + 2000 * Math.random();

export const live: View<api.Overview> = {
  name: "live",
  title: "Live data",
  every: 5,

  load: (_, signal) => get<api.Overview>("overview", {}, signal),

  render(now, route, page) {
    const nodes = now.nodes.filter((n) => n.live);
    const node = nodes.find((n) => n.id === route.id) ?? (route.id ? undefined : nodes[0]);
    if (!node) {
      return [heading("Live data", null), empty("No data can be looked at here", nodes.length ? h("a", { href: href("live", nodes[0]!.id) }, `Look at ${nodes[0]!.id}`) : "Components of Godwit show their data; none of them is in a pipeline.")];
    }
    if (seen.node !== node.id) seen = { node: node.id, looking: false, place: "around" };
    void look(node.id, page);
    return [
      h("div", null, h("p", { class: "crumbs" }, h("a", { href: href("overview") }, "Overview"), " / live data"), heading(node.id, about[seen.place], h("div", { class: "tally", role: "group", "aria-label": "Component" }, nodes.map((n) => h("a", { href: href("live", n.id), "aria-current": n === node ? "true" : undefined }, text(n.name, 40)))))),
      batch(route),
    ];
  },
};

const about: Record<api.Live["place"], string> = {
  out: "Some of what it hands on, batch by batch.",
  around: "Some of what comes to it, and what becomes of it.",
  in: "Some of what it takes, batch by batch.",
};

async function look(node: string, page: Page): Promise<void> {
  if (seen.looking) return;
  const mine = seen;
  mine.looking = true;
  while (seen === mine && page.current === live && page.live && !document.hidden) {
    try {
      const got = await post<api.Live>("live", { node });
      mine.place = got.place;
      if (got.batches[0]) mine.batch = got.batches[0];
      delete mine.error;
    } catch (error) {
      mine.error = error instanceof Failure ? error.message : String(error);
    }
    if (seen === mine && page.current === live) page.redraw();
    await new Promise((done) => setTimeout(done, pause()));
  }
  mine.looking = false;
}

const fates: Record<api.Fate, [Tone, string]> = {
  passed: ["idle", "passed on"],
  changed: ["ok", "changed"],
  gone: ["warn", "not passed on"],
  unknown: ["idle", "batch too large to compare"],
};

type Row = api.Glance["points"][number];

function batch(route: Route): Child {
  const { batch: got, error, place } = seen;
  if (!got) return error ? h("p", { class: "notice bad", role: "alert" }, error) : empty("Waiting for data", "It shows with the next batch that passes.");
  const wanted = (route.params.get("fate") ?? "") as api.Fate | "";
  const rows = got.points.filter((p) => !wanted || p.fate === wanted);
  const kind = got.signal === "traces" ? "span" : got.signal === "logs" ? "record" : "point";
  const amount = place === "around" && got.out !== got.in ? `${count(got.in)} ${kind}s came, ${count(got.out)} went on` : plural(got.in, kind);
  return section(
    { id: "batch", title: "Last batch" },
    [`${amount}, `, h("time", { datetime: got.at, title: time(got.at) }, ago(got.at)), got.in > got.points.length ? `; ${plural(got.points.length, "example")}, others each time.` : ".", error ? ` ${error}` : ""],
    place === "around" ? h("div", { class: "filters" }, choice(route, "fate", "What became of it", [["", "Anything"], ...(Object.keys(fates) as api.Fate[]).map((f) => [f, fates[f][1]] as const)])) : null,
    table<Row>({
      caption: "Points that passed",
      rows,
      tone: (p) => (p.fate === "gone" ? "warn" : ""),
      none: empty("No such point in this batch", "The next one may have some."),
      columns: [
        { title: got.signal === "metrics" ? "Metric" : got.signal === "traces" ? "Span" : "Severity", head: true, class: "wrap", cell: (p) => [text(p.name), h("small", { class: "quiet block" }, p.kind)] },
        { title: "Value", class: "wrap mono", cell: (p) => value(p) },
        { title: "Attributes", cell: (p) => labels(p.attributes, { most: 12 }) },
        { title: "Resource", class: "resource", cell: (p) => labels(p.resource, { most: 12 }) },
        place === "around" && { title: "What became of it", class: "nowrap", cell: (p) => badge(...(fates[p.fate] ?? (["idle", p.fate] as const))) },
      ],
    }),
  );
}

function value(p: Row): Child {
  if (!p.after || p.after.value === p.value) return text(p.value);
  return [h("del", null, text(p.value)), " → ", h("ins", null, text(p.after.value))];
}
