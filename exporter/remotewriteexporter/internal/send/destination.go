// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package send delivers blocks to one destination over HTTP: it detects which
// format the destination accepts, retries after temporary failures, splits what
// is too large, and drops what can never be accepted.
//
// Send returns when its blocks are delivered or dropped. A caller that sends
// the blocks of a shard one call after the other keeps the shard in order.
// Calls share what they learn: the format, the
// largest request, when the destination wants to be asked again, and whether it
// answers at all.
package send

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// Reasons for which a destination drops blocks, or items of them.
const (
	ReasonRejected  = "rejected"  // the destination will never accept it
	ReasonPartial   = "partial"   // the destination says it wrote less than it was sent
	ReasonTooLarge  = "too_large" // it cannot be split any further
	ReasonUnwritten = "unwritten" // a 2xx without the written counts that 2.0 demands
	ReasonElapsed   = "max_elapsed_time"
	ReasonAge       = "max_age"
	ReasonFormat    = "format" // the destination's format cannot express it
	ReasonTenant    = "tenant" // no header can have its tenant, as after a change of the configuration
)

// Config says how to deliver.
type Config struct {
	URL    string
	Client *http.Client
	// Formats are what the destination may be sent, the best first.
	Formats []block.Format
	// Timeout limits one attempt.
	Timeout time.Duration
	// Reprobe is how long a fallback holds before better formats are tried again.
	Reprobe time.Duration
	// Tenants puts tenants into requests; nil if there are none.
	Tenants   Tenants
	UserAgent string
	Retry     Retry
	Breaker   Breaker
	Rate      Rate
}

// Tenants puts tenants into requests.
type Tenants interface {
	// SetHeaders sets the headers of a request for a tenant's data. It returns an error if no header can have the
	// tenant.
	SetHeaders(h http.Header, tenant string) error
	// Name is a tenant's name for display.
	Name(tenant string) string
}

// Telemetry is told what happens. Its methods are called from many goroutines and must not block.
type Telemetry interface {
	// Requested reports an answer, code 0 if there was none, with its text unless it was a success.
	Requested(code int, said string, wireBytes int, took time.Duration)
	Retried(reason string)
	// Paced reports a request that waits for the rate limit.
	Paced()
	// Delivered reports a block that was delivered, with its losses.
	Delivered(h block.Header, losses []Loss)
	Dropped(h block.Header, reason string)
	// Down reports that the destination accepts no data, with the reason, or that it does again, with nil.
	Down(reason error)
}

// Loss counts the items of a delivered block that were not written, for the given reason. It may be none.
type Loss struct {
	Reason                         string
	Samples, Histograms, Exemplars int
}

// Destination is one endpoint.
type Destination struct {
	cfg       Config
	log       *zap.Logger
	telemetry Telemetry
	formats   *negotiation
	gate      *gate
	pace      pace

	hurried context.Context // ended by Hurry
	hurry   context.CancelFunc

	all    limits // of all requests
	served tenants

	mu         sync.Mutex // guards what was last logged
	down       bool
	announced  int
	lastDrop   dropKey
	lastDropAt time.Time
	smallAt    time.Time
}

// New makes a destination. It starts no goroutine.
func New(cfg Config, log *zap.Logger, telemetry Telemetry) *Destination {
	client := *cfg.Client
	// A redirect is an answer like any other: following it would turn a POST into a GET of a login page.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	cfg.Client = &client
	hurried, hurry := context.WithCancel(context.Background())
	return &Destination{
		hurried: hurried, hurry: hurry,
		cfg: cfg, log: log, telemetry: telemetry,
		formats: newNegotiation(cfg.Formats, cfg.Reprobe), gate: newGate(cfg.Breaker), pace: pace{rate: cfg.Rate},
		all: limits{sizes: ceiling{longest: cfg.Reprobe}}, served: tenants{longest: cfg.Reprobe},
	}
}

// Format is the best format to encode in now.
func (d *Destination) Format() block.Format { return d.cfg.Formats[d.formats.wanted()] }

// Fallback is how many formats below the best the current one is, and that format.
func (d *Destination) Fallback() (int, block.Format) {
	i := d.formats.current()
	return i, d.cfg.Formats[i]
}

// Largest is the size that a request should not exceed, before compression and on the wire; 0 until one was too large.
func (d *Destination) Largest() (raw, wire int) { return d.all.sizes.limits() }

// BreakerOpen reports whether only probes are sent to the destination.
func (d *Destination) BreakerOpen() bool { return d.gate.isOpen() }

// Answers reports whether the destination accepted the last request, and asked for no pause.
func (d *Destination) Answers() bool { return d.gate.passes() }

// ThrottledUntil is the end of a pause that the destination asked for; zero if there is none.
func (d *Destination) ThrottledUntil() time.Time { return d.gate.askedFor() }

// Hurry ends all pauses, now and later: requests that would have to wait end undelivered. Requests in flight continue.
func (d *Destination) Hurry() { d.hurry() }

// Close closes idle connections.
func (d *Destination) Close() {
	d.hurry()
	d.cfg.Client.CloseIdleConnections()
}

// Times are the times of blocks, in their order; nil if not known.
type Times struct {
	Queued    []time.Time // when each was queued
	Deadlines []time.Time // when it becomes too old; zero is never
}

