// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package farm

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/tally"
)

// Config says what a farm serves.
type Config struct {
	// Targets is the number of targets, each on a loopback address of its own.
	Targets int `json:"targets"`
	// Page is node, app, ksm, kubelet or mixed.
	Page string `json:"page"`
	// NodePage is the file of the captured node_exporter page.
	NodePage string `json:"node_page"`
	// Samples is the size of generated pages. Zero means 5,000 for app, 310,000 for ksm, 500 for kubelet, and 20,000
	// for the largest of mixed.
	Samples int `json:"samples"`
	// Cardinality is the number of names for labels of generated pages. Zero means 50.
	Cardinality int `json:"cardinality"`
	// Change is the share of values that change from scrape to scrape.
	Change float64 `json:"change"`
	// Churn is the share of series that are new in each scrape.
	Churn float64 `json:"churn"`
	// Bodies is the best coding that targets support: identity, gzip or zstd. Empty means zstd.
	Bodies string `json:"bodies"`
	// Steps is the number of states of a page, which are repeated. Zero means 6, but 3 for ksm and 2 for mixed. Pages
	// of kubelets are generated for each scrape.
	Steps int `json:"steps"`
	// Own gives each series a label value that no other target has.
	Own bool `json:"own"`
	// Plain omits exemplars, which some agents read but do not send.
	Plain bool `json:"plain,omitempty"`
	// TLS makes targets serve TLS and require Token.
	TLS bool `json:"tls"`
	// Relabelled omits the samples that Rules drop from the account.
	Relabelled bool `json:"relabelled"`
	// Hostile adds two more targets: a gzip bomb, and one that sends a byte per second forever.
	Hostile bool `json:"hostile"`
}

// Scrape is one page that was served in full.
type Scrape struct {
	Number int         `json:"n"`
	At     int64       `json:"at"` // Unix milliseconds at the end of the body
	Page   tally.Tally `json:"page"`
}

// Totals are sums since the last reset.
type Totals struct {
	Targets  int   `json:"targets"` // scraped at least once
	Twice    int   `json:"twice"`   // scraped at least twice
	Scrapes  int64 `json:"scrapes"`
	Samples  int64 `json:"samples"`
	Bytes    int64 `json:"bytes"` // of encoded bodies
	Aborted  int64 `json:"aborted"`
	InFlight int64 `json:"in_flight"`
}

// Farm serves targets.
type Farm struct {
	cfg     Config
	pages   []*Page // target i has page i modulo their number
	last    Encoding
	churned int
	targets []target
	port    int
	bomb    []byte

	scrapes, samples, bytes, aborted, inFlight atomic.Int64
}

type target struct {
	// steps holds the rendered pages by step, format and coding.
	steps [][2]rendered

	mu     sync.Mutex
	next   int
	served []Scrape
}

type rendered struct {
	coded [encodings]coded
	tally tally.Tally
	bytes int
}

// New renders and compresses all pages. It calls progress from time to time.
func New(cfg Config, progress func(done, of int)) (*Farm, error) {
	cfg.Cardinality = cmp.Or(cfg.Cardinality, 50)
	if cfg.Targets < 1 || cfg.Targets > tally.MaxTargets {
		return nil, fmt.Errorf("cannot serve %d targets: 1 to %d are possible", cfg.Targets, tally.MaxTargets)
	}
	last, err := best(cfg.Bodies)
	if err != nil {
		return nil, err
	}
	f := &Farm{cfg: cfg, last: last, targets: make([]target, cfg.Targets)}
	steps := 6
	switch cfg.Page {
	case "node":
		page, err := ReadPage(cfg.NodePage)
		if err != nil {
			return nil, err
		}
		f.pages = []*Page{page}
	case "app":
		f.pages = []*Page{App(cmp.Or(cfg.Samples, 5_000), cfg.Cardinality)}
	case "ksm":
		f.pages = []*Page{KubeState(cmp.Or(cfg.Samples, 310_000), cfg.Cardinality)}
		steps = 3
	case "kubelet":
		f.pages = []*Page{Kubelet(cmp.Or(cfg.Samples, 500))}
		steps = 1
	case "mixed":
		if f.pages, err = Mixed(cmp.Or(cfg.Samples, 20_000), cfg.NodePage, !cfg.Plain); err != nil {
			return nil, err
		}
		steps = 2
	default:
		return nil, fmt.Errorf("cannot serve page %q: it is none of node, app, ksm, kubelet, mixed", cfg.Page)
	}
	for _, page := range f.pages {
		if cfg.Own {
			page.own()
		}
		if cfg.Relabelled {
			page.relabel()
		}
		page.choose(cfg.Change)
		f.churned = page.churn(cfg.Churn)
	}
	if cfg.Hostile {
		f.bomb = newBomb()
	}
	f.render(cmp.Or(cfg.Steps, steps), progress)
	return f, nil
}

