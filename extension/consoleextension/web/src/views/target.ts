// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// One target: how its last scrape went, what relabelling made of its labels, and
// what it answers at this moment.

import type * as api from "../api";
import { post } from "../client";
import { h, type Child } from "../dom";
import { ago, bytes, count, duration, plural, time } from "../format";
import type { Page } from "../page";
import { badge, copy, heading, section, stats, text, visible } from "../parts";
import { href } from "../route";
import { table } from "../table";
import { hits, states } from "./state";

interface Look {
  id: string;
  busy: boolean;
  at?: string;
  page?: api.TargetResponse;
  error?: string;
  filter: string;
}

// What was fetched stays until another target is looked at.
let look: Look = { id: "", busy: false, filter: "" };

export function targetDetail(t: api.TargetDetail, page: Page): Child {
  if (look.id !== t.id) look = { id: t.id, busy: false, filter: "" };
  const [tone, state] = states[t.state];
  return [
    h("div", null, h("p", { class: "crumbs" }, h("a", { href: href("targets") }, "Targets"), " / ", h("a", { href: href("targets", "", { job: t.job }) }, text(t.job, 60))), heading(t.url, null, badge(tone, state))),
    t.last_error ? h("div", { class: "notice bad" }, h("strong", null, t.reason ? `The last scrape failed: ${t.reason_text}. ` : "The last scrape failed. "), text(t.last_error, 4000), t.next ? h("p", null, "Next: ", t.next) : null) : null,
    stats(
      { label: "Last scrape", value: ago(t.last_scrape), note: time(t.last_scrape) },
      { label: "Took", value: t.last_scrape ? duration(t.last_duration_seconds) : "–", note: `of ${duration(t.timeout_seconds)} allowed` },
      { label: "Every", value: duration(t.interval_seconds), note: `receiver ${t.receiver}` },
      { label: "Samples", value: count(t.samples), note: "on the last page" },
      { label: "Size", value: bytes(t.bytes), note: "as transferred" },
      { label: "Parse-cache hits", value: hits(t), note: `${count(t.plan_misses)} lines were new` },
    ),
    section(
      "Labels",
      "The labels that discovery found, and those that the series of this target have.",
      h("div", { class: "columns" }, labelTable("Before relabelling", t.discovered, t.labels), labelTable("After relabelling", t.labels, t.discovered)),
      h("p", { class: "after" }, h("a", { href: href("relabel", "", { target: t.id }) }, "See what each rule does to them")),
    ),
    section("Its page now", "Fetched once, the way a scrape does it, when you ask.", response(t, page)),
  ];
}

function labelTable(title: string, all: api.Label[], other: api.Label[]): Child {
  const same = (l: api.Label) => other.some((o) => o.name === l.name && o.value === l.value);
  return h(
    "div",
    { class: "pairs" },
    h("h3", { class: "over" }, title),
    table<api.Label>({
      caption: title,
      rows: all,
      key: (l) => l.name,
      none: h("p", { class: "quiet" }, "None."),
      columns: [
        { title: "Name", head: true, class: "mono wrap", cell: (l) => text(l.name) },
        { title: "Value", class: "mono wrap", cell: (l) => (same(l) ? h("span", { class: "quiet" }, long(l)) : long(l)) },
      ],
    }),
  );
}

// Ten thousand characters are there for whoever wants them.
function long(l: api.Label): Child {
  if (l.value.length <= 300) return text(l.value, 300);
  return [text(l.value, 200), h("details", { key: `long-${l.name}` }, h("summary", null, `All ${plural(l.value.length, "character")}`), h("bdi", { class: "value" }, visible(l.value)))];
}

async function fetchPage(t: api.TargetDetail, page: Page): Promise<void> {
  look = { id: t.id, busy: true, filter: look.filter };
  const mine = look;
  page.redraw();
  try {
    mine.page = await post<api.TargetResponse>(`targets/${encodeURIComponent(t.id)}/response`, {});
    page.say("The page has arrived");
  } catch (error) {
    mine.error = error instanceof Error ? error.message : String(error);
    page.say(mine.error);
  }
  mine.busy = false;
  mine.at = new Date().toISOString();
  if (look === mine) page.redraw();
}

const mostLines = 2000;

function response(t: api.TargetDetail, page: Page): Child {
  if (!t.can_look) return h("p", { class: "quiet" }, "This receiver does not fetch pages on demand.");
  const got = look.page;
  return h(
    "div",
    { class: "panel live" },
    h(
      "div",
      { class: "filters" },
      h("button", { type: "button", class: got ? "" : "primary", disabled: look.busy, on: { click: () => void fetchPage(t, page) } }, look.busy ? "Fetching…" : got || look.error ? "Fetch again" : "Fetch its page"),
      got
        ? h(
            "label",
            { class: "field grow", key: "line-filter" },
            h("span", null, "Lines that contain"),
            h("input", {
              type: "search",
              value: look.filter,
              "data-search": "",
              on: {
                input: (e: Event) => {
                  look.filter = (e.target as HTMLInputElement).value;
                  page.redraw();
                },
              },
            }),
          )
        : null,
      got ? copy(page, "Copy", () => got.body) : null,
    ),
    look.error ? h("p", { class: "bad-text", role: "alert" }, look.error) : null,
    got ? body(got) : null,
  );
}

function body(got: api.TargetResponse): Child {
  const all = got.body.split("\n");
  const fitting = look.filter ? all.filter((line) => line.includes(look.filter)) : all;
  return [
    got.status ? h("p", { class: "bad-text", role: "alert" }, "The target answers ", text(got.status), ". What it says about it:") : null,
    h("p", { class: "quiet" }, [got.content_type || "no content type", !got.encoding || got.encoding === "identity" ? "not compressed" : got.encoding, `${bytes(got.wire_bytes)} in ${duration(got.took_seconds)}`, `${ago(look.at)}`, got.truncated ? "cut at 1 MiB" : ""].filter(Boolean).join(" · ")),
    h("pre", { class: "tall", tabindex: "0", role: "region", "aria-label": "The target's page" }, fitting.slice(0, mostLines).map(visible).join("\n") || "No line fits."),
    fitting.length > mostLines ? h("p", { class: "quiet" }, `The first ${count(mostLines)} of ${plural(fitting.length, "line")}.`) : null,
  ];
}
