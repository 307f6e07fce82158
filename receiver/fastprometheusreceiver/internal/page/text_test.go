// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// ownPage returns a page of which some lines contain the target's name and others do not, in families of one and of
// several lines.
func ownPage(r *rand.Rand, lines int, own string) string {
	var b strings.Builder
	for i := 0; i < lines; {
		name := fmt.Sprintf("m%s_%d", strings.Repeat("x", i%3), i)
		fmt.Fprintf(&b, "# HELP %s About it.\n# TYPE %s gauge\n", name, name)
		for j := range 1 + i%4 {
			switch (i + j) % 5 {
			case 0:
				fmt.Fprintf(&b, "%s{pod=%q} %d\n", name, own, r.IntN(1e6))
			case 1:
				fmt.Fprintf(&b, "%s{a=\"%d\",pod=%q} %d\n", name, j, own, r.IntN(1e6))
			case 2:
				fmt.Fprintf(&b, "%s{pod=%q,z=\"%d\"} %d\n", name, own, i*j, r.IntN(1e6))
			case 3:
				fmt.Fprintf(&b, "%s{pod=%q,host=%q} %d\n", name, own, own, r.IntN(1e6))
			default:
				fmt.Fprintf(&b, "%s{z=\"%d\"} %g\n", name, j, r.Float64())
			}
			i++
		}
	}
	return b.String()
}

// A plan's text matches exactly what its lines match.
func TestTextMatchesWhatLinesMatch(t *testing.T) {
	matched, slotted, alike := 0, 0, 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 9))
		j := newTestJob(t, Config{Scrape: testScrapeConfig()})
		var target *Target
		var page string
		for i := range 12 {
			target = testTarget(j, i)
			of := newHost(seed<<8|uint64(i), 4)
			for range 3 {
				page = ownPage(rand.New(rand.NewPCG(seed, 9)), 60, fmt.Sprint("app-", strings.Repeat("7", i%4), i))
				if seed%2 == 1 {
					page = of.page(typeText)
				}
				require.NoError(t, show(target, start, typeText, page, 1<<20).Err)
			}
		}
		text := target.Plan.Text()
		require.NotNil(t, text, "the plan is shared")
		var before []byte
		var texts [][]byte
		i := 0
		for line := range strings.Lines(page) {
			l := target.Plan.Body[i]
			b := []byte(line)
			check := func(b []byte, own []string) {
				if text.Kind(i) == plan.OtherText || len(before) == 0 || own == nil && text.Like(i) >= 0 {
					return
				}
				var like []byte
				if at := text.Like(i); at >= 0 {
					like = texts[at]
				}
				want, got := l.Match(b, own), text.Match(i, before, like, b, own)
				require.Equal(t, want, got, "%q after %q", b, before)
				if got > 0 {
					matched++
				}
			}
			if l.IsSlotted() && text.Kind(i) != plan.OtherText {
				slotted++
			}
			if text.Like(i) >= 0 {
				alike++
			}
			check(b, target.Own)
			for range 20 {
				spoiled := bytes.Clone(b)
				spoiled[r.IntN(len(spoiled))] ^= byte(1 + r.IntN(3))
				check(spoiled, target.Own)
				check(b[:r.IntN(len(b))], target.Own)
			}
			check(b, nil)
			before = b
			texts = append(texts, b[:l.Match(b, target.Own)])
			i++
		}
		require.Len(t, target.Plan.Body, i)
	}
	require.Positive(t, matched)
	require.Positive(t, slotted)
	require.Positive(t, alike)
}

// Pages that are compared with a text have the same results as those that are compared with lines.
func TestPagesReadByTextAreTheSame(t *testing.T) {
	racetest.Sequential(t)
	followed := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 10))
		jobs := []*Job{
			newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true}), newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true}),
		}
		var targets [2][]*Target
		for i := range 4 {
			for k, j := range jobs {
				targets[k] = append(targets[k], testTarget(j, i))
			}
		}
		for scrape := range 8 {
			for i := range targets[0] {
				page := ownPage(rand.New(rand.NewPCG(seed, uint64(scrape))), 60, fmt.Sprint("app-", i))
				switch r.IntN(24) {
				case 0: // one line less
					at := strings.Index(page, "\nm") + 1
					page = page[:at] + page[at+strings.IndexByte(page[at:], '\n')+1:]
				case 1: // an unknown line
					page += "another{pod=\"p\"} 1\n"
				case 2: // a timestamp
					page = strings.Replace(page, "} 1", "} 1 "+fmt.Sprint(start.UnixMilli())+"\n# ", 1)
				case 3: // a change within a line
					at := strings.LastIndex(page, "z=")
					page = page[:at] + "y" + page[at+1:]
				}
				size := 1 + r.IntN(3000)
				var came [2]Result
				for k := range jobs {
					s, err := targets[k][i].Begin(start, typeText)
					require.NoError(t, err)
					if k == 0 {
						s.text = nil
					} else if s.text != nil {
						followed++
					}
					for rest := []byte(page); len(rest) > 0; rest = rest[min(size, len(rest)):] {
						_ = s.Feed(rest[:min(size, len(rest))])
					}
					came[k] = s.End(Report{})
				}
				require.Equal(t, came[0].Err, came[1].Err)
				require.Equal(t, canon(came[0].Metrics), canon(came[1].Metrics), "page %q", page)
				require.Equal(t, came[0].Hits, came[1].Hits)
				for k := range came {
					came[k].Release()
				}
			}
		}
	}
	require.Greater(t, followed, 200)
}
