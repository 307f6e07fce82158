// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/admission"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/arrivals"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/order"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/seen"
)

// conn is a stream of a transport. One goroutine receives, another sends.
type conn interface {
	// Recv reads the next request. It calls fresh when there is something to read, so that a waiting stream takes no
	// memory for a request. io.EOF is the client's half-close. A request that cannot be parsed gives an errMalformed,
	// after which the stream may continue.
	Recv(fresh func() *otlpstream.Request) (*otlpstream.Request, error)
	Send(response *otlpstream.Response) error
}

// errMalformed is wrapped by the error of a request that cannot be parsed. The request's ID is set if it was read
// before the error.
var errMalformed = errors.New("malformed request")

// session is one stream. Three kinds of goroutines work for it: receive reads requests, take handles one request each,
// and serve, which is the transport's own goroutine, sends everything.
type session struct {
	streamState

	r         *otlpReceiver
	conn      conn
	signal    otlpstream.Signal
	caps      otlpstream.Caps
	transport transport
	obs       *receiverhelper.ObsReport
	parented  *receiverhelper.ObsReport // of requests with a parent span

	// slots holds a token for each request that was read but whose answer is not sent.
	slots   chan struct{}
	answers outbox

	// quit makes receive leave further requests unread: the client will send them again.
	quit     chan struct{}
	received chan struct{} // closed when receive has returned; err is set before
	err      error
	full     chan struct{} // closed when the stream has reached its maximum of requests

	// late fires when an answer cannot be sent because the client does not read; then stuck is closed.
	late  *time.Timer
	stuck chan struct{}
	cut   func() // nil if the transport ends sending in another way
	// arrival counts what is read but not admitted yet, together with that of other streams on the connection.
	arrival *arrivals.Arrival
	large   int // what it counts for this stream

	// work is what was accepted but not answered.
	work inWork

	// seen records what the client has sent on this and other streams; nil if that is not recorded.
	seen *seen.Slot

	// order is used by receive only; nil if requests may overtake each other.
	order *order.Order

	// unpacker is used by receive only, because packed payloads must be unpacked in the order in which they come. keep
	// limits its memory.
	unpacker   *otlpstream.Unpacker
	keep       otlpstream.Keep
	maxMessage int
}

// streamState is the part of a stream that others use: those that show it, and those that need its place.
type streamState struct {
	since    time.Time
	client   net.Addr
	host     string       // of the client
	active   atomic.Int64 // when it last accepted or answered a request
	answered [len(results)]atomic.Int64
	resent   atomic.Int64

	// retire is closed when another stream gets its place, and retired reports that; guarded by the lock of the places.
	retire  chan struct{}
	retired bool
}

// Reasons for the end of streams, as counted.
const (
	endBroken   = "broken"
	endClient   = "client"
	endIdle     = "idle"
	endLimit    = "limit"
	endOverload = "overload"
	endShutdown = "shutdown"
	endUnread   = "unread"
)

type answer struct {
	id     uint64
	status *status.Status
	// refused reports that there was no room for the request. rejected is what the pipeline rejected of it.
	refused  bool
	rejected part
}

func (r *otlpReceiver) newSession(c conn, signal otlpstream.Signal, caps otlpstream.Caps, t transport, limits otlpstream.Limits) *session {
	s := &session{
		r: r, conn: c, signal: signal, caps: caps, transport: t, obs: r.counts.obs[t], parented: r.counts.parented[t],
		slots:       make(chan struct{}, r.cfg.InFlight.RequestsPerStream),
		answers:     newOutbox(),
		quit:        make(chan struct{}),
		received:    make(chan struct{}),
		full:        make(chan struct{}),
		streamState: streamState{retire: make(chan struct{})},
		stuck:       make(chan struct{}),
		unpacker:    limits.Keep.NewUnpacker(limits.MaxMessage),
		keep:        limits.Keep,

		maxMessage: limits.MaxMessage,
	}
	if caps&otlpstream.CapOrdered != 0 {
		s.order = order.New()
	}
	s.late = time.AfterFunc(time.Hour, sync.OnceFunc(s.unread))
	s.late.Stop()
	return s
}

