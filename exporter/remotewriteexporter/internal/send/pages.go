// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"net/http"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// pageTime is for how long a request is repeated that a web page refuses. Nearly always that is a proxy in front of the destination, whose
// configuration or whose client's is wrong, as when a client's certificate has expired. But some servers write pages for what is wrong with a
// request, too. Where that has turned out they are believed for some time.
const pageTime = 5 * time.Minute

// isPage tells whether a body begins like a web page.
func isPage(begin []byte) bool { return strings.HasPrefix(http.DetectContentType(begin), "text/html") }

// isUndecided tells whether a verdict, after which there is another attempt at once, is by a web page: it says nothing of the destination.
func (a answer) isUndecided(v verdict) bool { return a.page && (v == unsupported || v == doubtful) }

// mayEnd tells whether the refusal of a request may end by itself. since is when the first such was, and set if this is it.
func (d *Destination) mayEnd(b block.Block, a answer, since *time.Time) bool {
	pages := &d.limitOn(b).pages
	if !a.page || a.hasWritten || pages.refuses(d.cfg.Reprobe) {
		return false
	}
	now := time.Now()
	if since.IsZero() {
		*since = now
	}
	if now.Sub(*since) < pageTime {
		return true
	}
	pages.inVain()
	return false
}
