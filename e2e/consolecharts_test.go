// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/godwit-otel/godwit/e2e/console"
	"github.com/godwit-otel/godwit/e2e/freeport"
)

// anHour replaces the agent's history by a made-up hour with a restart in it.
const anHour = `{
	const times = Array.from({length: 360}, (_, i) => Math.floor(Date.now() / 1000) - 10 * (359 - i));
	const line = (name, of) => ({name, unit: "", values: times.map((_, i) => i >= 150 && i < 180 ? null : of(i))});
	const hour = {interval_seconds: 10, times, series: [
		line("in", i => 51000 + 900 * Math.sin(i / 9)),
		line("out", i => i > 300 ? 30000 : 50900 + 900 * Math.sin(i / 9)),
		line("dropped", i => i === 240 ? 2500 : null),
		line("failing", i => i > 100 ? 12 : 0),
		line("wire_bytes", i => 180000 + 9000 * Math.sin(i / 5)),
		line("bytes_per_sample", i => 3.6),
		line("queued", i => i > 300 ? (i - 300) * 1e6 : 3000),
		line("cpu", i => 0.2),
		line("rss", i => 9e7 + 1e5 * (i % 180)),
		line("gc", i => 0.02 + 0.01 * Math.sin(i)),
	]};
	const ask = fetch;
	fetch = (url, options) => String(url).endsWith("v1/history") ? Promise.resolve(new Response(JSON.stringify(hour))) : ask(url, options);
}`

// drawnBad counts the pixels of a chart that have the colour of its line.
const drawnBad = `(() => {
	const canvas = [...document.querySelectorAll(".chart")].find(c => c.textContent.startsWith("Lost")).querySelector("canvas");
	const probe = document.body.appendChild(document.createElement("i"));
	probe.style.color = "var(--bad)";
	const [r, g, b] = getComputedStyle(probe).color.match(/\d+/g).map(Number);
	probe.remove();
	const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
	let n = 0;
	for (let i = 0; i < data.length; i += 4) n += data[i] === r && data[i + 1] === g && data[i + 2] === b;
	return n;
})()`

// The charts of a whole hour: what is drawn, what screen readers get, and what the pointer shows.
func TestConsoleChartsOfAnHour(t *testing.T) {
	t.Parallel()
	browser := console.Open(t)
	endpoint := freeport.Addr(t)
	startCollector(t, fmt.Sprintf(idleConfig, endpoint))
	for _, l := range looks() {
		p := browser.Page(t, l.look, "http://"+endpoint+"/", "#/configuration")
		p.Reads("h1", "Configuration")
		p.Do(anHour)
		p.Go("#/overview")
		p.Holds(`document.querySelectorAll(".chart canvas").length === 9`)
		p.Holds(`document.querySelector("[aria-label^='Samples, on one scale, last 1 h. in: now '][aria-label*='highest 51.9k/s']")`)
		p.Holds(`document.querySelector("[aria-label^='Waiting in queues'][aria-label*='highest 56.3 MiB']")`)
		p.Holds(drawnBad + " > 4") // ten seconds of losses in an hour are visible
		p.Fits()
		p.Accessible()
		p.Picture("overview-hour-" + l.name)
		p.Do(`(over => {
			over.scrollIntoView({block: "center"});
			const box = over.getBoundingClientRect();
			over.dispatchEvent(new MouseEvent("mousemove", {bubbles: true, clientX: box.left + box.width * 0.9, clientY: box.top + 20}));
		})(document.querySelector(".chart .u-over"))`)
		p.Holds(`/^\d\d:\d\d:\d\d$/.test(document.querySelector(".chart-when").textContent)`)
		p.Reads(".chart figcaption", "out 30k/s")
	}
}
