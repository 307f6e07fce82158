// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// The pieces that views are made of.

import { address, type Query } from "./client";
import { h, type Child, type Tree } from "./dom";
import { clip, count, plural } from "./format";
import { invisible } from "./labels";
import { change, changed, parse, type Route } from "./route";
import type { Page } from "./page";
import type { Label } from "./api";

export type Tone = "ok" | "warn" | "bad" | "idle";

export function badge(tone: Tone, text: string): Tree {
  return h("span", { class: `badge ${tone}` }, text);
}

/** A heading, what stands beside it, and what it is about. */
export function heading(title: string, about: Child, ...beside: Child[]): Tree {
  return h("div", { class: "heading" }, h("div", null, h("h1", null, title), about ? h("p", { class: "quiet" }, about) : null), h("div", { class: "beside" }, beside));
}

/** A part of a view. What it is called may change; its name for the browser must not, or its fields lose the focus. */
export function section(title: string | { id: string; title: string }, about: Child, ...body: Child[]): Tree {
  if (typeof title === "string") return section({ id: title, title }, about, ...body);
  const id = `s-${title.id.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  return h("section", { "aria-labelledby": id, key: id }, h("h2", { id }, title.title), about ? h("p", { class: "quiet about" }, about) : null, body);
}

export function empty(title: Child, next: Child): Tree {
  return h("div", { class: "empty" }, h("p", null, h("strong", null, title)), h("p", { class: "quiet" }, next));
}

export interface Stat {
  label: string;
  value: string;
  note?: Child;
  tone?: Tone | undefined;
}

export function stats(...all: (Stat | null | false)[]): Tree {
  return h(
    "dl",
    { class: "stats" },
    all
      .filter((s): s is Stat => !!s)
      .map((s) => h("div", { class: s.tone ?? "" }, h("dt", null, s.label), h("dd", null, s.value, s.note ? h("small", null, s.note) : null))),
  );
}

/** A share of a limit: a bar for the eye, words for the rest. */
export function bar(share: number | null | undefined, text: string, tone?: Tone): Tree {
  const known = typeof share === "number" && Number.isFinite(share);
  const level = tone ?? (known && share >= 1 ? "bad" : known && share >= 0.8 ? "warn" : "idle");
  const width = known ? Math.max(0, Math.min(1, share)) * 100 : 0;
  return h("span", { class: "meter" }, h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: `fill ${level}`, style: { width: `${width}%` } })), h("span", null, text));
}

/** Labels as chips; a value of 10 kB shows its beginning. */
export function labels(all: readonly Label[] | null | undefined, options: { hide?: string[]; most?: number } = {}): Tree | null {
  const shown = (all ?? []).filter((l) => !options.hide?.includes(l.name));
  if (shown.length === 0) return null;
  const most = options.most ?? shown.length;
  return h(
    "ul",
    { class: "labels" },
    shown.slice(0, most).map(({ name, value }) => h("li", null, h("span", { class: "name" }, text(name)), "=", value.length <= 30 && h("wbr", null), text(value, 80))),
    shown.length > most ? h("li", { class: "more" }, `+${shown.length - most}`) : null,
  );
}

/** A text of strangers: its direction stays its own, its length does not break the page. */
export function text(value: string, most = 160): Tree {
  if (value === "") return h("bdi", { class: "value none" }, "(empty)");
  const long = value.length > most;
  return h("bdi", { class: "value", title: long ? `${clip(value, 2000)} (${plural(value.length, "character")})` : undefined }, visible(clip(value, most)));
}

/** Characters that reorder or hide text are shown by name: what one reads is what there is. */
export function visible(value: string): string {
  return value.replace(invisible, (c) =>
    c === "\n" ? "⏎" : c === "\t" ? "⇥" : `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

/** Links to the same data as files. */
export function exports(path: string, query: Query | URLSearchParams = {}, name = "this data", formats: ("csv" | "json")[] = ["csv", "json"]): Tree {
  const as = (format: string) => {
    const params = new URLSearchParams(address(path, query).split("?")[1] ?? "");
    params.set("format", format);
    return address(path, params);
  };
  return h(
    "span",
    { class: "exports" },
    formats.map((format) => h("a", { href: format === "csv" ? as(format) : address(path, query), download: "", "aria-label": `Download ${name} as ${format.toUpperCase()}` }, format.toUpperCase())),
  );
}

let typing = 0;

/** A search box whose text lives in the address; the server hears of it when typing pauses, or the box is left. */
export function search(route: Route, name: string, label: string): Tree {
  const send = (box: HTMLInputElement) => {
    clearTimeout(typing);
    const now = parse(location.hash);
    const elsewhere = now.view !== route.view || now.id !== route.id;
    if (!elsewhere && box.value !== (now.params.get(name) ?? "")) change({ [name]: box.value, offset: null }, true);
  };
  return h(
    "label",
    { class: "field grow", key: `search-${name}` },
    h("span", null, label),
    h("input", {
      type: "search",
      "data-search": "",
      key: `input-${name}`,
      placeholder: "Press / to search",
      value: route.params.get(name) ?? "",
      autocomplete: "off",
      spellcheck: "false",
      on: {
        input: (event: InputEvent) => {
          const box = event.target as HTMLInputElement;
          clearTimeout(typing);
          typing = window.setTimeout(() => send(box), 120);
        },
        blur: (event: FocusEvent) => send(event.target as HTMLInputElement),
      },
    }),
  );
}

export function choice(route: Route, name: string, label: string, options: readonly (readonly [value: string, text: string])[], initial = ""): Tree {
  const now = route.params.get(name) ?? initial;
  return h(
    "label",
    { class: "field", key: `choice-${name}` },
    h("span", null, label),
    h(
      "select",
      {
        on: {
          change: (event: Event) => {
            const value = (event.target as HTMLSelectElement).value;
            change({ [name]: value === initial ? null : value, offset: null });
          },
        },
      },
      options.map(([value, text]) => h("option", { value, selected: value === now }, text)),
    ),
  );
}

export function pager(route: Route, offset: number, size: number, total: number, rows: Child): Tree | null {
  if (total === 0) return null;
  const all = offset === 0 && total <= size; // there is no other page to leave room for
  const to = (at: number, text: string, label: string, rel: string) =>
    all ? null : at > -size && at < total && size > 0 ? h("a", { href: changed(route, { offset: Math.max(0, at) || null }), rel, "aria-label": label }, text) : h("span", { class: "off", "aria-hidden": "true" }, text);
  return h(
    "nav",
    { class: "pager", "aria-label": "Pages" },
    total > 50 ? rows : null,
    h("span", null, `${count(Math.min(offset + 1, total))} to ${count(Math.min(offset + size, total))} of ${count(total)}`),
    to(offset - size, "Previous", "Previous page", "prev"),
    to(offset + size, "Next", "Next page", "next"),
  );
}

/** A button that copies, and says so to all. */
export function copy(page: Page, label: string, content: () => string): Tree {
  return h(
    "button",
    {
      type: "button",
      on: {
        click: async (event: Event) => {
          const words = (event.currentTarget as HTMLElement).firstChild!;
          const said = (await put(content())) ? "Copied" : "Not copied: select the text instead";
          page.say(said);
          words.nodeValue = said;
          setTimeout(() => (words.nodeValue = label), 3000);
        },
      },
    },
    label,
  );
}

// Browsers offer their clipboard to pages of this machine and behind TLS; the old way works on others, too.
async function put(content: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(content);
    return true;
  } catch {
    const before = document.activeElement;
    const area = document.createElement("textarea");
    area.className = "unseen";
    area.value = content;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (before instanceof HTMLElement) before.focus();
    return done;
  }
}
