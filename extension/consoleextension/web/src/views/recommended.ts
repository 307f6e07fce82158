// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Rules that would save most series, for those who ask. They are not worked out before.

import type * as api from "../api";
import { h, type Child } from "../dom";
import { percent, percentError, plural } from "../format";
import type { Page } from "../page";
import { copy, empty, section, text } from "../parts";
import { changed, href, type Route } from "../route";
import { table } from "../table";
import { estimate } from "./estimate";

const title = "What would save most";

const share = (saving: api.Saving): string => percent(saving.saved_ratio) + percentError(saving.saved_ratio, saving.saved_ratio_error);

export function recommended(advice: api.Recommendations | undefined, route: Route, page: Page): Child {
  if (!advice) {
    return section(title, null, h("p", null, h("a", { id: "advice", href: changed(route, { advice: "1" }) }, "Recommend rules"), h("span", { class: "quiet" }, " that aggregate what few will miss. Nothing is changed by looking.")));
  }
  if (advice.rules.length === 0) {
    return section(title, null, empty("No rule would save enough", "Labels that identify targets and hosts are never removed, and the others make few series."));
  }
  return section(
    title,
    "Sums over the labels that go stay the same. Queries that ask by these labels would change.",
    h(
      "div",
      { class: "panel whatif advice" },
      h("p", { class: "outcome", role: "status" }, `${plural(advice.rules.length, "rule")} would save `, h("b", null, estimate(advice.saved)), " of ", h("b", null, estimate(advice.before)), " series: ", h("b", null, share(advice)), ", those that limits keep out included."),
      table<api.Recommendation>({
        caption: "Recommended rules",
        rows: advice.rules,
        key: (rule) => rule.name,
        columns: [
          { title: "Metrics", head: true, class: "wrap", cell: (rule) => rule.metrics.map((name, i) => [i ? ", " : "", h("a", { href: href("cardinality", name, { processor: route.params.get("processor") }) }, text(name, 80))]) },
          { title: "Without", class: "wrap", cell: (rule) => rule.labels.map((name, i) => [i ? ", " : "", h("code", null, text(name, 60))]) },
          { title: "Series", numeric: true, cell: (rule) => estimate(rule.before) },
          { title: "Saved", numeric: true, cell: (rule) => estimate(rule.saved) },
          { title: "Of all", numeric: true, cell: share },
          { title: "", class: "wrap quiet", cell: (rule) => [rule.gauges ? "Gauges become sums; aggregate::outputs has others. " : null, rule.note] },
        ],
      }),
      h("pre", { tabindex: "0", role: "region", "aria-label": "The rules as YAML" }, advice.yaml),
      h("p", null, copy(page, "Copy the rules", () => advice.yaml), h("span", { class: "quiet" }, " Put them under the ", h("code", null, "cardinality"), " processor, or into its rules file, which is read without a restart.")),
    ),
  );
}
