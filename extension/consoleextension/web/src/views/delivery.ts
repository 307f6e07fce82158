// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

import type * as api from "../api";
import { get } from "../client";
import { h, type Child } from "../dom";
import { ago, byteRate, bytes, count, duration, measured, percent, plural, rate, short, unknown, words } from "../format";
import type { View } from "../page";
import { badge, bar, empty, exports, heading, section, stats, text, type Tone } from "../parts";
import { changed, type Route } from "../route";
import { table } from "../table";
import { chooseRange, drawer, range, remembered, type Drawn } from "./past";

export const states: Record<api.Destination["state"], [Tone, string]> = {
  ok: ["ok", "Delivering"],
  retrying: ["warn", "Retrying"],
  throttled: ["warn", "Throttled"],
  breaker_open: ["bad", "Breaker open"],
  dropping: ["bad", "Dropping data"],
};

interface Data {
  now: api.Delivery;
  history: api.DestinationHistory;
}

const history = remembered<api.DestinationHistory>("delivery/history");

export const delivery: View<Data> = {
  name: "delivery",
  title: "Delivery",
  every: 5,

  async load(_, signal) {
    const [now, past] = await Promise.all([get<api.Delivery>("delivery", {}, signal), history(signal)]);
    return { now, history: past };
  },

  render({ now: data, history }, route) {
    const destinations = data.exporters.flatMap((e) => e.destinations);
    const asked = route.params.get("exporter");
    const exporters = data.exporters.filter((e) => !asked || e.exporter === asked);
    if (data.exporters.length === 0 && data.receivers.length === 0) {
      return [heading("Delivery", "Where data goes, and whether it arrives."), empty("No exporter shows its deliveries", "The exporters remotewrite, prometheusremotewrite and otlpstream do. For others see the pipelines in the overview.")];
    }
    return [
      heading("Delivery", destinations.length ? verdict(destinations, data.over_seconds) : "What clients send here.", exports("delivery", {}, "deliveries")),
      asked ? only(asked, route) : null,
      history.times.length > 1 && exporters.some((e) => e.destinations.length) ? chooseRange(route) : null,
      exporters.map((e) => exporter(e, data, history, route)),
      data.receivers.length && !asked ? intake(data.receivers, data.over_seconds) : null,
    ];
  },
};

// A link may lead to one exporter of many.
function only(exporter: string, route: Route): Child {
  return h("p", { class: "within" }, "Only ", h("span", { class: "pill" }, "exporter ", h("b", null, text(exporter, 60)), " ", h("a", { href: changed(route, { exporter: null }), "aria-label": "Not only this exporter" }, "×")));
}

// Whether data is lost, and where: what one comes here for.
function verdict(all: api.Destination[], over: api.Rate): Child {
  const losing = all.filter((d) => d.state === "dropping" || d.dropped.some((x) => (x.per_second ?? 0) > 0));
  const waiting = all.filter((d) => d.state !== "ok" && !losing.includes(d));
  const lost = all.reduce((sum, d) => sum + d.dropped.reduce((s, x) => s + x.count, 0), 0);
  const names = (some: api.Destination[]): Child => some.map((d, i) => [i ? ", " : "", text(d.name, 100)]);
  return [
    losing.length ? h("strong", { class: "bad-text" }, "Data for ", names(losing), " is being lost now. ") : null,
    waiting.length ? [names(waiting), ` ${waiting.length === 1 ? "does" : "do"} not take data as it comes; it waits in the queue. `] : losing.length ? null : "All destinations take what comes. ",
    losing.length ? null : lost === 0 ? "Nothing was lost since the start." : `Since the start ${plural(lost, "item was", "items were")} lost${over === null ? "; whether more is lost now is being measured." : ", none now."}`,
  ];
}

function exporter(e: api.Exporter, data: api.Delivery, history: api.DestinationHistory, route: Route): Child {
  const hits = e.cache ? e.cache.hits + e.cache.misses : 0;
  const about = [e.split ? "destinations share the series" : e.destinations.length > 1 ? "each destination gets everything" : "", e.shards ? plural(e.shards, "shard") : "", hits ? `encodes from a cache of ${short(e.cache!.series)} series, ${percent(e.cache!.hits / hits)} hits` : ""].filter(Boolean).join("; ");
  return section(
    `${e.exporter}${e.signal ? ` · ${e.signal}` : ""}`,
    about || null,
    e.destinations.length === 0 ? empty("No destination yet", "It appears with the first connection.") : e.destinations.map((d) => destination(d, data.over_seconds, past(d, e, data, history, route))),
  );
}

