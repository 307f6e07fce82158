// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/rwserver"
)

// lifeHeader contains the number of the agent's life that sent a request.
const lifeHeader = "X-Life"

// repeats checks which requests came again after an agent was killed. The samples of a request belong to one shard, and
// each shard of each life may have had one request in flight when it ended: the last one that arrived. Only that may
// come again. It is safe for concurrent use.
type repeats struct {
	mu   sync.Mutex
	life []int // by request, in order of arrival
	// some is one series of each request.
	some []int
	// shard is a union-find forest: it leads from a series to another one of its shard, and in the end to the shard's
	// representative.
	shard [tallySenders * tallySeries]int
	// last is, by series and number, the last request with that sample, counted from 1.
	last     [tallySenders * tallySeries][]int
	again    []repetition
	problems []string
}

// repetition is a sample of a series that was in two requests.
type repetition struct{ series, first, second int }

func newRepeats() *repeats {
	r := &repeats{}
	for i := range r.shard {
		r.shard[i] = i
	}
	return r
}

// observe records a request that was accepted.
func (r *repeats) observe(request rwserver.Request, all []rwserver.Series) {
	r.mu.Lock()
	defer r.mu.Unlock()
	life, err := strconv.Atoi(request.Header.Get(lifeHeader))
	if err != nil {
		r.problem("a request of life %q", request.Header.Get(lifeHeader))
	}
	first := -1
	for _, series := range all {
		if series.Labels.Get(model.MetricNameLabel) != tallyName {
			continue
		}
		sender, _ := strconv.Atoi(series.Labels.Get("sender")) // tally checks the labels
		index, _ := strconv.Atoi(series.Labels.Get("series"))
		s := sender*tallySeries + index
		if first < 0 {
			first = s
			r.life, r.some = append(r.life, life), append(r.some, s)
		}
		r.shard[r.shardOf(s)] = r.shardOf(first)
		last := &r.last[s]
		for _, sample := range series.Samples {
			number := int(sample.V)
			if missing := number + 1 - len(*last); missing > 0 {
				*last = append(*last, make([]int, missing)...)
			}
			if before := (*last)[number]; before > 0 {
				r.again = append(r.again, repetition{s, before - 1, len(r.life) - 1})
			}
			(*last)[number] = len(r.life)
		}
	}
}

func (r *repeats) problem(format string, args ...any) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, fmt.Sprintf(format, args...))
	}
}

// shardOf returns the representative of the series' shard.
func (r *repeats) shardOf(series int) int {
	for r.shard[series] != series {
		r.shard[series] = r.shard[r.shard[series]]
		series = r.shard[series]
	}
	return series
}

// judge returns the violations, the number of shards, and the number of requests that came again.
func (r *repeats) judge() (problems []string, shards, requests int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	type source struct{ life, shard int }
	last := map[source]int{} // request by source
	known := map[int]bool{}
	for n, life := range r.life {
		shard := r.shardOf(r.some[n])
		last[source{life, shard}] = n
		known[shard] = true
	}
	repeated := map[int]bool{}
	for _, a := range r.again {
		repeated[a.first] = true
		switch life := r.life[a.first]; {
		case life >= r.life[a.second]:
			r.problem("request %d of life %d comes again in life %d, as %d", a.first, life, r.life[a.second], a.second)
		case last[source{life, r.shardOf(a.series)}] != a.first:
			r.problem("request %d of life %d comes again, as %d, though %d came later of its shard", a.first, life, a.second, last[source{life, r.shardOf(a.series)}])
		}
	}
	return r.problems, len(known), len(repeated)
}

func TestRepeatsAreJudgedByShard(t *testing.T) {
	r := newRepeats()
	arrive := func(life, sender int, numbers ...int) {
		var all []rwserver.Series
		for series := range 2 {
			s := rwserver.Series{Labels: labels.FromStrings("__name__", tallyName, "sender", strconv.Itoa(sender), "series", strconv.Itoa(series))}
			for _, number := range numbers {
				s.Samples = append(s.Samples, rwserver.Sample{V: float64(number)})
			}
			all = append(all, s)
		}
		r.observe(rwserver.Request{Header: http.Header{lifeHeader: {strconv.Itoa(life)}}}, all)
	}
	judged := func(requests int, want ...string) {
		t.Helper()
		problems, shards, again := r.judge()
		assert.Equal(t, want, problems)
		assert.Equal(t, []int{2, requests}, []int{shards, again})
		r.problems = nil
	}
	arrive(1, 0, 0)
	arrive(1, 1, 0)
	arrive(1, 0, 1, 2)
	judged(0)
	arrive(2, 0, 1) // split in parts
	arrive(2, 0, 2, 3)
	arrive(2, 1, 0)
	judged(2)
	arrive(3, 0, 2, 3)
	judged(3)
	arrive(3, 0, 3)
	again := "request 6 of life 3 comes again in life 3, as 7"
	judged(4, again, again)
	arrive(4, 0, 1)
	r.again = r.again[len(r.again)-2:]
	later := "request 3 of life 2 comes again, as 8, though 4 came later of its shard"
	judged(1, later, later)
}
