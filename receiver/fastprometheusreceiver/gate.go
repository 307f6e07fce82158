// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/godwit-otel/godwit/internal/hostgraph"
)

const (
	// evidence is how many targets must have been refused, and none taken between, until it is the pipeline that refuses
	// and not a verdict on what one target says.
	evidence = 16
	// probeInterval is how often a scrape is let through while the pipeline refuses metrics.
	probeInterval = time.Second
)

// A gate keeps scrapes from being made for nothing, while a pipeline refuses whatever it is given, most likely because
// memory is short. It holds a target back only if
//
//   - metrics of many targets were refused since any were last taken,
//   - this target's were among them: one that was not refused, or was never heard, is always scraped, and
//   - it is known of each refusal that nobody took the metrics. An error of several pipelines or exporters does not say
//     that: one of them may be well.
//
// Those that are held back come through at random, one of all each probeInterval. As soon as the metrics of one are taken,
// all are scraped again.
type gate struct {
	behind paths

	faced atomic.Bool // targets were refused in this era; spares those that are taken the lock

	mu      sync.Mutex
	era     uint64 // ends when metrics are taken
	refused int    // targets, in this era
	partly  bool   // metrics were refused in this era that somebody may have taken
}

// A refusal is what the gate knows of a target. Its scrape in flight guards it.
type refusal struct {
	era  uint64    // in which the target was refused; 0 if never
	next time.Time // when it comes through though held back
	said bool      // in the log
}

func newGate(behind paths) *gate { return &gate{behind: behind, era: 1} }

// admits reports whether the target is to be scraped.
func (g *gate) admits(r *refusal) bool {
	if !g.faced.Load() {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused < evidence || g.partly || r.era != g.era || !time.Now().Before(r.next)
}

// refuse notes that a target's metrics were refused. It reports whether that makes it the pipeline that refuses, from now
// on or since before, and whether the gate holds targets back for it.
func (g *gate) refuse(r *refusal, err error) (begins, refusing, holding bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faced.Store(true)
	if r.era != g.era {
		r.era = g.era
		g.refused++
		begins = g.refused == evidence
	}
	g.partly = g.partly || !g.behind.refuse(err)
	// With so many targets held back, each until such a random time, one of all comes through each interval.
	r.next = time.Now().Add(rand.N(time.Duration(2*g.refused) * probeInterval)) //nolint:gosec // it is no secret
	return begins, g.refused >= evidence, g.refused >= evidence && !g.partly
}

// take notes that metrics were taken. It reports whether the pipeline was refusing until now.
func (g *gate) take() bool {
	if !g.faced.Load() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.refused >= evidence
	g.era++
	g.refused, g.partly = 0, false
	g.faced.Store(false)
	return was
}

// paths are the ways that metrics go from a receiver: its pipelines, and their exporters. They are zero if nobody knows.
type paths struct{ pipelines, exporters int }

// pathsBehind reads the host's graph. Behind a connector there are more pipelines, so nothing is known then.
func pathsBehind(host component.Host, receiver component.ID) paths {
	behind, err := hostgraph.Behind(host, receiver)
	if err != nil {
		return paths{}
	}
	p := paths{pipelines: len(behind)}
	for _, pipeline := range behind {
		for _, exporter := range pipeline.Exporters {
			if exporter.Kind == component.KindConnector {
				return paths{}
			}
			p.exporters++
		}
	}
	return p
}

// refuse tells whether an error says that all of them refused, and may not next time.
func (p paths) refuse(err error) bool {
	switch {
	case consumererror.IsPermanent(err):
		return false
	case p.pipelines == 1 && p.exporters == 1:
		return true
	default:
		return p.pipelines > 0 && limited(err) >= p.pipelines
	}
}

// memoryLimited is what memory_limiter says, which has no type that others could know. It comes before all exporters.
const memoryLimited = "data refused due to high memory usage"

// limited counts the memory limiters whose words are in an error.
func limited(err error) (n int) {
	if err == nil {
		return 0
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			n += limited(one)
		}
		return n
	}
	if inner := errors.Unwrap(err); inner != nil {
		return limited(inner)
	}
	if err.Error() == memoryLimited {
		n++
	}
	return n
}
