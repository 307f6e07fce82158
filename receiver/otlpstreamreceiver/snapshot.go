// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"cmp"
	"net"
	"slices"
	"time"
)

// Snapshot is the state of the receiver, for display. Counters begin with the receiver or the stream.
type Snapshot struct {
	// GRPC and HTTP are the addresses it listens on, empty if it does not.
	GRPC string `json:"grpc"`
	HTTP string `json:"http"`
	// Stopping reports that it is being shut down.
	Stopping bool `json:"stopping"`

	Streams          int `json:"streams"` // open
	MaxStreams       int `json:"max_streams"`
	InFlightBytes    int `json:"in_flight_bytes"` // accepted and not answered
	MaxInFlightBytes int `json:"max_in_flight_bytes"`

	Requests []RequestCount `json:"requests"`
	Resent   int64          `json:"resent_requests"`

	// Clients are the hosts with open streams, by address.
	Clients []Client `json:"clients"`
}

// RequestCount is the number of requests by transport and result, as in the receiver's metrics.
type RequestCount struct {
	Transport string `json:"transport"`
	Result    string `json:"result"`
	Requests  int64  `json:"requests"`
}

// Client is a host with streams open.
type Client struct {
	Host    string   `json:"host"`
	Total   Answers  `json:"total"`
	Streams []Stream `json:"streams"` // oldest first
}

// Stream is an open stream.
type Stream struct {
	Answers

	Address   string    `json:"address"` // of the client, with its port
	Transport string    `json:"transport"`
	Signal    string    `json:"signal"`
	Caps      string    `json:"caps"` // as announced by the client
	Since     time.Time `json:"since"`
}

// Answers counts requests on streams by result.
type Answers struct {
	InFlight int   `json:"in_flight"` // read and not answered
	Acked    int64 `json:"acked"`
	Failed   int64 `json:"failed"`    // permanently
	Retry    int64 `json:"retryable"` // temporarily
	Refused  int64 `json:"refused"`   // for lack of room
	Resent   int64 `json:"resent"`
}

func (a *Answers) add(b Answers) {
	a.InFlight += b.InFlight
	a.Acked += b.Acked
	a.Failed += b.Failed
	a.Retry += b.Retry
	a.Refused += b.Refused
	a.Resent += b.Resent
}

// Snapshot returns the state of the receiver, once it has started.
func (r *otlpReceiver) Snapshot() Snapshot {
	s := Snapshot{
		GRPC: r.grpcAddr, HTTP: r.httpAddr,
		MaxStreams:    r.cfg.Streams.Max,
		InFlightBytes: r.pipelines.admission.InFlight(), MaxInFlightBytes: r.cfg.InFlight.Bytes,
	}
	for _, t := range transports {
		s.Resent += r.counts.resent[t].n.Load()
		for _, result := range results {
			if n := r.counts.outcomes[outcome{t, result}].n.Load(); n > 0 {
				s.Requests = append(s.Requests, RequestCount{Transport: string(t), Result: result, Requests: n})
			}
		}
	}
	r.places.mu.Lock()
	s.Stopping = r.places.stopped
	s.Streams = len(r.places.sessions)
	clients := map[string]*Client{}
	for session := range r.places.sessions {
		stream := session.snapshot()
		host := hostOf(stream.Address)
		c := clients[host]
		if c == nil {
			c = &Client{Host: host}
			clients[host] = c
		}
		c.Streams = append(c.Streams, stream)
		c.Total.add(stream.Answers)
	}
	r.places.mu.Unlock()
	for _, c := range clients {
		slices.SortFunc(c.Streams, func(a, b Stream) int { return a.Since.Compare(b.Since) })
		s.Clients = append(s.Clients, *c)
	}
	slices.SortFunc(s.Clients, func(a, b Client) int { return cmp.Compare(a.Host, b.Host) })
	return s
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

func (s *session) snapshot() Stream {
	stream := Stream{
		Transport: string(s.transport), Signal: s.signal.String(), Caps: s.caps.String(), Since: s.since,
		Answers: Answers{
			InFlight: len(s.slots), Resent: s.resent.Load(),
			Acked: s.answered[0].Load(), Failed: s.answered[1].Load(), Retry: s.answered[2].Load(), Refused: s.answered[3].Load(),
		},
	}
	if s.client != nil {
		stream.Address = s.client.String()
	}
	return stream
}
