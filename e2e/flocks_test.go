// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
)

const (
	perFlock = 10
	// The series of a page that stay, and those that others replace.
	steadySeries, passingSeries = 30, 10
	// The number of scrapes after which other series replace them.
	passingScrapes = 10
	scrapeEvery    = time.Second
)

// flocks are targets that come and go, with one file_sd file for each flock. They record when each target was scraped
// and which scrapes the samples that arrive are from. They are safe for concurrent use.
type flocks struct {
	dir string
	all []*targets.Target
	// passing is the number of series of a page that others replace after passAfter scrapes.
	passing, passAfter int

	mu     sync.Mutex
	birds  []*bird
	byAddr map[string]*bird
	// outages are the periods in which data may be lost.
	outages []period
	// problems are the violations found, at most maxProblems.
	problems []string
}

const maxProblems = 20

// bird is the record of one target.
type bird struct {
	// scraped is when each scrape came; arrived is the life of the target in which its sample arrived, 0 if it has not.
	scraped []time.Time
	arrived []int
	// life is the current life: a target whose labels change is a new target to a scraper.
	life int
	// gone is set while the target is removed.
	gone bool
	// failed counts the scrapes that the scraper reported as failed.
	failed int
	// last is the timestamp of the last sample, by life.
	last map[int]int64
}

type period struct{ from, to time.Time }

// newFlocks starts n flocks; none is in dir yet.
func newFlocks(t *testing.T, dir string, n int) *flocks {
	t.Helper()
	f := &flocks{dir: dir, passing: passingSeries, passAfter: passingScrapes, byAddr: map[string]*bird{}}
	for range n * perFlock {
		f.birds = append(f.birds, &bird{last: map[int]int64{}})
	}
	f.all = targets.Many(t, n*perFlock, f.page)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, target := range f.all {
		f.byAddr[target.Addr()] = f.birds[i]
	}
	return f
}

// page returns a page that contains the number of the scrape.
func (f *flocks) page(target, scrape int) targets.Page {
	f.mu.Lock()
	b := f.birds[target]
	b.scraped = append(b.scraped, time.Now())
	b.arrived = append(b.arrived, 0)
	passing, passAfter := f.passing, f.passAfter
	f.mu.Unlock()

	var body strings.Builder
	fmt.Fprintf(&body, beatsPage, scrape)
	body.WriteString("# TYPE feathers gauge\n")
	for i := range steadySeries {
		fmt.Fprintf(&body, "feathers{feather=\"%d\",sort=\"steady\"} %d\n", i, scrape+i)
	}
	body.WriteString("# TYPE plumes gauge\n")
	for i := range passing {
		fmt.Fprintf(&body, "plumes{plume=\"%d\",moult=\"%d-%d\"} %d\n", i, target, scrape/passAfter, scrape+i)
	}
	return targets.Page{Body: body.String()}
}

// arrive adds a flock as new targets, even if it is there already.
func (f *flocks) arrive(t *testing.T, flock int) {
	t.Helper()
	life := f.change(flock, false)
	targets.WriteFileSD(t, f.file(flock), map[string]string{
		"job": "flocks", "life": strconv.Itoa(life), "__scrape_interval__": scrapeEvery.String(), "__scrape_timeout__": scrapeEvery.String(),
	}, f.all[flock*perFlock:(flock+1)*perFlock]...)
}

// leave removes a flock.
func (f *flocks) leave(t *testing.T, flock int) {
	t.Helper()
	f.change(flock, true)
	require.NoError(t, os.Remove(f.file(flock)))
}

func (f *flocks) file(flock int) string {
	return filepath.Join(f.dir, fmt.Sprintf("flock%d.json", flock))
}

func (f *flocks) change(flock int, gone bool) (life int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.birds[flock*perFlock : (flock+1)*perFlock] {
		b.life++
		b.gone, life = gone, b.life
	}
	return life
}

// end declares that all scraping is about to end.
func (f *flocks) end() {
	for flock := range len(f.all) / perFlock {
		f.change(flock, true)
	}
}

// mayLose declares an outage from a time, before which all scrapes have arrived, until now.
func (f *flocks) mayLose(from time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outages = append(f.outages, period{from, time.Now()})
}

// observe records the samples that arrive.
func (f *flocks) observe(series rwserver.Series) {
	name := series.Labels.Get(model.MetricNameLabel)
	if name != "beats_total" && name != "up" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.byAddr[series.Labels.Get(model.InstanceLabel)]
	if b == nil {
		return // one of the agent's own metrics
	}
	for _, sample := range series.Samples {
		switch {
		case sample.Stale():
		case name == "up" && sample.V == 0:
			b.failed++
		case name == "beats_total":
			f.beat(b, series.Labels, sample)
		}
	}
}

func (f *flocks) beat(b *bird, lset labels.Labels, sample rwserver.Sample) {
	life, err := strconv.Atoi(lset.Get("life"))
	scrape := int(sample.V)
	if err != nil || scrape < 0 || scrape >= len(b.arrived) {
		f.problem("%v is of no scrape: %v", sample, lset)
		return
	}
	if b.arrived[scrape] != 0 {
		f.problem("scrape %d arrived twice: %v", scrape, lset)
	}
	if sample.T <= b.last[life] {
		f.problem("%v of %v is not after the one before", sample, lset)
	}
	b.arrived[scrape], b.last[life] = life, sample.T
}