// run serves a stream until it ends, and returns the status to end it with, nil if the client ended it.
func (s *session) run(ctx context.Context) *status.Status {
	s.r.counts.opened(ctx, s.transport)
	s.since, s.client = time.Now(), client.FromContext(ctx).Addr
	s.host = hostOfClient(s.client)
	s.active.Store(moment(s.since))
	s.r.places.list(s)
	end, reason := s.serve(ctx)
	s.r.places.unlist(s)
	s.r.clients.Leave(s.seen)
	select {
	case <-s.stuck:
		reason = endUnread
	default:
	}
	s.r.counts.closed(ctx, s.transport, reason)
	return end
}

func (s *session) serve(ctx context.Context) (end *status.Status, reason string) {
	// Accepted requests are completed even if the stream breaks: stopping would only cause duplicates.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(s.r.hardStop, cancel)()
	s.r.places.streams.Go(func() { s.receive(ctx) })

	// Streams that were opened together must not end together.
	jitter := 0.95 + rand.Float64()/10 //nolint:gosec // it is no secret
	age := newTimer(time.Duration(float64(s.r.cfg.Streams.MaxAge) * jitter))
	defer age.Stop()
	grace := newTimer(0)
	defer func() { grace.Stop() }()
	notices := s.notices()
	defer notices.Stop()
	stopping, full, retire := s.r.places.stopping, s.full, s.retire
	reason = endClient

	// drain lets the client end the stream, if it is able to: then nothing must be sent twice.
	drain := func(why string) (over bool) {
		stopping, full, retire = nil, nil, nil
		reason = why
		age.Stop()
		if s.caps&otlpstream.CapDrain == 0 || s.say(&otlpstream.Response{Drain: true}) != nil {
			return true
		}
		grace = newTimer(s.r.cfg.DrainTimeout)
		return false
	}

	over := false
	for !over {
		select {
		case <-s.answers.some:
			a, ok := s.answers.take()
			if !ok {
				continue // it was sent together with another
			}
			if err := s.send(a); err != nil {
				end, reason, over = status.Convert(err), endBroken, true
			} else if a.refused && s.caps&otlpstream.CapDelay == 0 {
				end, reason, over = a.status, endOverload, true
			}
		case <-s.received:
			if !errors.Is(s.err, io.EOF) {
				end, reason = status.Convert(s.err), endBroken
			}
			over = true
		case <-age.C:
			over = drain(endLimit)
		case <-full:
			over = drain(endLimit)
		case <-retire:
			over = drain(endIdle)
		case <-stopping:
			over = drain(endShutdown)
		case <-notices.C:
			if err := s.noticeWork(); err != nil {
				end, reason, over = status.Convert(err), endBroken, true
			}
		case <-grace.C:
			over = true
		}
	}

	close(s.quit)
	return s.finish(end, reason, notices.C)
}

// finish answers what was received on a stream that ends, and returns the status that the client gets.
func (s *session) finish(end *status.Status, reason string, notices <-chan time.Time) (*status.Status, string) {
	if err := s.answerRest(notices, reason == endBroken); err != nil {
		end, reason = status.Convert(err), endBroken
	}
	if end == nil && !s.clientIsDone() {
		end = otlpstream.Busy("the stream has reached its limit, open another", 0)
		if reason == endShutdown {
			end = status.New(codes.Unavailable, "the server is shutting down")
		}
	}
	return end, reason
}

// answerRest sends the answers to all requests that were read, before the stream ends. If the stream is broken, it only
// waits for them.
func (s *session) answerRest(notices <-chan time.Time, broken bool) error {
	var failed error
	for len(s.slots) > 0 {
		var err error
		select {
		case <-s.answers.some:
			a, ok := s.answers.take()
			switch {
			case !ok: // it was sent together with another
			case broken:
				<-s.slots
			default:
				err = s.send(a)
			}
		case <-notices:
			if !broken {
				err = s.noticeWork()
			}
		}
		if err != nil {
			failed, broken = err, true
		}
	}
	return failed
}

func (s *session) clientIsDone() bool {
	select {
	case <-s.received:
		return errors.Is(s.err, io.EOF)
	default:
		return false
	}
}

