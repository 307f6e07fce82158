// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package farm

import (
	"bytes"
	"context"
	"io"
	"math"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/godwit-otel/godwit/benchmarks/tally"
)

const nodePage = "../../testdata/pages/node.txt"

// open serves a farm until the test ends.
func open(t *testing.T, cfg Config) *Farm {
	t.Helper()
	f, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- f.Serve(ctx, func() { close(ready) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		t.Fatal(err)
	}
	return f
}

// get scrapes a target and decompresses the body.
func get(t *testing.T, address, accept, acceptEncoding string) (body string, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", acceptEncoding)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := io.Reader(resp.Body)
	switch resp.Header.Get("Content-Encoding") {
	case "gzip":
		r, err = gzip.NewReader(resp.Body)
	case "zstd":
		r, err = zstd.NewReader(resp.Body)
	}
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain), resp.Header
}

// settled waits until the farm has accounted for all that it wrote: a client may have read a page earlier.
func settled(t *testing.T, f *Farm) {
	t.Helper()
	for f.Totals().InFlight > 0 {
		if t.Context().Err() != nil {
			t.Fatal("a scrape does not end")
		}
		runtime.Gosched()
	}
}

// count tallies the samples of a page as a sink would.
func count(t *testing.T, page string) (sum tally.Tally) {
	t.Helper()
	for text := range strings.Lines(page) {
		if name, _, _ := strings.Cut(text, "{"); strings.HasPrefix(text, "#") || tally.IsCreated([]byte(name)) {
			continue
		}
		text, _, _ = strings.Cut(text, " # ")
		fields := strings.Split(strings.TrimSpace(text), " ")
		v, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(v)
	}
	return sum
}

func TestEveryCodingShowsThePageThatIsAccountedFor(t *testing.T) {
	for name, cfg := range map[string]Config{
		"node":  {Page: "node", NodePage: nodePage, Targets: 2, Change: 0.3},
		"churn": {Page: "node", NodePage: nodePage, Targets: 2, Change: 0.3, Churn: 0.5},
		"app":   {Page: "app", Samples: 400, Targets: 2, Change: 0.3},
		"ksm":   {Page: "ksm", Samples: 400, Targets: 2, Change: 0.05},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, cfg)
			scrapes := 0
			for _, accept := range []string{"text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0,text/plain;q=0.3"} {
				for _, coding := range []string{"identity", "gzip", "zstd"} {
					page, header := get(t, f.Targets()[1], accept, coding)
					scrapes++
					if got := header.Get("Content-Encoding"); got != coding && coding != "identity" {
						t.Errorf("asked for %s, got %q", coding, got)
					}
					settled(t, f)
					served := f.Served()[1]
					last := served[len(served)-1]
					if got := count(t, page); got != last.Page || last.Number != scrapes {
						t.Errorf("%s, %s: the page has %+v, the account says %+v of scrape %d", accept, coding, got, last.Page, last.Number)
					}
					open := strings.HasPrefix(header.Get("Content-Type"), "application/openmetrics-text")
					if open != strings.HasSuffix(page, "\n# EOF\n") || open != (f.page(1).openMetrics && strings.HasPrefix(accept, "app")) {
						t.Errorf("asked for %s, got %s ending in %q", accept, header.Get("Content-Type"), page[len(page)-20:])
					}
				}
			}
			if got := f.Totals(); got.Scrapes != int64(scrapes) || got.Targets != 1 || got.Twice != 1 || got.Aborted != 0 {
				t.Errorf("totals: %+v", got)
			}
			f.Reset()
			if got := f.Totals(); got.Scrapes != 0 || got.Samples != 0 || got.Targets != 0 {
				t.Errorf("totals after a reset: %+v", got)
			}
		})
	}
}

func TestTheAskedShareOfValuesChanges(t *testing.T) {
	for _, share := range []float64{0, 0.3, 1} {
		p, err := ReadPage(nodePage)
		if err != nil {
			t.Fatal(err)
		}
		p.choose(share)
		var sum tally.Tally
		before := strings.Split(string(p.render(Text, 3, 0, &sum)), "\n")
		after := strings.Split(string(p.render(Text, 3, 1, &sum)), "\n")
		changed := 0
		for i := range before {
			if before[i] != after[i] {
				changed++
			}
		}
		if got := float64(changed) / float64(p.Samples()); math.Abs(got-share) > 0.06 {
			t.Errorf("asked for %v, %v changed", share, got)
		}
	}
}

func TestChurnReplacesSeriesOnEachScrape(t *testing.T) {
	f := open(t, Config{Page: "node", NodePage: nodePage, Targets: 1, Churn: 0.1})
	names := regexp.MustCompile(`(?m)^farm_churn\{.*\}`)
	first, _ := get(t, f.Targets()[0], "", "gzip")
	second, _ := get(t, f.Targets()[0], "", "gzip")
	all := map[string]bool{}
	for _, name := range append(names.FindAllString(first, -1), names.FindAllString(second, -1)...) {
		all[name] = true
	}
	if want := 2 * 51; len(all) != want { // a tenth of 507
		t.Errorf("%d series came and went, want %d", len(all), want)
	}
	if a, b := count(t, first).Count, count(t, second).Count; a != 508 || b != a {
		t.Errorf("the page has %d, then %d samples, want 508", a, b)
	}
}

func TestTargetsDoNotShareValues(t *testing.T) {
	p, err := ReadPage(nodePage)
	if err != nil {
		t.Fatal(err)
	}
	var a, b tally.Tally
	if bytes.Equal(p.render(Text, 1, 0, &a), p.render(Text, 2, 0, &b)) {
		t.Error("two targets show the same page")
	}
}

func TestTheSameSeedGivesTheSamePage(t *testing.T) {
	for _, generate := range []func(samples, cardinality int) *Page{App, KubeState} {
		var a, b tally.Tally
		if !bytes.Equal(generate(1000, 20).render(OpenMetrics, 0, 0, &a), generate(1000, 20).render(OpenMetrics, 0, 0, &b)) {
			t.Error("a page is rendered twice, and differs")
		}
	}
}

func TestPagesAreAsLargeAsAsked(t *testing.T) {
	for name, generate := range map[string]func(samples, cardinality int) *Page{"app": App, "ksm": KubeState} {
		for _, want := range []int{500, 5_000, 50_000} {
			if got := generate(want, 50).Samples(); math.Abs(float64(got-want)) > 0.1*float64(want) {
				t.Errorf("%s: asked for %d samples, got %d", name, want, got)
			}
		}
	}
}

func TestTargetsThatKnowFewerCodings(t *testing.T) {
	for bodies, want := range map[string]string{"identity": "", "gzip": "gzip", "zstd": "zstd", "": "zstd"} {
		f := open(t, Config{Page: "ksm", Samples: 400, Targets: 1, Bodies: bodies})
		if _, header := get(t, f.Targets()[0], "text/plain", "zstd, gzip;q=0.9"); header.Get("Content-Encoding") != want {
			t.Errorf("%q: got %q", bodies, header.Get("Content-Encoding"))
		}
	}
	if _, err := New(Config{Page: "ksm", Targets: 1, Bodies: "brotli"}, nil); err == nil {
		t.Error("an unknown coding was taken")
	}
}