func (f *flocks) problem(format string, args ...any) {
	if len(f.problems) < maxProblems {
		f.problems = append(f.problems, fmt.Sprintf(format, args...))
	}
}

// arrivedBefore returns a condition: all scrapes before mark have arrived, except those that failed, that a change cut
// off, or that came in an outage.
func (f *flocks) arrivedBefore(mark time.Time) func() (bool, string) {
	return func() (bool, string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		missing, example := 0, ""
		for i, b := range f.birds {
			var here []int
			for scrape, at := range b.scraped {
				if b.arrived[scrape] == 0 && at.Before(mark) && !f.inOutage(at) && !b.cut(scrape) {
					here = append(here, scrape)
				}
			}
			if len(here) > b.failed {
				missing += len(here) - b.failed
				example = fmt.Sprintf("of target %d scrapes %v of %d, of which %d failed", i, here, len(b.scraped), b.failed)
			}
		}
		return missing == 0, fmt.Sprintf("%d scrapes have not arrived: %s", missing, example)
	}
}

// cut reports whether a scrape was the last of a life: its response may have been in flight when the scraper learned
// that the target is gone.
func (b *bird) cut(scrape int) bool {
	if scrape == len(b.scraped)-1 {
		return b.gone
	}
	next, previous := b.arrived[scrape+1], 1 // 1 is the first life
	for _, life := range b.arrived[:scrape] {
		if life != 0 {
			previous = life
		}
	}
	return next != 0 && next != previous
}

func (f *flocks) inOutage(at time.Time) bool {
	for _, o := range f.outages {
		if !at.Before(o.from) && !at.After(o.to) {
			return true
		}
	}
	return false
}

// tally counts the scrapes that came, that failed, and that outages lost.
func (f *flocks) tally() (scrapes, failed, lost int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.birds {
		scrapes += len(b.scraped)
		failed += b.failed
		for scrape, at := range b.scraped {
			if b.arrived[scrape] == 0 && f.inOutage(at) {
				lost++
			}
		}
	}
	return scrapes, failed, lost
}

func TestFlocksMissWhatDoesNotArrive(t *testing.T) {
	begin := time.Unix(1000, 0)
	after := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * scrapeEvery) }
	f := func(want string, arrived []int, spoil func(f *flocks, b *bird)) {
		t.Helper()
		b := &bird{last: map[int]int64{}, life: 1}
		flocks := &flocks{birds: []*bird{b}, byAddr: map[string]*bird{"a": b}}
		for i := range arrived {
			b.scraped, b.arrived = append(b.scraped, after(i)), append(b.arrived, 0)
		}
		for i, life := range arrived {
			if life != 0 {
				flocks.observe(rwserver.Series{
					Labels:  labels.FromStrings("__name__", "beats_total", "instance", "a", "life", strconv.Itoa(life)),
					Samples: []rwserver.Sample{{T: after(i).UnixMilli(), V: float64(i)}},
				})
			}
		}
		if spoil != nil {
			spoil(flocks, b)
		}
		ok, why := flocks.arrivedBefore(after(len(arrived)))()
		assert.Equal(t, want == "", ok, why)
		assert.Contains(t, why, want)
		assert.Empty(t, flocks.problems)
	}
	f("", []int{1, 1, 1}, nil)
	f("1 scrapes have not arrived: of target 0 scrapes [1] of 3", []int{1, 0, 1}, nil)
	f("scrapes [0]", []int{0, 1, 1}, nil)
	f("scrapes [2]", []int{1, 1, 0}, nil)
	f("", []int{1, 0, 1}, func(_ *flocks, b *bird) { b.failed = 1 })
	f("scrapes [1 2]", []int{1, 0, 0, 1}, func(_ *flocks, b *bird) { b.failed = 1 })
	f("", []int{1, 0, 2}, nil)               // the change from one life to the next
	f("scrapes [1]", []int{1, 0, 0, 2}, nil) // more than a change cuts off
	f("", []int{1, 1, 0}, func(_ *flocks, b *bird) { b.gone = true })
	f("scrapes [1]", []int{1, 0, 0}, func(_ *flocks, b *bird) { b.gone = true })
	f("scrapes [1 3]", []int{1, 0, 1, 0, 1, 0}, func(f *flocks, _ *bird) {
		f.outages = []period{{after(5), after(6)}}
	})
}

func TestFlocksSeeWhatArrivesWrongly(t *testing.T) {
	b := &bird{last: map[int]int64{}, scraped: make([]time.Time, 3), arrived: make([]int, 3)}
	f := &flocks{birds: []*bird{b}, byAddr: map[string]*bird{"a": b}}
	lset := labels.FromStrings("__name__", "beats_total", "instance", "a", "life", "1")
	f.observe(rwserver.Series{Labels: lset, Samples: []rwserver.Sample{{T: 2, V: 1}, {T: 3, V: 1}, {T: 1, V: 0}, {T: 9, V: 7}}})
	f.observe(rwserver.Series{Labels: labels.FromStrings("__name__", "up", "instance", "a"), Samples: []rwserver.Sample{{T: 1, V: 0}, {T: 2, V: 1}}})
	require.Len(t, f.problems, 3)
	assert.Contains(t, f.problems[0], "scrape 1 arrived twice")
	assert.Contains(t, f.problems[1], "is not after the one before")
	assert.Contains(t, f.problems[2], "is of no scrape")
	assert.Equal(t, 1, b.failed)
}
