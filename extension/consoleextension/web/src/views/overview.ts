// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

import type * as api from "../api";
import { get } from "../client";
import { h, type Child } from "../dom";
import { byteRate, bytes, count, duration, measured, percent, plural, rate, short, unknown } from "../format";
import type { View } from "../page";
import { heading, section, stats, text, type Tone } from "../parts";
import { picture, type Arrow, type Box } from "../picture";
import { href, type Route } from "../route";
import { states } from "./delivery";
import { chooseRange, drawer, range, remembered, type Drawn } from "./past";

interface Data {
  now: api.Overview;
  history: api.History;
}

const history = remembered<api.History>("history");

export const overview: View<Data> = {
  name: "overview",
  title: "Overview",
  every: 5,

  async load(_, signal) {
    const [now, past] = await Promise.all([get<api.Overview>("overview", {}, signal), history(signal)]);
    return { now, history: past };
  },

  render({ now, history }, route) {
    document.title = `${now.health === "ok" ? "" : "(!) "}Overview · ${now.collector.hostname || "Godwit"}`;
    // What is wrong comes first: a picture may be as high as the screen, where a pipeline is long or the screen narrow.
    return [heading(verdict(now), summary(now)), findings(now.findings), pipelines(now), numbers(now), past(history, now, route)];
  },
};

function verdict(now: api.Overview): string {
  const errors = now.findings.filter((f) => f.severity === "error").length;
  const warnings = now.findings.filter((f) => f.severity === "warning").length;
  const told = [
    errors ? plural(errors, "problem") : "",
    warnings ? plural(warnings, "warning", "warnings") : "",
  ].filter(Boolean);
  return told.join(", ") || "All is well";
}

// What most come to find out, as sentences.
function summary(now: api.Overview): Child {
  const { collector, targets } = now;
  const all = targets.healthy + targets.failing + targets.unknown;
  return [
    `${collector.name} ${collector.version} on ${collector.hostname}, up ${since(now, now.started)}${reloaded(now)}. `,
    all > 0 ? `${count(targets.healthy)} of ${plural(all, "target")} healthy. ` : "",
    losses(now),
  ];
}

const since = (now: api.Overview, when: string): string => duration((Date.parse(now.now) - Date.parse(when)) / 1000);

// Counters begin anew with each configuration.
const reloaded = (now: api.Overview): string => (Date.parse(now.loaded) - Date.parse(now.started) > 10_000 ? `, configuration loaded again ${since(now, now.loaded)} ago` : "");

function losses(now: api.Overview): Child {
  const lost = now.totals.dropped_per_second;
  const scrapes = allLostScrapes(now);
  const stuck = (kind: string) => now.findings.some((f) => f.severity === "error" && f.view === "delivery" && f.subject.startsWith(kind));
  if (lost) return h("strong", { class: "bad-text" }, `${rate(lost)} are being lost.`);
  if (scrapes) return h("strong", { class: "bad-text" }, `${short(scrapes)} scrapes/s are being lost.`);
  if (stuck("receiver/")) return h("strong", { class: "bad-text" }, "Requests of clients are turned down.");
  if (stuck("exporter/")) return "Nothing is being lost so far, but data cannot go where it should.";
  return lost === null ? (now.over_seconds === null ? "Whether anything is lost is being measured." : null) : "Nothing is being lost.";
}

const allLostScrapes = (now: api.Overview): number => now.nodes.reduce((sum, n) => sum + lostScrapes(n), 0);

// What the pipeline does not take of a scrape cannot be scraped again.
const lostScrapes = (node: api.PipelineNode): number => (node.outside.in === "targets" ? (node.rates?.refused ?? 0) : 0);

const shownProblems = 6;

