// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// A view loads what it shows and says how that looks. The page decides when: at
// once, then every few seconds, never while nobody looks.

import { Failure } from "./client";
import { h, sync, type Child } from "./dom";
import { duration } from "./format";
import { href, parse, type Route } from "./route";
import { anew, another, leftOut } from "./table";

export interface View<Data = any> {
  name: string;
  title: string;
  /** Seconds between looks; 0 looks once. */
  every: number;
  load(route: Route, signal: AbortSignal): Promise<Data>;
  render(data: Data, route: Route, page: Page): Child;
}

export class Page {
  live = true;
  route: Route = parse(location.hash);
  /** Set by the shell: draws what is outside the view. */
  changed: () => void = () => {};

  private view!: View;
  private data: unknown;
  private at: Date | undefined;
  private failure: Error | undefined;
  private loading: AbortController | undefined;
  private timer = 0;
  private drawing = 0;
  /** The next drawing is of another list: its columns are to be found. */
  private another = true;
  private announced = "";

  constructor(
    readonly views: readonly View[],
    private readonly body: HTMLElement,
    private readonly notice: HTMLElement,
    private readonly announcer: HTMLElement,
  ) {
    addEventListener("hashchange", () => this.navigate());
    document.addEventListener("visibilitychange", () => (document.hidden ? this.rest() : this.wake()));
    addEventListener("online", () => this.wake());
  }

  get current(): View {
    return this.view;
  }

  /** Whether the collector did not answer the latest question. That it knows nothing of something is an answer. */
  get stale(): boolean {
    return this.failure !== undefined && !(this.failure instanceof Failure && this.failure.status >= 400 && this.failure.status < 500);
  }

  navigate(): void {
    const before = this.view ? `${this.view.name}/${this.route.id}` : undefined;
    const next = parse(location.hash);
    if (location.hash === "#main") return; // the skip link is no view
    clearTimeout(this.drawing);
    another();
    this.another = true;
    this.route = next;
    this.view = this.views.find((v) => v.name === next.view) ?? this.views[0]!;
    if (before !== `${this.view.name}/${next.id}`) {
      this.data = this.failure = this.at = undefined;
      document.title = `${this.view.title} · Godwit`;
      sync(this.body, h("div", { class: "loading", key: "loading" }, h("p", null, "Loading…")));
      if (before !== undefined) {
        scrollTo(0, 0);
        document.getElementById("main")?.focus({ preventScroll: true });
        this.say(this.view.title);
      }
    }
    this.changed();
    void this.load();
  }

  /** Draws again what is known: a disclosure, a tick, a theme changed. */
  redraw(): void {
    clearTimeout(this.drawing);
    anew();
    this.step();
  }

  private step(): void {
    if (this.data === undefined) return;
    const began = performance.now();
    sync(this.body, this.view.render(this.data, this.route, this));
    fit(this.body, this.another);
    this.another = false;
    if (leftOut(performance.now() - began)) this.drawing = window.setTimeout(() => this.step());
  }

  async load(): Promise<void> {
    this.rest();
    const loading = (this.loading = new AbortController());
    const { view, route } = this;
    this.body.setAttribute("aria-busy", "true");
    try {
      const data = await view.load(route, loading.signal);
      if (loading.signal.aborted) return;
      this.data = data;
      this.at = new Date();
      this.failure = undefined;
    } catch (error) {
      if (loading.signal.aborted) return;
      this.failure = error instanceof Error ? error : new Error(String(error));
    }
    this.loading = undefined;
    this.body.removeAttribute("aria-busy");
    this.draw();
    this.schedule();
  }

  /** Tells those who cannot see it, once. */
  say(text: string): void {
    if (text === this.announced) return;
    this.announced = text;
    this.announcer.textContent = text;
  }

  toggleLive(): void {
    this.live = !this.live;
    this.say(this.live ? "Updates resumed" : "Updates paused");
    this.changed();
    if (this.live) this.wake();
    else this.rest();
  }