// page returns the page of a target.
func (f *Farm) page(target int) *Page { return f.pages[target%len(f.pages)] }

// render fills the targets' steps, on all CPUs.
func (f *Farm) render(steps int, progress func(done, of int)) {
	jobs := make(chan [2]int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for job := range jobs {
				f.renderStep(&f.targets[job[0]].steps[job[1]], job[0], job[1])
			}
		})
	}
	for t := range f.targets {
		f.targets[t].steps = make([][2]rendered, steps)
		for s := range steps {
			jobs <- [2]int{t, s}
		}
		if progress != nil {
			progress(t+1, len(f.targets))
		}
	}
	close(jobs)
	workers.Wait()
}

func (f *Farm) renderStep(out *[2]rendered, target, step int) {
	page := f.page(target)
	for format := Text; format <= OpenMetrics; format++ {
		if format == OpenMetrics && !page.openMetrics {
			continue
		}
		out[format] = f.rendered(page, format, target, step)
	}
}

func (f *Farm) rendered(page *Page, format Format, target, step int) (r rendered) {
	plain := page.render(format, target, step, &r.tally)
	r.bytes = len(plain)
	for e := Identity; e <= f.last; e++ {
		r.coded[e] = encode(e, plain)
	}
	return r
}

// Describe returns the average size of a page: samples, plain bytes and gzipped bytes.
func (f *Farm) Describe() (samples, plain, gzipped int) {
	n := min(len(f.pages), len(f.targets))
	for i := range n {
		r := &f.targets[i].steps[0][Text]
		samples += int(r.tally.Count) + f.churned + 1
		plain += r.bytes
		if gzipped += len(r.coded[Gzip].body); f.last < Gzip {
			gzipped += len(encode(Gzip, r.coded[Identity].body).body)
		}
	}
	return samples / n, plain / n, gzipped / n
}

// Targets returns the addresses.
func (f *Farm) Targets() []string {
	all := make([]string, f.addresses())
	for i := range all {
		all[i] = tally.Address(i, f.port)
	}
	return all
}

// addresses is the number of addresses, including those of hostile targets at the end.
func (f *Farm) addresses() int {
	if f.cfg.Hostile {
		return len(f.targets) + 2
	}
	return len(f.targets)
}

// Serve listens on the targets' addresses, calls ready, and serves until ctx ends.
func (f *Farm) Serve(ctx context.Context, ready func()) error {
	srv := &http.Server{
		Handler:           http.HandlerFunc(f.scrape),
		ReadHeaderTimeout: time.Minute,
		// The local address of a connection identifies the target.
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, targetKey{}, tally.Target([]byte(c.LocalAddr().String())))
		},
	}
	wrap := func(l net.Listener) net.Listener { return l }
	if f.cfg.TLS {
		secured, err := newTLS()
		if err != nil {
			return err
		}
		wrap = func(l net.Listener) net.Listener { return tls.NewListener(l, secured) }
	}
	failed := make(chan error, f.addresses())
	var serving sync.WaitGroup
	defer serving.Wait()
	defer srv.Close()
	var listen net.ListenConfig
	for i := range f.addresses() {
		l, err := listen.Listen(ctx, "tcp4", tally.Address(i, f.port)) // port 0 at first: any free port, then the same one for all targets
		if err != nil {
			return fmt.Errorf("cannot serve target %d: %w", i, err)
		}
		f.port = l.Addr().(*net.TCPAddr).Port
		serving.Go(func() {
			if err := srv.Serve(wrap(l)); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		})
	}
	ready()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