// receive reads requests until the client ends, the stream breaks, or quit is closed.
func (s *session) receive(ctx context.Context) {
	defer close(s.received)
	defer s.forget()
	for requests := 0; ; {
		request, err := s.conn.Recv(s.r.request)
		// Packed requests depend on all earlier ones.
		broken := err != nil && (!errors.Is(err, errMalformed) || request.ID == 0 || s.unpacker.Used())
		if err == nil {
			err = s.comes(request)
			broken = err != nil
		}
		if err == nil {
			if fault := s.unpacker.Unpack(request); fault != nil {
				err, broken = fmt.Errorf("%w: %w", errMalformed, fault), true
			}
		}
		if broken {
			s.err = err
			if errors.Is(err, errMalformed) {
				s.malformed(ctx, err)
				s.err = status.Error(codes.InvalidArgument, err.Error())
			}
			return
		}
		// quit first: a request read after it would be accepted and never answered.
		select {
		case <-s.quit:
			s.err = context.Canceled
			return
		default:
		}
		select {
		case <-s.quit:
			s.err = context.Canceled
			return
		case s.slots <- struct{}{}:
		}
		s.arrived()
		if requests++; requests == s.r.cfg.Streams.MaxRequests {
			close(s.full)
		}
		if err == nil {
			if fault := unwrap(s.signal, request); fault != nil {
				err = fmt.Errorf("%w: %w", errMalformed, fault)
			}
		}
		if err == nil && request.Items > 0 && len(request.Data) == 0 {
			// Acknowledging it would lose what the client has elsewhere in its message.
			err = fmt.Errorf("%w: it says that it has %d items, and has none", errMalformed, request.Items)
		}
		if err != nil {
			s.malformed(ctx, err)
			s.reply(answer{id: request.ID, status: status.New(codes.InvalidArgument, err.Error())})
			continue
		}
		s.take(ctx, request)
	}
}

// comes counts the memory of a large request, including its unpacked form, until it is admitted or refused.
func (s *session) comes(request *otlpstream.Request) error {
	size := len(request.Buffer) + int(min(request.Packed, uint64(s.maxMessage)))
	if size <= arrivals.Own {
		return nil
	}
	s.large = size
	if s.arrival.Come(size) != nil {
		return otlpstream.Busy(arrivals.ErrCut.Error(), placeDelay).Err()
	}
	return nil
}

// arrived uncounts the memory of a request.
func (s *session) arrived() {
	if s.large > 0 {
		s.arrival.Done(s.large)
		s.large = 0
	}
}

// unwrap converts the payload of a request to standard OTLP.
func unwrap(signal otlpstream.Signal, request *otlpstream.Request) (err error) {
	request.Data, err = signal.OTLPRequest(request.Data)
	return err
}

// forget frees the state of the stream.
func (s *session) forget() {
	s.arrived()
	s.unpacker.Close()
	s.unpacker = nil
	s.r.memory.Release(s.keep)
}

func (s *session) malformed(ctx context.Context, err error) {
	s.r.pipelines.traffic.fail(ctx, http.StatusBadRequest, 0, err.Error())
}

// take admits or refuses a request.
func (s *session) take(ctx context.Context, request *otlpstream.Request) {
	if request.Attempt > 0 {
		s.r.counts.resend(s.transport)
		s.resent.Add(1)
	}
	ctx, obs := s.traced(ctx, request)
	taken := time.Now()
	s.active.Store(moment(taken))
	held, st := s.r.pipelines.admit(ctx, s.signal, obs, len(request.Data), request.Items)
	if st != nil {
		s.reply(answer{id: request.ID, status: st, refused: true})
		s.r.recycle(request)
		return
	}
	s.work.begin(request.ID, taken)
	turn := s.order.Next(request.Data)
	s.r.places.streams.Go(func() {
		id := request.ID
		turn.Wait()
		st, rejected := s.deliver(ctx, obs, request, held)
		turn.End()
		s.r.recycle(request)
		held.Release()
		s.work.end(id)
		s.reply(answer{id: id, status: st, refused: held.Refused, rejected: rejected})
	})
}

// deliver passes a request on, unless the pipeline has it already.
func (s *session) deliver(ctx context.Context, obs *receiverhelper.ObsReport, request *otlpstream.Request, held *admission.Hold) (*status.Status, part) {
	if s.seen == nil {
		return s.r.pipelines.deliver(ctx, s.signal, obs, formatProto, request, held)
	}
	end := s.seen.Begin(ctx, request.ID)
	if end == nil {
		s.r.counts.duplicate(s.transport)
		return nil, part{}
	}
	taken := false
	defer func() { end(taken) }()
	st, rejected := s.r.pipelines.deliver(ctx, s.signal, obs, formatProto, request, held)
	taken = st == nil
	return st, rejected
}

func (s *session) reply(a answer) { s.answers.put(a) }

// newTimer returns a timer, which never fires if d is 0.
func newTimer(d time.Duration) *time.Timer {
	if d > 0 {
		return time.NewTimer(d)
	}
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
