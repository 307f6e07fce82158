// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package console

import "github.com/stretchr/testify/assert"

// Accessible checks what a screen reader needs: landmarks, a single title, names of all controls, scopes of table
// headers, and texts with enough contrast.
func (p *Page) Accessible() {
	p.t.Helper()
	assert.Empty(p.t, Eval[[]string](p, accessible))
	p.Axe()
}

const accessible = `(() => {
	const faults = [];
	const say = (what, e) => faults.push(what + ": " + e.outerHTML.slice(0, 160));
	const one = s => { const n = document.querySelectorAll(s).length; if (n !== 1) faults.push(n + " of " + s) };
	["h1", "main", "body > header", "header nav", "[role=status][aria-live=polite]"].forEach(one);
	const seen = e => e.getClientRects().length > 0;
	const name = e => e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent.trim();
	for (const e of document.querySelectorAll("a[href], button, input, select, textarea")) if (seen(e) && !name(e)) say("no name", e);
	for (const e of document.querySelectorAll("th:not([scope])")) say("no scope", e);
	for (const e of document.querySelectorAll("table")) if (!e.caption?.textContent) say("no caption", e);
	for (const e of document.querySelectorAll("[role=img]")) if (!e.getAttribute("aria-label")) say("no description", e);
	for (const e of document.querySelectorAll("pre")) if (e.scrollHeight > e.clientHeight && e.tabIndex < 0) say("scrolls by mouse only", e);
	const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
	ids.filter((id, i) => ids.indexOf(id) !== i).forEach(id => faults.push("twice: #" + id));
	const rgb = c => (c.match(/[\d.]+/g) ?? []).map(Number);
	const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
	const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3) return c } return [255, 255, 255] };
	const told = new Set();
	for (const e of document.querySelectorAll("body *")) {
		if (!seen(e) || e.closest("svg, .unseen, [aria-hidden]") || ![...e.childNodes].some(n => n.nodeType === 3 && n.nodeValue.trim())) continue;
		const [a, b] = [light(rgb(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5 && !told.has(e.className)) { told.add(e.className); say("contrast " + ratio.toFixed(2), e) }
	}
	return faults;
})()`
