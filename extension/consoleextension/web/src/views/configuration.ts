// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

import type * as api from "../api";
import { address, get } from "../client";
import { h, type Child } from "../dom";
import { ago, plural, time, unknown } from "../format";
import type { View } from "../page";
import { badge, copy, empty, heading, search, section, text, type Tone } from "../parts";
import { order, sorted, table } from "../table";

const statuses: Record<api.Status, [Tone, string]> = {
  none: ["idle", "says nothing"],
  starting: ["idle", "starting"],
  ok: ["ok", "ok"],
  recoverable_error: ["warn", "recoverable error"],
  permanent_error: ["bad", "permanent error"],
  fatal_error: ["bad", "fatal error"],
  stopping: ["idle", "stopping"],
  stopped: ["idle", "stopped"],
};

export const configuration: View<api.Configuration> = {
  name: "configuration",
  title: "Configuration",
  every: 15,

  load: (_, signal) => get<api.Configuration>("configuration", {}, signal),

  render(data, route, page) {
    const { collector } = data;
    const q = (route.params.get("q") ?? "").toLowerCase();
    const fits = data.components.filter((c) => !q || [c.id, c.type, c.module, c.version, c.status, ...(c.pipelines ?? [])].some((s) => s.toLowerCase().includes(q)));
    const initial = { by: "id", down: false };
    const rows = sorted(fits, order(route, initial), { id: (c) => c.id, status: (c) => c.status, version: (c) => `${c.module}@${c.version}` });
    return [
      heading("Configuration", `${collector.name} ${collector.version}, ${collector.go}, ${collector.platform}.`),
      section(
        "Components",
        null,
        h("div", { class: "filters" }, search(route, "q", "Search in components")),
        table<api.Component>({
          caption: "Components",
          rows,
          key: (c) => c.id,
          route,
          initial,
          tone: (c) => (statuses[c.status]?.[0] === "bad" ? "bad" : statuses[c.status]?.[0] === "warn" ? "warn" : ""),
          none: empty("No component fits", "Try a shorter word."),
          columns: [
            { title: "Component", head: true, sort: "id", class: "wrap", cell: (c) => c.id },
            { title: "Status", sort: "status", class: "wrap", cell: (c) => [badge(...(statuses[c.status] ?? ["idle", c.status])), c.status_error ? h("small", { class: "block bad-text" }, text(c.status_error, 300)) : null] },
            { title: "Since", class: "nowrap", cell: (c) => (c.status_since ? h("time", { datetime: c.status_since, title: time(c.status_since) }, ago(c.status_since)) : unknown) },
            { title: "Pipelines", class: "wrap", cell: (c) => (c.pipelines ?? []).join(", ") },
            { title: "Module", sort: "version", class: "wrap", cell: (c) => (c.module ? [path(c.module), " ", h("b", { class: "nowrap" }, c.version)] : unknown) },
          ],
        }),
      ),
      section(
        "Effective configuration",
        ["Defaults are filled in. ", data.redacted ? `${plural(data.redacted, "value")} that may be secret ${data.redacted === 1 ? "is" : "are"} replaced by [REDACTED].` : "Nothing had to be redacted."],
        h("div", { class: "filters after-about" }, copy(page, "Copy", () => data.yaml), h("a", { href: address("configuration", { format: "yaml" }), download: "" }, "Download YAML"), h("a", { href: address("configuration"), download: "" }, "Download JSON")),
        h("pre", { class: "yaml", tabindex: "0", role: "region", "aria-label": "The configuration as YAML" }, yaml(data.yaml)),
      ),
      data.modules?.length
        ? h("details", { key: "modules" }, h("summary", null, plural(data.modules.length, "module")), table({ caption: "Modules", rows: data.modules, key: (m) => m.path, columns: [{ title: "Module", head: true, class: "wrap", cell: (m) => path(m.path) }, { title: "Version", class: "nowrap", cell: (m) => m.version }] }))
        : null,
    ];
  },
};

// Keys apart from values, no more: it is read, not admired.
function yaml(source: string): Child {
  return source.split("\n").map((line) => {
    const [, indent = "", key = "", rest = ""] = /^(\s*(?:- )*)([^\s:][^:]*:)?(.*)$/.exec(line) ?? [];
    return [indent, key ? h("span", { class: "key" }, key) : null, rest.includes("[REDACTED]") ? h("span", { class: "warn-text" }, rest) : rest, "\n"];
  });
}

// A path may be broken after a slash, and a word of it where nothing else helps.
const path = (module: string): Child => module.split("/").map((part, i) => (i ? ["/", h("wbr"), part] : part));