type targetKey struct{}

func (f *Farm) scrape(w http.ResponseWriter, r *http.Request) {
	f.inFlight.Add(1)
	defer f.inFlight.Add(-1)
	index := r.Context().Value(targetKey{}).(int)
	if index >= len(f.targets) {
		f.beHostile(w, r, index-len(f.targets))
		return
	}
	if f.cfg.TLS && r.Header.Get("Authorization") != "Bearer "+Token {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	t := &f.targets[index]
	t.mu.Lock()
	t.next++
	number := t.next
	t.mu.Unlock()

	shown := f.page(index)
	format, contentType := Text, "text/plain; version=0.0.4; charset=utf-8"
	if shown.openMetrics && strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text") {
		format, contentType = OpenMetrics, "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	encoding := negotiate(r.Header.Get("Accept-Encoding"), f.last)
	page := &t.steps[number%len(t.steps)][format]
	if shown.live {
		page = f.made(shown, format, encoding, index, number)
	}
	body := &page.coded[encoding]
	count := page.tally
	end := body.appendTail(nil, encoding, tail(nil, format, index, number, f.churned, &count))

	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body.body)+len(end)))
	if encoding != Identity {
		w.Header().Set("Content-Encoding", encoding.String())
	}
	_, err := w.Write(body.body)
	if err == nil {
		_, err = w.Write(end)
	}
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if err != nil {
		f.aborted.Add(1)
		return
	}
	t.mu.Lock()
	t.served = append(t.served, Scrape{Number: number, At: time.Now().UnixMilli(), Page: count})
	t.mu.Unlock()
	f.scrapes.Add(1)
	f.samples.Add(int64(count.Count))
	f.bytes.Add(int64(len(body.body) + len(end)))
}

// made renders a page for a single scrape, in one coding.
func (f *Farm) made(page *Page, format Format, encoding Encoding, target, number int) *rendered {
	r := &rendered{}
	plain := page.render(format, target, number, &r.tally)
	r.bytes = len(plain)
	r.coded[encoding] = encode(encoding, plain)
	return r
}

// Totals returns the sums.
func (f *Farm) Totals() Totals {
	all := Totals{
		Scrapes: f.scrapes.Load(), Samples: f.samples.Load(), Bytes: f.bytes.Load(),
		Aborted: f.aborted.Load(), InFlight: f.inFlight.Load(),
	}
	for i := range f.targets {
		t := &f.targets[i]
		t.mu.Lock()
		if len(t.served) > 0 {
			all.Targets++
		}
		if len(t.served) > 1 {
			all.Twice++
		}
		t.mu.Unlock()
	}
	return all
}

// Served returns, by target, all scrapes that were served in full.
func (f *Farm) Served() [][]Scrape {
	all := make([][]Scrape, len(f.targets))
	for i := range f.targets {
		t := &f.targets[i]
		t.mu.Lock()
		all[i] = append([]Scrape{}, t.served...)
		t.mu.Unlock()
	}
	return all
}

// Reset forgets all scrapes; their numbers start again.
func (f *Farm) Reset() {
	for i := range f.targets {
		t := &f.targets[i]
		t.mu.Lock()
		t.next, t.served = 0, nil
		t.mu.Unlock()
	}
	for _, n := range []*atomic.Int64{&f.scrapes, &f.samples, &f.bytes, &f.aborted} {
		n.Store(0)
	}
}
