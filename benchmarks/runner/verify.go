// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"github.com/godwit-otel/godwit/benchmarks/farm"
	"github.com/godwit-otel/godwit/benchmarks/sink"
	"github.com/godwit-otel/godwit/benchmarks/tally"
)

// Account is the difference between what the farm served and what arrived.
type Account struct {
	Scrapes    int   `json:"scrapes"`    // that were checked
	Served     int64 `json:"served"`     // samples in them
	Lost       int64 `json:"lost"`       // samples that did not arrive
	Duplicated int64 `json:"duplicated"` // samples that arrived more than once
	Altered    int64 `json:"altered"`    // scrapes that arrived complete but with other values
	Unknown    int64 `json:"unknown"`    // samples that belong to no known scrape
}

// Complete reports whether every sample arrived once, with its value.
func (a Account) Complete() bool {
	return a.Lost == 0 && a.Duplicated == 0 && a.Altered == 0 && a.Unknown == 0
}

// compare checks that all samples of each scrape served until a time (Unix milliseconds) arrived once. A scrape in
// flight at that time may have arrived in part, so samples without the number of their scrape count as unknown only if
// they are older by a margin.
func compare(served [][]farm.Scrape, arrived map[int][]sink.Group, until, margin int64) Account {
	var a Account
	for target, scrapes := range served {
		byNumber := map[int]tally.Tally{}
		for _, g := range arrived[target] {
			if g.Number == 0 && g.Time <= until-margin {
				a.Unknown += int64(g.Page.Count)
			}
			sum := byNumber[g.Number]
			sum.Merge(g.Page)
			byNumber[g.Number] = sum
		}
		for _, s := range scrapes {
			if s.At > until {
				continue
			}
			a.Scrapes++
			a.Served += int64(s.Page.Count)
			got := byNumber[s.Number]
			switch {
			case got.Count < s.Page.Count:
				a.Lost += int64(s.Page.Count - got.Count)
			case got.Count > s.Page.Count:
				a.Duplicated += int64(got.Count - s.Page.Count)
			case got.Sum != s.Page.Sum:
				a.Altered++
			}
		}
	}
	return a
}
