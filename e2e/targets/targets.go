// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package targets serves pages to scrape, with any faults that a test needs.
package targets

import (
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"sync"
	"testing"

	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// Target is an HTTP server that responds to every path with its pages.
type Target struct {
	listener *serve.Listener

	mu      sync.Mutex
	page    func(scrape int) Page
	scrapes int
	last    http.Header
}

// New starts a target on 127.0.0.1 that serves pages in order, one per scrape, and then repeats the last one.
func New(t testing.TB, pages ...Page) *Target {
	t.Helper()
	return NewFunc(t, inOrder(pages))
}

// NewFunc starts a target whose pages are returned by page; scrapes count from 0.
func NewFunc(t testing.TB, page func(scrape int) Page) *Target {
	t.Helper()
	return start(t, "127.0.0.1:0", page)
}

// Many starts n targets, on Linux each at its own address (127.0.x.y), as on different hosts.
func Many(t testing.TB, n int, page func(target, scrape int) Page) []*Target {
	t.Helper()
	all := make([]*Target, n)
	for i := range all {
		addr := "127.0.0.1:0"
		if runtime.GOOS == "linux" {
			addr = fmt.Sprintf("127.0.%d.%d:0", 1+i/254, 1+i%254)
		}
		all[i] = start(t, addr, func(scrape int) Page { return page(i, scrape) })
	}
	return all
}

func start(t testing.TB, addr string, page func(int) Page) *Target {
	t.Helper()
	target := &Target{listener: serve.Listen(t, addr), page: page}
	serve.HTTP(t, target.listener, http.HandlerFunc(target.answer))
	return target
}

// Then replaces the pages from the next scrape on; its scrapes count from 0.
func (t *Target) Then(pages ...Page) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first, page := t.scrapes, inOrder(pages)
	t.page = func(scrape int) Page { return page(scrape - first) }
}

// Addr returns host:port.
func (t *Target) Addr() string { return t.listener.Addr().String() }

// URL returns the usual URL to scrape.
func (t *Target) URL() string { return "http://" + t.Addr() + "/metrics" }

// Scrapes returns the number of requests.
func (t *Target) Scrapes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.scrapes
}

// Asked returns the header of the last request, or nil.
func (t *Target) Asked() http.Header {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// Connections returns the number of open connections.
func (t *Target) Connections() int { return t.listener.Open() }

func inOrder(pages []Page) func(int) Page {
	return func(scrape int) Page {
		if len(pages) == 0 {
			return Page{}
		}
		return pages[min(scrape, len(pages)-1)]
	}
}

func (t *Target) next(r *http.Request) Page {
	t.mu.Lock()
	defer t.mu.Unlock()
	scrape := t.scrapes
	t.scrapes++
	t.last = r.Header.Clone()
	return t.page(scrape)
}

func (t *Target) answer(w http.ResponseWriter, r *http.Request) {
	page := t.next(r)
	if !wait.Pause(r.Context(), page.Delay) {
		panic(http.ErrAbortHandler)
	}
	switch page.Fault {
	case Hang:
		serve.Hang(r)
	case Reset:
		serve.Cut(t.listener, r)
	case NoFault, ResetMidBody, Endless:
	}
	body, encoding := encode(page, r.Header.Values("Accept-Encoding"))
	writeHeader(w, page, len(body), encoding)
	if page.Fault == ResetMidBody {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		serve.Cut(t.listener, r)
	}
	for page.Fault == Endless {
		if _, err := w.Write(body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	if page.Drip <= 0 {
		_, _ = w.Write(body)
		return
	}
	for len(body) > 0 {
		n := min(page.Drip, len(body))
		_, _ = w.Write(body[:n])
		_ = http.NewResponseController(w).Flush()
		body = body[n:]
		if !wait.Pause(r.Context(), page.DripPause) {
			panic(http.ErrAbortHandler)
		}
	}
}

func writeHeader(w http.ResponseWriter, page Page, length int, encoding string) {
	h := w.Header()
	h.Set("Content-Type", defaultContentType)
	if page.ContentType != "" {
		h.Set("Content-Type", page.ContentType)
	}
	if page.Drip <= 0 && page.Fault != Endless { // otherwise the body is chunked, as from a server that does not know its length
		h.Set("Content-Length", fmt.Sprint(length))
	}
	if encoding != "" {
		h.Set("Content-Encoding", encoding)
	}
	maps.Copy(h, page.Header)
	status := page.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.WriteHeader(status)
}
