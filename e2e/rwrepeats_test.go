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

// lifeHeader tells which life of the agent sent a request.
const lifeHeader = "X-Life"

// repeats judges which requests of a tally's samples came again after an agent was killed. Samples that come in one request are of one
// shard, and each shard of each life may have had one request in progress when it ended: the last that arrived of it. Nothing else may
// come again. It is safe for concurrent use.
type repeats struct {
	mu   sync.Mutex
	life []int // of each request, in the order in which they arrived
	// some is a series of each request.
	some []int
	// shard leads from a series to another one of its shard, and in the end to the one that stands for it.
	shard [tallySenders * tallySeries]int
	// last is by series and number the request that had it last, counted from 1.
	last     [tallySenders * tallySeries][]int
	again    []repetition
	problems []string
}

// repetition is a sample of a series that a request had and a later one had again.
type repetition struct{ series, first, second int }

func newRepeats() *repeats {
	r := &repeats{}
	for i := range r.shard {
		r.shard[i] = i
	}
	return r
}

// observe takes note of a request that is kept.
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
		sender, _ := strconv.Atoi(series.Labels.Get("sender")) // the tally judges labels
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

// shardOf is the series that stands for all of the shard.
func (r *repeats) shardOf(series int) int {
	for r.shard[series] != series {
		r.shard[series] = r.shard[r.shard[series]]
		series = r.shard[series]
	}
	return series
}

// judge says what is wrong with repetitions, how many shards there are, and how many requests came again.
func (r *repeats) judge() (problems []string, shards, requests int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	type source struct{ life, shard int }
	last := map[source]int{} // requests
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
	arrive(2, 0, 1) // in parts
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