// The worst first; of many the rest is folded away.
function findings(all: api.Finding[]): Child {
  if (all.length === 0) return null;
  const rest = all.slice(shownProblems);
  return h(
    "section",
    { "aria-label": "What is unhealthy", key: "findings" },
    h("ul", { class: "problems" }, all.slice(0, shownProblems).map(finding)),
    rest.length ? h("details", { class: "rest", key: "rest" }, h("summary", null, `${count(rest.length)} more`), h("ul", { class: "problems" }, rest.map(finding))) : null,
  );
}

const tones: Record<api.Finding["severity"], [Tone, string]> = { error: ["bad", "Problem"], warning: ["warn", "Warning"], info: ["idle", "Note"] };

function finding(f: api.Finding): Child {
  const [tone, word] = tones[f.severity] ?? tones.info;
  return h(
    "li",
    { class: `problem ${tone}` },
    h("span", { class: `badge ${tone}` }, word),
    h("div", null, h("p", { class: "what" }, f.title), f.detail && f.detail !== f.title ? h("p", { class: "quiet" }, text(f.detail, 300)) : null),
    f.next ? h("p", { class: "next" }, h("span", { class: "quiet" }, "Next: "), f.next) : h("span"),
    f.view && f.view !== "overview" ? h("a", { class: "go", href: href(f.view, "", f.query ?? {}), "aria-label": `Show in ${f.view}: ${f.title}` }, `Show in ${f.view}`) : null,
  );
}

function pipelines(now: api.Overview): Child {
  const room = (document.getElementById("view")?.clientWidth ?? 1280) - (innerWidth <= 720 ? 22 : 42); // without the border and the padding of the figure
  return section(
    { id: "pipelines", title: now.pipelines.length === 1 ? "Pipeline" : "Pipelines" },
    null,
    now.pipelines.map((pipeline) => {
      const { boxes, arrows } = drawing(pipeline, now);
      return h("figure", { class: "picture", key: pipeline.id }, now.pipelines.length > 1 ? h("figcaption", { class: "quiet" }, pipeline.id) : null, picture(boxes, arrows, room));
    }),
  );
}

function drawing(pipeline: api.Pipeline, now: api.Overview): { boxes: Box[]; arrows: Arrow[] } {
  const found = pipeline.nodes.map((id) => now.nodes.find((n) => n.id === id)).filter((n): n is api.PipelineNode => !!n);
  const nodes = found.map((n) => ({ ...n, rates: pipeline.instances[n.id] ?? n.rates }));
  const boxes: Box[] = [];
  const arrows: Arrow[] = [];
  for (const node of nodes) {
    if (node.outside.in) {
      const id = `from/${node.id}`;
      boxes.push(source(id, node, now));
      arrows.push({ from: id, to: node.id, above: flow(node.rates?.in, node.unit), below: wire(node.rates?.wire_bytes) });
    }
    boxes.push(box(node, now));
  }
  for (const edge of pipeline.edges) {
    const seen = [edge.to, edge.from].map((id) => nodes.find((n) => n.id === id)).find((n) => n?.live);
    arrows.push({
      from: edge.from,
      to: edge.to,
      above: edge.per_second === null ? "" : rate(edge.per_second),
      below: wire(edge.bytes_per_second),
      ...(seen ? { href: href("live", seen.id), words: `Look at data from ${edge.from} to ${edge.to}` } : {}),
    });
  }
  for (const node of nodes) {
    for (const [i, d] of node.destinations.entries()) {
      const id = `to/${node.id}/${i}`;
      boxes.push(destination(id, d, node));
      arrows.push({ from: node.id, to: id, above: measured(d.sent_per_second, now.over_seconds), below: wire(d.wire_bytes_per_second) });
    }
    if (node.outside.out && node.destinations.length === 0) {
      boxes.push({ id: `to/${node.id}`, kind: "", name: "Destination", line: "", tone: null, losses: [], href: href("delivery") });
      arrows.push({ from: node.id, to: `to/${node.id}`, above: node.rates?.out == null ? "" : rate(node.rates.out), below: wire(node.rates?.wire_bytes) });
    }
  }
  return { boxes, arrows };
}

