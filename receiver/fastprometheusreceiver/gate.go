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
	// evidence is how many targets must be refused, with none accepted in between, for the pipeline to count as
	// refusing, rather than the metrics of one target as bad.
	evidence = 16
	// probeInterval is how often one scrape is let through while the pipeline refuses metrics.
	probeInterval = time.Second
)

// A gate avoids useless scrapes while a pipeline refuses all metrics, most likely because memory is short. It holds a
// target back only if
//
//   - metrics of many targets were refused since any were last accepted,
//   - the target's own metrics were among them: a target that was not refused, or not scraped yet, is always scraped, and
//   - for each refusal it is certain that nobody took the metrics. An error of several pipelines or exporters is not
//     enough: one of them may work.
//
// Targets that are held back are let through at random, one per probeInterval in all. As soon as the metrics of one are
// accepted, all are scraped again.
type gate struct {
	behind paths

	faced atomic.Bool // targets were refused in this era; checked without the lock by those that are accepted

	mu       sync.Mutex
	era      uint64 // ends when metrics are accepted
	refused  int    // existing targets that were refused, in this era
	refusing bool   // so many targets were refused that it must be the pipeline
	partly   bool   // metrics were refused in this era that somebody may have taken
}

// A refusal is what the gate knows about a target. It is guarded by the target's scrape in flight.
type refusal struct {
	era  uint64    // era in which the target was refused; 0 if never
	last time.Time // when it was refused
	turn float32   // its random turn to be let through while held back, from 0 to 1
	said bool      // it was logged
}

func newGate(behind paths) *gate { return &gate{behind: behind, era: 1} }

// admits reports whether to scrape the target.
func (g *gate) admits(r *refusal) bool {
	if !g.faced.Load() {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.refusing || g.partly || r.era != g.era || time.Since(r.last) >= g.wait(r)
}

// wait returns how long a target is held back: a random time for which, with this many targets, one is let through in
// each interval.
func (g *gate) wait(r *refusal) time.Duration {
	return time.Duration(float64(r.turn) * float64(2*g.refused) * float64(probeInterval))
}

// refuse records that a target's metrics were refused. It reports whether the pipeline counts as refusing from now on,
// whether it does at all, and whether the gate holds targets back for it.
func (g *gate) refuse(r *refusal, err error) (begins, refusing, holding bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faced.Store(true)
	if r.era != g.era {
		r.era = g.era
		g.refused++
	}
	begins = !g.refusing && g.refused >= evidence
	g.refusing = g.refusing || begins
	g.partly = g.partly || !g.behind.refuse(err)
	r.last, r.turn = time.Now(), rand.Float32() //nolint:gosec // it is no secret
	return begins, g.refusing, g.refusing && !g.partly
}

// leave records that a target no longer exists, so that the others are let through sooner.
func (g *gate) leave(r *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.era == g.era {
		r.era = 0
		g.refused--
	}
}

// take records that metrics were accepted. It reports whether the pipeline counted as refusing until now.
func (g *gate) take() bool {
	if !g.faced.Load() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.refusing
	g.era++
	g.refused, g.refusing, g.partly = 0, false, false
	g.faced.Store(false)
	return was
}

// paths are the ways from a receiver to its exporters: the numbers of its pipelines and of their exporters. They are
// zero if not known.
type paths struct{ pipelines, exporters int }

// pathsBehind reads the host's graph. After a connector there are further pipelines, so the result is then zero.
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

// refuse reports whether an error says that all paths refused the metrics, and that they may accept them later.
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

// memoryLimited is the text of memory_limiter's error, which has no exported type. It is returned before any exporter
// is called.
const memoryLimited = "data refused due to high memory usage"

// limited counts how many memory limiters an error is from.
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
