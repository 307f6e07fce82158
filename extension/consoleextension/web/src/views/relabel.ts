// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// The relabel debugger. Labels and rules are in the address, so that a puzzle can be
// sent to somebody else; from a target they begin as that target's.

import type * as api from "../api";
import { get, post } from "../client";
import { h, type Child } from "../dom";
import { plural } from "../format";
import { lines, read } from "../labels";
import type { Page, View } from "../page";
import { badge, empty, heading, labels, section, text, type Tone } from "../parts";
import { go, href, type Route } from "../route";

interface Data {
  labels: string;
  rules: string;
  /** Of metrics, offered in place of the target's. */
  metricRules: string;
  target?: api.TargetDetail;
  result?: api.Relabelled;
  error?: string;
}

const example = `__address__="10.1.2.3:9100"\nenv="test"`;
const exampleRules = `- source_labels: [__address__]\n  regex: '(.*):\\d+'\n  target_label: host\n- source_labels: [env]\n  regex: prod\n  action: keep`;

export const relabel: View<Data> = {
  name: "relabel",
  title: "Relabel debugger",
  every: 0,

  async load(route, signal) {
    const { params } = route;
    const target = await origin(params, signal);
    const data: Data = {
      labels: params.get("labels") ?? (target ? lines(target.discovered) : ""),
      rules: params.get("rules") ?? target?.relabel_configs ?? "",
      metricRules: target?.metric_relabel_configs ?? "",
      ...(target ? { target } : {}),
    };
    if (!data.labels.trim()) return data;
    try {
      data.result = await post<api.Relabelled>("relabel", { labels: read(data.labels), rules: data.rules.trim() || "[]" }, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      data.error = error instanceof Error ? error.message : String(error);
    }
    return data;
  },

  render(data, route, page) {
    return [
      h("div", null, h("p", { class: "crumbs" }, h("a", { href: href("targets") }, "Targets"), data.target ? [" / ", h("a", { href: href("targets", data.target.id) }, text(data.target.url, 80))] : null), heading("Relabel debugger", "See what each relabelling rule does to labels. Nothing is changed by trying.")),
      form(data, route, page),
      data.error ? h("p", { class: "notice bad", role: "alert" }, data.error) : null,
      data.result ? outcome(data.result) : data.error ? null : empty("No labels yet", "Paste some above, or open a target and follow its link to this page."),
    ];
  },
};

// A target lends its labels and rules; a job lends the rules of one of its targets.
async function origin(params: URLSearchParams, signal: AbortSignal): Promise<api.TargetDetail | undefined> {
  const id = params.get("target");
  if (id) return get<api.TargetDetail>(`targets/${encodeURIComponent(id)}`, {}, signal);
  const job = params.get("job");
  if (!job || params.has("rules")) return undefined;
  const { targets } = await get<api.TargetList>("targets", { job, limit: 1 }, signal);
  return targets[0]?.id ? get<api.TargetDetail>(`targets/${encodeURIComponent(targets[0].id)}`, {}, signal) : undefined;
}

function form(data: Data, route: Route, page: Page): Child {
  const apply = (labelText: string, rules: string) => {
    const params = new URLSearchParams(route.params);
    params.set("labels", labelText);
    params.set("rules", rules);
    const address = href("relabel", "", params);
    if (address === location.hash) void page.load();
    else go(address, true);
  };
  const field = (name: string) => (document.querySelector(`#relabel-form [name=${name}]`) as HTMLTextAreaElement).value;
  return h(
    "form",
    {
      id: "relabel-form",
      key: `form-${route.params.get("target") ?? route.params.get("job") ?? ""}`,
      on: {
        submit: (e: Event) => {
          e.preventDefault();
          apply(field("labels"), field("rules"));
        },
      },
    },
    h(
      "div",
      { class: "columns" },
      h("label", { class: "field" }, h("span", null, "Labels: one a line, or a series such as up{job=\"a\"}"), h("textarea", { name: "labels", rows: "9", spellcheck: "false", "data-search": "", placeholder: example, value: data.labels })),
      h("label", { class: "field" }, h("span", null, "Rules: YAML, as under relabel_configs"), h("textarea", { name: "rules", rows: "9", spellcheck: "false", placeholder: exampleRules, value: data.rules })),
    ),
    h(
      "p",
      { class: "after filters" },
      h("button", { type: "submit", class: "primary" }, "Try"),
      !data.labels.trim() ? h("button", { type: "button", on: { click: () => apply(example, exampleRules) } }, "Fill in an example") : null,
      data.metricRules && data.rules !== data.metricRules ? h("button", { type: "button", on: { click: () => apply(field("labels"), data.metricRules) } }, "Take metric_relabel_configs instead") : null,
    ),
  );
}

function outcome(result: api.Relabelled): Child {
  const verdict = result.dropped
    ? h("div", { class: "notice bad", role: "status" }, h("strong", null, `Dropped by rule ${result.steps.length}.`), result.skipped ? ` ${plural(result.skipped, "rule")} after it did not run.` : " It is not scraped.")
    : h("div", { class: "outcome-labels", role: "status" }, h("p", null, h("strong", null, "Kept"), `, with ${plural(result.labels.length, "label")}:`), labels(result.labels));
  return [
    section("Outcome", null, result.dropped ? verdict : h("div", { class: "panel" }, verdict)),
    result.steps.length
      ? section(
          "Step by step",
          null,
          h(
            "ol",
            { class: "steps" },
            result.steps.map((step) =>
              h(
                "li",
                { class: step.dropped ? "bad" : step.changed ? "changed" : "" },
                h("div", { class: "step-head" }, h("h3", null, `Rule ${step.index + 1}: ${step.action}`), badge(...effect(step))),
                h("div", { class: "columns" }, h("pre", { tabindex: "0" }, step.rule.trim()), effects(step)),
              ),
            ),
          ),
        )
      : null,
  ];
}

// What a rule did, in the words of relabelling: that it matches need not change anything.
function effect(step: api.Step): [Tone, string] {
  const match = step.matched === null ? "" : step.matched ? "matched, " : "not matched, ";
  if (step.dropped) return ["bad", `${match}dropped`];
  if (step.changed) return ["ok", match + plural(step.changes.length, "change")];
  return ["idle", match + (["keep", "drop", "keepequal", "dropequal"].includes(step.action) ? "kept" : "no change")];
}

function effects(step: api.Step): Child {
  if (step.dropped) return h("p", null, "The labels do not pass this rule; later rules are not applied.");
  return h(
    "div",
    null,
    step.changes.length
      ? h(
          "ul",
          { class: "changes" },
          step.changes.map((c) =>
            h(
              "li",
              null,
              h("code", { class: "name" }, text(c.name)),
              c.before === null ? [" added: ", h("ins", null, text(c.after ?? ""))] : c.after === null ? [" removed, was ", h("del", null, text(c.before))] : [": ", h("del", null, text(c.before)), " → ", h("ins", null, text(c.after))],
            ),
          ),
        )
      : null,
    h("details", { key: `after-${step.index}` }, h("summary", null, `${plural(step.labels.length, "label")} after it`), labels(step.labels)),
  );
}