// The last point of each chart is the number that stands above it.
function past(d: api.Destination, e: api.Exporter, data: api.Delivery, history: api.DestinationHistory, route: Route): Child {
  const found = history.destinations.find((t) => t.exporter === e.exporter && t.signal === e.signal && t.destination === d.name);
  const latest = { taken: d.taken_per_second, sent: d.sent_per_second, dropped: d.lost_per_second, waiting: d.waiting, wire_bytes: d.wire_bytes_per_second, ack_seconds: d.sent_per_second ? d.ack_seconds : null };
  const drawing = found && drawer(history, found.series, data.now, latest, range(route));
  if (!drawing) return null;
  const { draw, some } = drawing;
  const key = `${e.exporter}/${e.signal}/${d.name}`;
  const lossy = some("dropped");
  return h(
    "div",
    { class: "charts", key: `${key}/charts` },
    draw(`${key}/flow`, "Items, on one scale", rate, ["taken", "accepted", "muted"], ["sent", "acknowledged", "accent"], ...(lossy ? [["dropped", "lost", "bad"] as Drawn] : [])),
    lossy ? draw(`${key}/loss`, "Lost", rate, ["dropped", "lost", "bad"]) : null,
    draw(`${key}/waiting`, "Waiting", short, ["waiting", "items", "accent"]),
    draw(`${key}/ack`, "Response time", duration, ["ack_seconds", "on average", "accent"]),
    draw(`${key}/wire`, "On the wire", byteRate, ["wire_bytes", "sent", "accent"]),
  );
}

function destination(d: api.Destination, over: api.Rate, charts: Child): Child {
  const lost = d.dropped.reduce((sum, x) => sum + x.count, 0);
  const [tone, state] = d.throttled_seconds > 0 && d.state === "throttled" ? (["warn", `Throttled for ${duration(d.throttled_seconds)}`] as const) : (states[d.state] ?? (["idle", d.state] as const));
  const used = d.queue.used ?? (d.queue.capacity ? (d.queue.unit === "bytes" ? d.queue.bytes : d.queue.items) / d.queue.capacity : null);
  return h(
    "article",
    { class: "panel destination", key: d.name },
    h("div", { class: "step-head" }, h("h3", null, text(d.name, 200)), badge(tone, state)),
    h("p", { class: "quiet" }, [d.protocol, d.transport, d.compression ? `${d.compression} compressed` : "", d.fallback ? `${plural(d.fallback, "better format")} turned down by the destination` : ""].filter(Boolean).join(" · ")),
    d.last_error ? h("p", { class: d.state === "ok" ? "quiet wrap" : "bad-text wrap" }, h("b", null, d.state === "ok" ? "Last error, since recovered: " : "Last error: "), text(d.last_error, 1000)) : null,
    next(d.next),
    stats(
      // These four add up: what was accepted was acknowledged, lost, or waits.
      { label: "Accepted", value: measured(d.taken_per_second, over), note: `${short(d.taken)} since the start` },
      { label: "Acknowledged", value: measured(d.sent_per_second, over), note: `${short(d.sent)} since the start` },
      { label: "Lost", value: measured(d.lost_per_second, over), tone: d.lost_per_second ? "bad" : undefined, note: lost ? `${short(lost)} since the start` : "nothing" },
      { label: "Waiting", value: short(d.waiting), note: d.waiting_per_second ? `${d.waiting_per_second > 0 ? "+" : "−"}${rate(Math.abs(d.waiting_per_second))}` : "in the queue and in flight" },
      { label: "Queue", value: d.queue.bytes || d.queue.unit === "bytes" ? bytes(d.queue.bytes) : plural(d.queue.items, "item"), tone: (used ?? 0) >= 1 ? "bad" : (used ?? 0) >= 0.8 ? "warn" : undefined, note: used === null ? (d.queue.on_disk ? "on disk" : "") : [bar(used, `${percent(used)} full${d.queue.on_disk ? ", on disk" : ""}`)] },
      { label: "Oldest request", value: d.queue.items ? duration(d.queue.age_seconds) : "–", note: plural(d.queue.items, "request") },
      { label: "In flight", value: plural(d.in_flight.requests, "request"), note: d.in_flight.max_requests ? `of ${count(d.in_flight.max_requests)} at most` : d.in_flight.max_bytes ? `${bytes(d.in_flight.bytes)} of ${bytes(d.in_flight.max_bytes)}` : null },
      { label: "Response time", value: d.ack_seconds === null ? unknown : duration(d.ack_seconds), note: d.ack_p50_seconds === null ? "on average" : `on average; half within ${duration(d.ack_p50_seconds)}, 99% within ${duration(d.ack_p99_seconds)}` },
      { label: "Retries", value: measured(d.retries_per_second, over), tone: d.retries_per_second ? "warn" : undefined, note: `${count(d.retries)} since the start${d.resent ? `, ${count(d.resent)} sent again` : ""}` },
      { label: "On the wire", value: measured(d.wire_bytes_per_second, over, byteRate), note: d.bytes_per_item === null ? null : `${short(d.bytes_per_item)} B each${d.raw_bytes_per_second && d.wire_bytes_per_second ? `, ${percent(d.wire_bytes_per_second / d.raw_bytes_per_second)} of its size` : ""}` },
    ),
    charts,
    h(
      "div",
      { class: "columns" },
      d.dropped.length
        ? h("div", null, h("h3", { class: "over" }, "Lost, by reason"), table({ caption: `What was lost for ${d.name}`, rows: d.dropped, key: (x) => x.reason, tone: (x) => (x.per_second ? "bad" : ""), columns: [{ title: "Reason", head: true, class: "wrap", cell: (x) => [words(x.reason), advice(x.next)] }, { title: "Items", numeric: true, cell: (x) => count(x.count) }, { title: "Now", numeric: true, cell: (x) => measured(x.per_second, over) }] }))
        : null,
      d.responses.length
        ? h("div", null, h("h3", { class: "over" }, "Answers to ", plural(d.requests, "request")), table({ caption: `Answers of ${d.name}`, rows: d.responses, key: (x) => x.status, columns: [{ title: "Answer", head: true, cell: (x) => (x.status === "none" ? "no answer" : words(x.status)) }, { title: "Requests", numeric: true, cell: (x) => count(x.count) }] }))
        : null,
      d.streams.length
        ? h("div", null, h("h3", { class: "over" }, "Streams"), table({ caption: `Streams to ${d.name}`, rows: d.streams, columns: [{ title: "State", head: true, cell: (x) => badge(x.state === "open" ? "ok" : x.state === "waiting" ? "warn" : "idle", x.state) }, { title: "For", numeric: true, cell: (x) => duration(x.age_seconds) }, { title: "Pending", numeric: true, cell: (x) => count(x.pending) }, { title: "Acknowledged", numeric: true, cell: (x) => count(x.acked) }] }))
        : null,
    ),
  );
}

