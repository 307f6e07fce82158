// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package farm

import (
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/model/textparse"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/benchmarks/tally"
)

// parse returns the series of a page. It fails if Prometheus' parser does, or if a series occurs twice.
func parse(t *testing.T, page string) map[string]labels.Labels {
	t.Helper()
	p, err := textparse.New([]byte(page), "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]labels.Labels{}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		if _, twice := all[l.String()]; twice {
			t.Fatalf("%s is there twice", l)
		}
		all[l.String()] = l
	}
}

func TestPagesOfOtherFleetsAreValid(t *testing.T) {
	for name, cfg := range map[string]Config{
		"own":     {Page: "node", NodePage: nodePage, Targets: 2, Own: true},
		"kubelet": {Page: "kubelet", Targets: 2, Change: 0.3},
		"mixed":   {Page: "mixed", NodePage: nodePage, Targets: kinds, Samples: 2000, Change: 0.3},
		"plain":   {Page: "mixed", NodePage: nodePage, Targets: kinds, Samples: 2000, Change: 0.3, Plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, cfg)
			for i, address := range f.Targets() {
				page, _ := get(t, address, "text/plain", "gzip")
				settled(t, f)
				parse(t, page)
				served := f.Served()[i]
				if got := count(t, page); got != served[0].Page {
					t.Errorf("target %d: the page has %+v, the account says %+v", i, got, served[0].Page)
				}
			}
			if samples, plain, gzipped := f.Describe(); samples < 100 || plain < 10*samples || gzipped >= plain {
				t.Errorf("a page is told to have %d samples, %d bytes, %d gzipped", samples, plain, gzipped)
			}
		})
	}
}

func TestTargetsOfAnOwnFleetShareNoSeries(t *testing.T) {
	for name, cfg := range map[string]Config{
		"own":     {Page: "node", NodePage: nodePage, Targets: 2, Own: true},
		"kubelet": {Page: "kubelet", Targets: 2},
	} {
		f := open(t, cfg)
		first, _ := get(t, f.Targets()[0], "", "gzip")
		second, _ := get(t, f.Targets()[1], "", "gzip")
		shared := 0
		others := parse(t, second)
		for series := range parse(t, first) {
			if _, ok := others[series]; ok {
				shared++
			}
		}
		if shared != 1 { // the number of the scrape
			t.Errorf("%s: %d series are on both", name, shared)
		}
	}
}

// Values that a real kubelet never has would dominate what agents send: a fraction takes eight bytes, a count of bytes
// three.
func TestBytesAndCountsOfKubeletsAreWhole(t *testing.T) {
	f := open(t, Config{Page: "kubelet", Targets: 1})
	page, _ := get(t, f.Targets()[0], "text/plain", "gzip")
	whole := regexp.MustCompile(`(?m)^container_(?:memory|spec|threads|network|fs|oom|last|start)\S+ (\S+)$`)
	values := whole.FindAllStringSubmatch(page, -1)
	if len(values) < 200 {
		t.Fatalf("the page has %d such series", len(values))
	}
	for _, v := range values {
		if n, err := strconv.ParseFloat(v[1], 64); err != nil || n != math.Trunc(n) {
			t.Errorf("%s", v[0])
		}
	}
}

