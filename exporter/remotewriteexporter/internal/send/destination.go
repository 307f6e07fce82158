// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package send delivers blocks to one destination over HTTP: it finds out which
// format the destination takes, repeats what failed for the moment, splits what
// is too large, and drops what can never be taken.
//
// Send holds on to blocks until their fate is sealed, so whoever calls it with
// the next blocks of a shard, and with no others of it until it returns, keeps
// that shard in order. What several calls learn they share: the format, the
// largest request, when the destination wants to be asked again, and whether it
// answers at all.
package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// Reasons for which a destination drops blocks, or items of them.
const (
	ReasonRejected  = "rejected"  // the destination will never take it
	ReasonPartial   = "partial"   // the destination says it wrote less than it was sent
	ReasonTooLarge  = "too_large" // it cannot be split any further
	ReasonUnwritten = "unwritten" // a 2xx without the written counts that 2.0 demands
	ReasonElapsed   = "max_elapsed_time"
	ReasonAge       = "max_age"
	ReasonFormat    = "format" // the destination's format cannot express it
	ReasonTenant    = "tenant" // no request can name its tenant, as after a change of the configuration
)

// Config says how to deliver.
type Config struct {
	URL    string
	Client *http.Client
	// Formats the destination may be offered, the best first.
	Formats []block.Format
	// Timeout bounds one attempt.
	Timeout time.Duration
	// Reprobe is how long a fallback holds before better formats are tried again.
	Reprobe time.Duration
	// Tenants is how requests say whose data they carry; nil where nobody's data is told apart.
	Tenants   Tenants
	UserAgent string
	Retry     Retry
	Breaker   Breaker
	Rate      Rate
}

// Tenants puts tenants into requests.
type Tenants interface {
	// SetHeaders says in the headers of a request whose data it carries. An error says that no request can.
	SetHeaders(h http.Header, tenant string) error
	// Name is a tenant for people.
	Name(tenant string) string
}

// Telemetry is told of what happens. Its methods are called from many goroutines and must not block.
type Telemetry interface {
	// Requested tells of an answer, code 0 being none, and what was said unless it was a success.
	Requested(code int, said string, wireBytes int, took time.Duration)
	Retried(reason string)
	// Paced tells of a request that waits for the rate limit.
	Paced()
	Delivered(h block.Header, l Loss)
	Dropped(h block.Header, reason string)
	// Down says that the destination takes no data, with the reason, or that it does again, with nil.
	Down(reason error)
}

// Loss counts the items of a delivered block that were not written, for the reason named.
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

	hurried context.Context // ended by hurry
	hurry   context.CancelFunc

	all    limits // of all requests
	passed largest
	served tenants

	mu         sync.Mutex // guards what the log was told last
	down       bool
	announced  int
	lastDrop   dropKey
	lastDropAt time.Time
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

// Format is the best format worth encoding in now.
func (d *Destination) Format() block.Format { return d.cfg.Formats[d.formats.wanted()] }

// Fallback is how far below the best format the destination is, and that format.
func (d *Destination) Fallback() (int, block.Format) {
	i := d.formats.current()
	return i, d.cfg.Formats[i]
}

// Largest is the size that a request should stay within, before compression and on the wire; 0 while none was too large.
func (d *Destination) Largest() (raw, wire int) { return d.all.sizes.limits() }

// BreakerOpen tells whether all but a probe are kept from the destination.
func (d *Destination) BreakerOpen() bool { return d.gate.isOpen() }

// Answers tells whether the destination took the last request, and asked for no pause.
func (d *Destination) Answers() bool { return d.gate.passes() }

// ThrottledUntil is when a pause ends that the destination asked for; zero unless it holds.
func (d *Destination) ThrottledUntil() time.Time { return d.gate.askedFor() }

// Hurry ends all pauses, and those to come: what would have to wait is as undelivered as before. Requests under way go on.
func (d *Destination) Hurry() { d.hurry() }

// Close closes the connections that are idle.
func (d *Destination) Close() {
	d.hurry()
	d.cfg.Client.CloseIdleConnections()
}

// Send returns nil when the destination is done with all blocks, delivered or dropped, and an error when ctx ends first, or Hurry is called:
// they are then as undelivered as before, except for parts of what was sent in pieces. A *LaterError says that the destination
// would not serve the tenant of the blocks, and how many it is done with. Several blocks, which must be of one
// tenant and version, travel together as far as that is not too much for the destination; what is not delivered like that
// has its fate sealed block by block. Of those it is done with, lost says which were not delivered; it is nil where all were.
func (d *Destination) Send(ctx context.Context, blocks []block.Block, deadlines []time.Time) (lost []error, err error) {
	all := len(blocks)
	pauses, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(d.hurried, end)()
	rest, lost, err := d.sendAll(ends{requests: ctx, pauses: pauses}, blocks, deadlines)
	if later := (*LaterError)(nil); errors.As(err, &later) {
		later.Done = all - rest
	}
	return lost, err
}