const next = (what: string): Child => (what ? h("p", null, h("span", { class: "quiet" }, "Next: "), what) : null);

const advice = (what: string): Child => (what ? h("small", { class: "block" }, h("span", { class: "quiet" }, "Next: "), what) : null);

function intake(all: api.Intake[], over: api.Rate): Child {
  return section(
    "What clients send here",
    null,
    table<api.Intake>({
      caption: "Receivers",
      rows: all,
      key: (r) => r.receiver,
      tone: (r) => (r.dropped.some((x) => x.per_second) ? "bad" : ""),
      columns: [
        { title: "Receiver", head: true, cell: (r) => r.receiver },
        { title: "Address", class: "mono nowrap", cell: (r) => r.addresses.join(", ") },
        { title: "Taken", cell: (r) => [measured(r.taken_per_second, over), r.refused_per_second ? h("small", { class: "bad-text block" }, `${rate(r.refused_per_second)} to be sent again`) : null] },
        { title: "Streams", cell: (r) => (r.max_streams ? bar(r.streams / r.max_streams, `${count(r.streams)} of ${count(r.max_streams)}`) : r.streams ? count(r.streams) : unknown) },
        { title: "In flight", cell: (r) => (r.max_in_flight_bytes ? bar(r.in_flight_bytes / r.max_in_flight_bytes, `${bytes(r.in_flight_bytes)} of ${bytes(r.max_in_flight_bytes)}`) : r.in_flight_bytes ? bytes(r.in_flight_bytes) : unknown) },
        { title: "Requests", class: "wrap", cell: (r) => r.requests.map((x) => `${words(x.outcome)}: ${short(x.count)}`).join(", ") || unknown },
        { title: "Lost", class: "wrap", cell: (r) => (r.dropped.length ? r.dropped.map((x) => h("div", null, `${words(x.reason)} ${short(x.count)}`, advice(x.next))) : "nothing") },
        { title: "Last error", class: "wrap", cell: (r) => (r.last_error ? [text(r.last_error, 300), h("small", { class: "quiet block" }, ago(r.last_error_at)), advice(r.next)] : "none") },
      ],
    }),
  );
}