  private draw(): void {
    this.changed();
    if (this.failure) this.say(this.failure.message);
    if (this.data === undefined) {
      sync(this.notice);
      sync(this.body, this.failure ? this.apology(this.failure) : null);
      return;
    }
    sync(this.notice, this.failure ? this.staleness(this.failure) : null);
    this.redraw();
  }

  private apology(failure: Error): Child {
    const status = failure instanceof Failure ? failure.status : 0;
    const [title, next] =
      status === 0
        ? ["The collector does not answer", "It may be stopped, restarting, or unreachable from this browser. This page keeps trying."]
        : status === 401 || status === 403
          ? ["The collector refuses to show this", "Its console asks for credentials that this browser did not send."]
          : status === 404
            ? ["Nothing is known of this", "It may have been removed from the configuration or from discovery since the link was made, or be too small for the statistics."]
            : ["The collector could not answer", "The console's log line for this request says more."];
    return h(
      "section",
      { class: "apology", role: "alert", key: "apology" },
      h("h1", null, title),
      failure.message.startsWith(title) ? null : h("p", null, failure.message),
      h("p", { class: "quiet" }, next),
      h("p", { class: "beside" }, h("button", { type: "button", class: "primary", on: { click: () => void this.load() } }, "Try again"), this.route.id ? h("a", { href: href(this.view.name) }, `All ${this.view.title.toLowerCase()}`) : null),
    );
  }

  private staleness(failure: Error): Child {
    const again = this.live && this.view.every > 0 ? `Trying again every ${duration(this.view.every)}.` : "";
    return h("div", { class: "notice bad", role: "alert" }, h("strong", null, failure.message), ` What you see is from ${this.at?.toLocaleTimeString("sv-SE") ?? "before"}. ${again}`);
  }

  private schedule(): void {
    clearTimeout(this.timer);
    if (this.live && this.view.every > 0 && !document.hidden) this.timer = window.setTimeout(() => void this.load(), this.view.every * 1000);
  }

  private rest(): void {
    clearTimeout(this.timer);
    this.loading?.abort();
    this.loading = undefined;
  }

  private wake(): void {
    if (!document.hidden && (this.live || this.data === undefined)) void this.load();
  }
}

/** How many columns were found for a long list. */
const columns = new WeakMap<HTMLTableElement, number>();

// The head of a table stays in sight, but for one that is wider than its place: that scrolls by itself. A long list keeps the
// columns of its first rows, so that the browser need not look at all rows to lay out one (see .long in the style sheet).
function fit(body: HTMLElement, again: boolean): void {
  const places = [...body.querySelectorAll<HTMLElement>(".scroll")].map((place) => ({ place, table: place.firstElementChild as HTMLTableElement }));
  const found = ({ table }: (typeof places)[0]) => "many" in table.dataset && columns.get(table) === heads(table).length;
  for (const one of places) {
    if (!again && found(one)) continue;
    one.table.classList.remove("long");
    columns.delete(one.table);
  }
  // All are measured before any is changed: a change in between would have the page laid out again for each.
  const fits = places
    .filter((one) => !found(one))
    .map(({ place, table }) => ({ place, table, wide: table.scrollWidth > place.clientWidth + 1, widths: "many" in table.dataset ? heads(table).map((h) => h.getBoundingClientRect().width) : null }));
  for (const { place, table, wide, widths } of fits) {
    place.classList.toggle("wide", wide);
    if (!widths) continue;
    table.style.setProperty("--columns", widths.map((w) => (wide ? `${w}px` : `minmax(0, ${w}fr)`)).join(" "));
    table.classList.add("long");
    columns.set(table, widths.length);
  }
}

const heads = (table: HTMLTableElement): Element[] => [...(table.tHead?.rows[0]?.cells ?? [])];

let resizing = 0;

addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = window.setTimeout(() => {
    const body = document.getElementById("view");
    if (body) fit(body, true);
  }, 100);
});