// ends are what ends the work on some blocks.
type ends struct{ requests, pauses context.Context }

// sendAll is Send. It returns how many blocks it did not come to the end of.
func (d *Destination) sendAll(end ends, blocks []block.Block, deadlines []time.Time) (rest int, lost []error, err error) {
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
				if e, err = d.deliver(end, whole, started, deadlines[0], true); err != nil {
					return len(blocks), lost, err
				}
			}
		}
		switch e.fate {
		case late:
			continue // fewer of them
		case apart:
			for i, b := range blocks[:n] {
				why, err := d.sendOne(end, b, started, deadlines[i])
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
		blocks, deadlines = blocks[n:], deadlines[n:]
	}
	return 0, lost, nil
}

// together is how many of the blocks, from the first on, may travel together.
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

// sendOne sends a block, in pieces where it is too large. What of it could not be delivered is lost.
func (d *Destination) sendOne(end ends, b block.Block, started, deadline time.Time) (lost, err error) {
	parts, begun := []block.Block{b}, false
	for len(parts) > 0 {
		part := parts[0]
		if limit, _ := d.largest(part); limit > 0 && part.RawSize > limit {
			if first, second, err := block.Split(part); err == nil {
				parts = append([]block.Block{first, second}, parts[1:]...)
				continue
			}
		}
		e, err := d.deliver(end, part, started, deadline, false)
		if later := (*LaterError)(nil); begun && errors.As(err, &later) {
			// What has been sent of the block would be sent again, should it go back: the rest waits here.
			if err = sleep(end.pauses, later.Wait); err == nil {
				continue
			}
		}
		if err != nil {
			return lost, err
		}
		if e.fate == sealed {
			begun, lost = true, cmp.Or(lost, e.lost)
			parts = parts[1:]
			continue
		}
		first, second, err := block.Split(part)
		if err != nil || part.RawSize < minSplit {
			lost = d.drop(part.Header, ReasonTooLarge, answer{code: http.StatusRequestEntityTooLarge, err: err})
			parts = parts[1:]
			continue
		}
		parts = append([]block.Block{first, second}, parts[1:]...)
	}
	return lost, nil
}

// fate is what became of a request.
type fate uint8

const (
	sealed fate = iota // delivered or dropped
	apart              // it has to be sent in pieces
	late               // what was merged takes too long together
)

// ending is the fate of a request and, when it is sealed, why its data is lost, or nil.
type ending struct {
	fate fate
	lost error
}

// doubt is about a format that has delivered before, and in which a block is refused as if its content were bad.
type doubt struct {
	format   int
	refused  answer
	failures int // of requests in the last format
}

// mostFailures are as many failures of a server as are taken for such, where they may mean that it does not know the last format.
const mostFailures = 3

// settles tells whether an answer to the last format leaves no doubt that it was the content: it is refused again, or the server does not know
// that format.
func (t *doubt) settles(v verdict, a answer) bool {
	switch {
	case t == nil:
		return false
	case v == retry && a.mayBeFormat():
		t.failures++
		return t.failures >= mostFailures
	}
	return v == retrySlowly || v == rejected && !a.wroteSome()
}

