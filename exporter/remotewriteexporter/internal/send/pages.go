// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"net/http"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// pageTime is how long a request is repeated that is refused with a web page. Such a page is nearly always from a proxy
// in front of the destination, which is misconfigured or has a misconfigured client, for example with an expired
// certificate. But some servers also answer with a page if a request is wrong. Once that has turned out, their pages
// are believed for some time.
const pageTime = 5 * time.Minute

// isPage reports whether a body begins like a web page.
func isPage(begin []byte) bool { return strings.HasPrefix(http.DetectContentType(begin), "text/html") }

// isAboutTLS reports whether nginx answers instead of the destination, because a client's certificate has expired or is
// missing, or because its port expects TLS. Such a page says nothing about the content, however long it lasts.
func (a answer) isAboutTLS() bool {
	return a.code == http.StatusBadRequest && a.page &&
		(strings.Contains(a.text, "SSL certificate") || strings.Contains(a.text, "sent to HTTPS port"))
}

// isUndecided reports whether a verdict that causes another attempt at once is based on a web page, which says nothing
// about the destination.
func (a answer) isUndecided(v verdict) bool { return a.page && (v == unsupported || v == doubtful) }

// mayEnd reports whether the refusal of a request may be temporary. since is the time of the first such refusal, which
// mayEnd sets.
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
	pages.endRepeats()
	return false
}