// term is the time that a block may take.
type term struct {
	queued   time.Time
	started  time.Time // of the first attempt
	deadline time.Time
}

// of returns the term of a block whose first attempt begins at started.
func (t *Times) of(block int, started time.Time) term {
	of := term{started: started}
	if block < len(t.Queued) {
		of.queued = t.Queued[block]
	}
	if block < len(t.Deadlines) {
		of.deadline = t.Deadlines[block]
	}
	return of
}

// Send returns nil when the destination is done with all blocks, delivered or dropped, and an *EndedError when ctx ends
// first, or Hurry is called. A *LaterError says that the destination would not serve the tenant of the blocks. Both say
// with how many blocks it is done: all others are undelivered, except for parts of what was sent in pieces. Several
// blocks, which must be of one tenant and version, are sent in one request as far as the destination accepts that; if
// it fails, they are sent one by one. lost has an error for each block that was not delivered, of those it is done
// with; it is nil if all were.
func (d *Destination) Send(ctx context.Context, blocks []block.Block, times Times) (lost []error, err error) {
	all := len(blocks)
	pauses, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(d.hurried, end)()
	rest, lost, err := d.sendAll(ends{requests: ctx, pauses: pauses}, blocks, &times)
	switch later := (*LaterError)(nil); {
	case errors.As(err, &later):
		later.Done = all - rest
	case err != nil:
		err = &EndedError{Done: all - rest, cause: err}
	}
	return lost, err
}

// EndedError means that there was no time to send all blocks.
type EndedError struct {
	Done  int // blocks that the destination is done with
	cause error
}

func (e *EndedError) Error() string { return "cannot send all blocks: " + e.cause.Error() }

func (e *EndedError) Unwrap() error { return e.cause }

// ends are the contexts that end requests, and pauses.
type ends struct{ requests, pauses context.Context }

// sendAll is Send. It returns how many blocks were not reached.
func (d *Destination) sendAll(end ends, blocks []block.Block, times *Times) (rest int, lost []error, err error) {
	started := time.Now()
	all := len(blocks)
	lose := func(block int, err error) {
		if err == nil {
			return
		}
		if lost == nil {
			lost = make([]error, all)
		}
		lost[block] = err
	}
	for len(blocks) > 0 {
		first := all - len(blocks)
		n := d.together(blocks)
		e := ending{fate: apart}
		if n > 1 {
			if whole, err := block.Merge(blocks[:n]); err == nil {
				if e, err = d.deliver(end, whole, times.of(first, started), true); err != nil {
					return len(blocks), lost, err
				}
			}
		}
		switch e.fate {
		case late:
			continue // with fewer of them
		case apart:
			for i, b := range blocks[:n] {
				why, err := d.sendOne(end, b, times.of(first+i, started))
				if err != nil {
					return len(blocks) - i, lost, err
				}
				lose(first+i, why)
			}
		case sealed:
			for i := range n {
				lose(first+i, e.lost)
			}
		}
		blocks, started = blocks[n:], time.Now()
	}
	return 0, lost, nil
}

// together returns how many of the first blocks may be in one request.
func (d *Destination) together(blocks []block.Block) int {
	limit, points, raw, wire := d.limitOn(blocks[0]).points(), 0, 0, 0
	mostRaw, mostWire := d.largest(blocks[0])
	for i, b := range blocks {
		points += b.Samples + b.Histograms
		raw, wire = raw+b.RawSize, wire+len(b.Body())
		if i > 0 && (limit > 0 && points > limit || mostRaw > 0 && (raw > mostRaw || wire > mostWire)) {
			return i
		}
	}
	return len(blocks)
}

// sendOne sends a block, in pieces if it is too large. lost says what could not be delivered.
func (d *Destination) sendOne(end ends, b block.Block, its term) (lost, err error) {
	parts, begun := []block.Block{b}, false
	refused, spread := small{}, d.cfg.Retry.spread()
	for len(parts) > 0 {
		part := parts[0]
		if limit, _ := d.largest(part); limit > 0 && part.RawSize > limit {
			if first, second, err := block.Split(part); err == nil {
				parts = append([]block.Block{first, second}, parts[1:]...)
				continue
			}
		}
		e, err := d.deliver(end, part, its, false)
		if later := (*LaterError)(nil); begun && errors.As(err, &later) {
			// If the block went back now, the pieces already delivered would be sent again: the rest waits here.
			if err = sleep(end.pauses, later.Wait); err == nil {
				continue
			}
		}
		if err != nil {
			return lost, err
		}
		if e.fate == sealed {
			if refused.times > 0 && e.lost == nil {
				d.forget(part)
			}
			begun, lost, refused = true, cmp.Or(lost, e.lost), small{}
			parts = parts[1:]
			continue
		}
		first, second, err := halves(part)
		if err != nil {
			if d.mayPass(part, &refused, its.started) {
				if err := d.waitForSmall(end.pauses, part, &refused, spread); err != nil {
					return lost, err
				}
				continue
			}
			lost, refused = d.drop(part.Header, ReasonTooLarge, answer{code: http.StatusRequestEntityTooLarge, err: err}), small{}
			parts = parts[1:]
			continue
		}
		parts = append([]block.Block{first, second}, parts[1:]...)
	}
	return lost, nil
}