func TestOneInFiftyPodsIsReplacedFromScrapeToScrape(t *testing.T) {
	f, err := New(Config{Page: "kubelet", Targets: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pods := regexp.MustCompile(`pod="[^"]*"`)
	const scrapes = 500
	seen, each := map[string]bool{}, 0
	for n := range scrapes {
		var sum tally.Tally
		now := map[string]bool{}
		for _, pod := range pods.FindAllString(string(f.pages[0].render(Text, 0, n, &sum)), -1) {
			now[pod], seen[pod] = true, true
		}
		each = len(now)
	}
	if want := each + each*(scrapes-1)/podLife; len(seen) < want-each || len(seen) > want+each {
		t.Errorf("%d pods in %d scrapes of %d, want about %d", len(seen), scrapes, each, want)
	}
}

func TestAMixedFleetHasPagesOfAllSizes(t *testing.T) {
	pages, err := Mixed(20_000, nodePage, true)
	if err != nil {
		t.Fatal(err)
	}
	least, most := pages[0].Samples(), 0
	for _, p := range pages {
		least, most = min(least, p.Samples()), max(most, p.Samples())
	}
	if len(pages) != kinds || least > 60 || most < 19_000 || most > 22_000 {
		t.Errorf("%d kinds of %d to %d samples", len(pages), least, most)
	}
}

// The account omits exactly what Prometheus' relabelling drops, and relabelling makes no two series equal.
func TestTheAccountKnowsWhatRulesDrop(t *testing.T) {
	var scrape struct {
		Rules []*relabel.Config `yaml:"metric_relabel_configs"`
	}
	if err := yaml.Unmarshal([]byte(Rules), &scrape); err != nil {
		t.Fatal(err)
	}
	for _, rule := range scrape.Rules {
		if err := rule.Validate(model.UTF8Validation); err != nil {
			t.Fatal(err)
		}
	}
	f := open(t, Config{Page: "node", NodePage: nodePage, Targets: 1, Change: 0.3, Relabelled: true})
	page, _ := get(t, f.Targets()[0], "text/plain", "gzip")
	settled(t, f)
	kept := map[string]bool{}
	copied := 0
	for _, l := range parse(t, page) {
		b := labels.NewBuilder(l)
		b.Set("instance", f.Targets()[0])
		if relabel.ProcessBuilder(b, scrape.Rules...) {
			kept[b.Labels().String()] = true
			if b.Get("node") != "" {
				copied++
			}
		}
	}
	want := int(f.Served()[0][0].Page.Count)
	if len(kept) != want || copied != want || want > 450 || want < 300 {
		t.Errorf("rules keep %d series, %d with the host, the account has %d", len(kept), copied, want)
	}
}

func TestTargetsBehindTLSAskForTheToken(t *testing.T) {
	f := open(t, Config{Page: "kubelet", Targets: 1, TLS: true})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for token, want := range map[string]int{"": http.StatusUnauthorized, Token: http.StatusOK} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+f.Targets()[0]+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("with the token %q: %s", token, resp.Status)
		}
	}
	settled(t, f)
	if got := f.Totals(); got.Scrapes != 1 {
		t.Errorf("%+v", got)
	}
}

func TestHostileTargets(t *testing.T) {
	f := open(t, Config{Page: "node", NodePage: nodePage, Targets: 1, Hostile: true})
	if len(f.Targets()) != 3 {
		t.Fatalf("targets: %v", f.Targets())
	}
	resp, err := http.DefaultTransport.RoundTrip(request(t, f.Targets()[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ContentLength > 5<<20 {
		t.Errorf("the bomb has %d bytes", resp.ContentLength)
	}
	r, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	beginning := make([]byte, 3<<20) // beyond the first piece
	if _, err := io.ReadFull(r, beginning); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(beginning)) {
		if line[0] != '#' {
			t.Fatalf("the bomb has the line %q", line)
		}
	}
	if n, err := io.Copy(io.Discard, r); err != nil || n+int64(len(beginning)) != bombSize {
		t.Errorf("the bomb inflates to %d bytes: %v", n+int64(len(beginning)), err)
	}
	drip, err := http.DefaultTransport.RoundTrip(request(t, f.Targets()[2]))
	if err != nil {
		t.Fatal(err)
	}
	defer drip.Body.Close()
	two := make([]byte, 2)
	begun := time.Now()
	if _, err := io.ReadFull(drip.Body, two); err != nil || time.Since(begun) < 500*time.Millisecond {
		t.Errorf("the drip says %q within %v: %v", two, time.Since(begun), err)
	}
	if got := f.Totals(); got.Scrapes != 0 || got.Targets != 0 {
		t.Errorf("they are accounted for: %+v", got)
	}
}

func request(t *testing.T, address string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	return req
}
