// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

import { h, sync } from "./dom";
import { Page } from "./page";
import { go, href } from "./route";
import { setTheme, theme, type Theme } from "./settings";
import { cardinality } from "./views/cardinality";
import { configuration } from "./views/configuration";
import { delivery } from "./views/delivery";
import { live } from "./views/live";
import { overview } from "./views/overview";
import { relabel } from "./views/relabel";
import { targets } from "./views/targets";

const element = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E;

const page = new Page([overview, targets, cardinality, delivery, configuration, relabel, live], element("view"), element("notice"), element("announcer"));
const tabs = [overview, targets, cardinality, delivery, configuration];

page.changed = () => {
  sync(
    element("nav"),
    tabs.map((view) => {
      const here = view === page.current || (view === targets && page.current === relabel) || (view === overview && page.current === live);
      return h("a", { href: href(view.name), "aria-current": here ? "page" : undefined }, view.title);
    }),
  );
  const badge = element<HTMLButtonElement>("live");
  const state = !page.live ? "Paused" : page.stale ? "No answer" : "Live";
  badge.textContent = state;
  badge.title = page.live ? "Pause updates (p)" : "Resume updates (p)";
  badge.classList.toggle("stale", page.live && page.stale);
  badge.setAttribute("aria-pressed", String(!page.live));
  badge.setAttribute("aria-label", `${state}: ${page.live ? "pause" : "resume"} updates`);
  const themes = element<HTMLButtonElement>("theme");
  const names: Record<Theme, string> = { auto: "Auto theme", light: "Light theme", dark: "Dark theme" };
  themes.textContent = names[theme()];
  themes.title = "Colour theme (t)";
  themes.setAttribute("aria-label", `${names[theme()]}: change the colours`);
};

function nextTheme(): void {
  const order: Theme[] = ["auto", "light", "dark"];
  setTheme(order[(order.indexOf(theme()) + 1) % order.length]!);
  page.changed();
  page.redraw();
  page.say(`Colour theme: ${theme()}`);
}

interface Shortcut {
  keys: string;
  does: string;
  run: () => void;
}

const shortcuts: Shortcut[] = [
  ...tabs.map((view, i) => ({ keys: String(i + 1), does: view.title, run: () => go(href(view.name)) })),
  { keys: "/", does: "Search in this view", run: () => document.querySelector<HTMLElement>("#view [data-search]")?.focus() },
  { keys: "r", does: "Refresh now", run: () => void page.load() },
  { keys: "p", does: "Pause or resume updates", run: () => page.toggleLive() },
  { keys: "t", does: "Colour theme: auto, light, dark", run: nextTheme },
  { keys: "?", does: "This list", run: openHelp },
];

function openHelp(): void {
  const dialog = element<HTMLDialogElement>("shortcuts");
  sync(
    dialog,
    h("h2", { id: "shortcuts-title" }, "Keyboard shortcuts"),
    h(
      "dl",
      { class: "keys" },
      shortcuts.map((s) => h("div", null, h("dt", null, h("kbd", null, s.keys)), h("dd", null, s.does))),
      h("div", null, h("dt", null, h("kbd", null, "Esc")), h("dd", null, "Close this; leave a search box")),
    ),
    h("p", { class: "quiet" }, "Tab and Shift-Tab visit everything in reading order. Column headings sort with Enter. The address holds all you see: copy it to share it."),
    h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close")),
  );
  if (!dialog.open) dialog.showModal();
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || element<HTMLDialogElement>("shortcuts").open) return;
  const on = event.target as HTMLElement;
  if (on.closest("input, textarea, select")) {
    if (event.key === "Escape") on.blur();
    return;
  }
  const shortcut = shortcuts.find((s) => s.keys === event.key);
  if (!shortcut) return;
  event.preventDefault();
  shortcut.run();
});

document.querySelector(".skip")!.addEventListener("click", (event) => {
  event.preventDefault(); // the hash is the view's
  element("main").focus();
});
element("live").addEventListener("click", () => page.toggleLive());
element("theme").addEventListener("click", nextTheme);
element("help").addEventListener("click", openHelp);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.redraw());

page.navigate();