// Each destination is a box of its own: how it does, what waits for it, what it lost.
function destination(id: string, d: api.Destination, node: api.PipelineNode): Box {
  const [tone, state] = states[d.state] ?? ["idle", d.state];
  const losses: Box["losses"] = d.lost_per_second ? [{ text: `${rate(d.lost_per_second)} lost`, tone: "bad" }] : [];
  // While all goes well a queue of a moment says nothing.
  const used = d.queue.used ?? 0;
  const more = used >= 0.01 || (used > 0 && d.state !== "ok") ? `queue ${percent(used)} full` : "";
  return { id, kind: "", name: host(d.name), words: d.name, line: state, more, tone, losses, href: href("delivery", "", { exporter: node.name }) };
}

// The part of an address by which people know it.
function host(name: string): string {
  return name.replace(/^[a-z]+:\/\//i, "").replace(/\/.*$/, "") || name;
}

const flow = (n: api.Rate | undefined, unit: string): string => (n === null || n === undefined ? "" : `${short(n)} ${unit}/s`);
const wire = (n: api.Rate | undefined): string => (n === null || n === undefined ? "" : byteRate(n));

function source(id: string, node: api.PipelineNode, now: api.Overview): Box {
  if (node.outside.in !== "targets") return { id, kind: "", name: "Clients", line: "", tone: null, losses: [], href: href("delivery") };
  const { healthy, failing, unknown: new_ } = node.targets ?? now.targets;
  return { id, kind: "", name: plural(healthy + failing + new_, "target"), line: failing ? `${count(failing)} failing` : new_ ? `${count(new_)} not scraped yet` : healthy ? "all healthy" : "none found", tone: null, losses: [], href: href("targets", "", { state: failing ? "failing" : null, receiver: receivers(now) > 1 ? node.name : null }) };
}

const receivers = (now: api.Overview): number => now.nodes.filter((n) => n.targets).length;

const views: Record<string, string> = { receiver: "targets", exporter: "delivery" };

function box(node: api.PipelineNode, now: api.Overview): Box {
  const { rates } = node;
  const losses: Box["losses"] = [];
  // What a destination's box says is not said here once more.
  const said = node.destinations.reduce((sum, d) => sum + (d.lost_per_second ?? 0), 0);
  if (rates?.dropped && rates.dropped > said * 1.01) losses.push({ text: `${rate(rates.dropped)} lost`, tone: "bad" });
  if (lostScrapes(node) && !rates?.dropped) losses.push({ text: `${short(lostScrapes(node))} scrapes/s lost`, tone: "bad" });
  if (rates?.limited) losses.push({ text: `${rate(rates.limited)} limited`, tone: "warn" });
  return { id: node.id, kind: node.kind, name: node.name, line: doing(node), tone: tone(node, now), losses, href: href(node.id.startsWith("processor/cardinality") ? "cardinality" : node.outside.in === "clients" ? "delivery" : (views[node.kind] ?? "configuration")) };
}

function tone(node: api.PipelineNode, now: api.Overview): Tone {
  const told = now.findings.filter((f) => f.subject === node.id).map((f) => f.severity);
  if (told.includes("error") || node.status === "permanent_error" || node.status === "fatal_error") return "bad";
  if (told.includes("warning") || node.status === "recoverable_error") return "warn";
  return node.status === "ok" ? "ok" : "idle";
}

function doing(node: api.PipelineNode): string {
  if (node.status !== "ok" && node.status !== "none") return node.status.replace(/_/g, " ");
  const { rates } = node;
  if (rates?.refused) return `${rate(rates.refused)} refused`;
  // Of requests that are repeated or refused the bytes on the wire are counted, and what was in them is not.
  const well = node.destinations.every((d) => !d.lost_per_second && !d.retries_per_second);
  if (node.kind === "exporter" && well && rates?.wire_bytes && rates.raw_bytes) return `compressed to ${percent(rates.wire_bytes / rates.raw_bytes)}`;
  return rates ? "working" : "running";
}

function numbers(now: api.Overview): Child {
  const { totals: t, process: p, over_seconds: over } = now;
  const scrapes = allLostScrapes(now);
  const about = p.runtime?.profile ? `profile ${p.runtime.profile}` : "";
  return section(
    "Now",
    null,
    stats(
      { label: "In", value: measured(t.in_per_second, over), note: wire(t.received_wire_bytes_per_second) || null },
      { label: "Limited", value: measured(t.limited_per_second, over), tone: t.limited_per_second ? "warn" : undefined, note: "kept out on purpose" },
      { label: "Out", value: measured(t.out_per_second, over), note: t.destinations > 1 ? `by the slowest of ${count(t.destinations)} destinations` : t.out_per_second === null && over !== null ? "not measured by the exporters" : "acknowledged" },
      scrapes && !t.dropped_per_second
        ? { label: "Lost", value: `${short(scrapes)}/s`, tone: "bad", note: "scrapes that were refused" }
        : { label: "Lost", value: measured(t.dropped_per_second, over), tone: t.dropped_per_second ? "bad" : undefined, note: t.dropped_per_second ? h("a", { href: href("delivery") }, "see where") : t.dropped_per_second === 0 ? "nothing" : null },
      { label: "On the wire", value: measured(t.wire_bytes_per_second, over, byteRate), note: t.bytes_per_sample === null ? null : `${short(t.bytes_per_sample)} B per sample` },
      { label: "Waiting", value: bytes(t.queued_bytes), note: "in queues" },
      { label: "CPU", value: p.cpu_cores === null ? unknown : percent(p.cpu_cores), note: `of one core, of ${p.cpus}` },
      { label: "Memory", value: bytes(p.rss_bytes), note: p.memory_limit_bytes > 0 ? `limit ${bytes(p.memory_limit_bytes)}` : `${bytes(p.heap_live_bytes)} live heap` },
      { label: "GC", value: percent(p.gc_cpu_ratio), note: [`of CPU, GOGC ${p.gogc < 0 ? "off" : p.gogc}`, about].filter(Boolean).join(", ") },
    ),
  );
}

// The last point of each chart is the number that stands above it.
function past(history: api.History, now: api.Overview, route: Route): Child {
  const drawing = drawer(history, history.series, now.now, now.latest, range(route));
  if (!drawing) return section({ id: "hour", title: "Recent history" }, null, h("p", { class: "quiet" }, "Charts begin to show after 20 seconds."));
  const { draw, some } = drawing;
  return section(
    { id: "hour", title: "Recent history" },
    null,
    chooseRange(route),
    h(
      "div",
      { class: "charts" },
      draw("flow", "Samples, on one scale", rate, ["in", "in", "muted"], ["out", "out", "accent"], ["limited", "limited", "warn"], ...(some("dropped") ? [["dropped", "lost", "bad"] as Drawn] : [])),
      draw("loss", "Lost", rate, ["dropped", "lost", "bad"]),
      draw("failing", "Failing targets", count, ["failing", "failing", "warn"]),
      draw("wire", "On the wire", byteRate, ["wire_bytes", "sent", "accent"]),
      draw("sample", "Bytes per sample", (n) => (n === null || n === undefined ? unknown : `${short(n)} B`), ["bytes_per_sample", "per sample", "accent"]),
      draw("queue", "Waiting in queues", bytes, ["queued", "waiting", "accent"]),
      draw("cpu", "CPU, of a core", percent, ["cpu", "CPU", "accent"]),
      draw("memory", "Memory", bytes, ["rss", "resident", "accent"]),
      draw("gc", "Garbage collection, of CPU", percent, ["gc", "GC", "accent"]),
    ),
  );
}