// deliver sends one request until its fate is sealed, or it turns out that it has to be sent in pieces. A request that was
// merged has to be whenever all of it would be dropped: not all of its blocks may deserve it.
func (d *Destination) deliver(end ends, b block.Block, started, deadline time.Time, merged bool) (e ending, err error) {
	var tried formatSet // formats that b was turned down in
	var last answer
	var doubted *doubt
	sent := b // b in the format of the last attempt
	attempt, spread := 0, d.cfg.Retry.spread()
	if d.tenanted(b) {
		attempt, started = d.served.attempts(b.Tenant, started)
	}
	for {
		if wait := d.pace.reserve(len(sent.Body()), sent.Samples+sent.Histograms); wait > 0 {
			d.telemetry.Paced()
			if err := sleep(end.pauses, wait); err != nil {
				return ending{}, err
			}
		}
		if err := d.gate.enter(end.pauses); err != nil {
			return ending{}, err
		}
		format, ok := d.formats.choose(b.Version, tried)
		reason := d.expired(started, deadline, attempt)
		switch {
		case reason != "":
		case !ok && doubted != nil:
			reason, last = ReasonRejected, doubted.refused
		case !ok && last.code/100 == 2:
			reason = ReasonUnwritten
		case !ok:
			reason = ReasonRejected
		default:
			sent, err = rewrite(b, sent, d.cfg.Formats[format])
			switch isEmpty := err != nil || sent.Samples+sent.Histograms+sent.Metadata == 0; {
			case isEmpty && doubted != nil:
				reason, last = ReasonRejected, doubted.refused
			case isEmpty:
				reason, last = ReasonFormat, answer{err: err}
			}
		}
		if reason != "" {
			d.gate.leave()
			if merged {
				return ending{fate: apart}, nil
			}
			d.served.well(b.Tenant)
			return ending{sealed, d.drop(b.Header, reason, last)}, nil
		}

		began := time.Now()
		a := d.exchange(end.requests, sent, attempt)
		if a.unnamed {
			d.gate.leave()
			return ending{sealed, d.drop(b.Header, ReasonTenant, a)}, nil
		}
		if end.requests.Err() != nil && a.code == 0 {
			d.gate.leave()
			return ending{}, fmt.Errorf("cannot finish the request: %w", context.Cause(end.requests))
		}
		v := d.judge(a, format)
		if a.mayBeFormat() {
			d.formats.failed(format)
		}
		if doubted.settles(v, a) {
			v = unsupported
		}
		if last = a; d.tenanted(b) {
			switch refused := v == retry || v == retrySlowly; {
			case !refused:
				d.served.well(b.Tenant)
			case doubted != nil && a.mayBeFormat(): // a few times more at once
			case merged && a.late() && a.code != 0: // it may be the request that is too large
			default:
				if merged && a.late() {
					d.limitOn(b).learnTime(b.Samples+b.Histograms, true)
				}
				return ending{}, d.later(b.Tenant, v, a, began)
			}
		}
		d.report(v, a)
		switch v {
		case delivered:
			d.formats.accepted(format)
			d.fits(b, sent)
			if doubted == nil {
				d.announceFormat(format)
			} else {
				d.formats.overrule(doubted.format, format)
			}
			d.telemetry.Delivered(sent.Header, lossOf(b, sent, a))
			if merged {
				d.limitOn(b).learnTime(b.Samples+b.Histograms, false)
			}
			return ending{fate: sealed}, nil
		case oversized:
			d.tooLarge(b, sent)
			return ending{fate: apart}, nil
		case unsupported: // with another format: no failure, so no pause and no attempt counted
			tried.add(format)
			d.formats.turnedDown(format, a.code/100 == 2 || a.code == http.StatusUnsupportedMediaType)
		case doubtful:
			tried, doubted = d.formats.allButLast(), &doubt{format: format, refused: a}
		case rejected:
			if merged && !a.wroteSome() { // what was written would be refused as old when it came again
				return ending{fate: apart}, nil
			}
			return ending{sealed, d.reject(b, sent, a)}, nil
		case retry, retrySlowly:
			d.telemetry.Retried(a.reason())
			if err := d.cfg.Retry.wait(end.pauses, attempt, v == retrySlowly, spread, a.retryAfter); err != nil {
				return ending{}, err
			}
			if merged && a.late() { // it would be late for ever
				d.limitOn(b).learnTime(b.Samples+b.Histograms, true)
				return ending{fate: late}, nil
			}
			attempt++
		}
	}
}

// reject drops a block that the destination refused, but for what it says it wrote of it.
func (d *Destination) reject(b, sent block.Block, a answer) error {
	if !a.wroteSome() {
		return d.drop(b.Header, ReasonRejected, a)
	}
	loss := lossOf(b, sent, a)
	loss.Reason = ReasonRejected
	d.telemetry.Delivered(sent.Header, loss)
	d.complain(b.Header, ReasonRejected, a)
	return &LostError{Reason: ReasonRejected, answer: a}
}

// rewrite puts b in format f; have is an earlier result for b, which may already be it.
func rewrite(b, have block.Block, f block.Format) (block.Block, error) {
	if have.Version == f.Version && have.Compression == f.Compression {
		return have, nil
	}
	return block.Transcode(b, f)
}

// expired names the reason to give a block up before another attempt.
func (d *Destination) expired(started, deadline time.Time, attempt int) string {
	now := time.Now()
	if !deadline.IsZero() && !now.Before(deadline) {
		return ReasonAge
	}
	if limit := d.cfg.Retry.MaxElapsedTime; limit > 0 && attempt > 0 && now.Sub(started) >= limit {
		return ReasonElapsed
	}
	return ""
}

// lossOf is what of b was not written although it was delivered, as far as the destination says.
func lossOf(b, sent block.Block, a answer) Loss {
	if a.hasWritten {
		return Loss{
			Reason:     ReasonPartial,
			Samples:    max(0, b.Samples-a.written.Samples),
			Histograms: max(0, b.Histograms-a.written.Histograms),
			Exemplars:  max(0, b.Exemplars-a.written.Exemplars),
		}
	}
	return Loss{
		Reason:     ReasonFormat,
		Samples:    max(0, b.Samples-sent.Samples),
		Histograms: max(0, b.Histograms-sent.Histograms),
		Exemplars:  max(0, b.Exemplars-sent.Exemplars),
	}
}
