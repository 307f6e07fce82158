// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"strconv"
	"strings"
)

// Peers learn of each other's extensions only from the headers that open a stream: a stream without these headers has a
// peer that implements the specification and no extensions.
const (
	HeaderCaps           = "otlp-stream-caps"
	HeaderSlot           = "otlp-stream-slot"
	HeaderWindowRequests = "otlp-stream-window-requests"
	HeaderWindowBytes    = "otlp-stream-window-bytes"
	HeaderMaxMessage     = "otlp-stream-max-message"
	HeaderWindowSize     = "otlp-stream-window-size"
	HeaderHistory        = "otlp-stream-history"
)

// Caps are optional capabilities.
type Caps uint8

const (
	// CapCoalesce of a client: it understands Response.IDs.
	CapCoalesce Caps = 1 << iota
	// CapDelay of a client: it obeys Response.Delay, so an overloaded server need not end the stream to slow it down.
	CapDelay
	// CapDrain of a client: it obeys Response.Drain, so a server can end a stream without any request being resent.
	CapDrain
	// CapWindow of a server: it unpacks packed payloads.
	CapWindow
	// CapWorking of a client: it knows that Response.Working is not an answer, and keeps waiting.
	CapWorking
	// CapOrdered of a client: it wants requests about the same resource handed on in the order of the stream. Of a
	// server: it does so.
	CapOrdered
	// CapDelta of a server: it accepts deltas in packed payloads. Of a client: it observes Limits.Keep.
	CapDelta
)

// AllCaps are the capabilities that every peer of this implementation has. Servers also have CapOrdered, as do clients
// that are asked for order.
const AllCaps = CapCoalesce | CapDelay | CapDrain | CapWindow | CapWorking | CapDelta

var capNames = []struct {
	bit  Caps
	name string
}{
	{CapCoalesce, "coalesce"},
	{CapDelay, "delay"},
	{CapDrain, "drain"},
	{CapWindow, "window"},
	{CapWorking, "working"},
	{CapOrdered, "ordered"},
	{CapDelta, "delta"},
}

func (c Caps) String() string {
	var names []string
	for _, known := range capNames {
		if c&known.bit != 0 {
			names = append(names, known.name)
		}
	}
	return strings.Join(names, ",")
}

// ParseCaps reads the value of HeaderCaps. Unknown names are skipped.
func ParseCaps(value string) Caps {
	var caps Caps
	for name := range strings.SplitSeq(value, ",") {
		for _, known := range capNames {
			if strings.TrimSpace(name) == known.name {
				caps |= known.bit
			}
		}
	}
	return caps
}

// Limits are what a server grants each stream: they bound what its client may have sent and not seen acknowledged. 0
// means no limit.
type Limits struct {
	Requests int
	Bytes    int
	// MaxMessage is the size of the largest message the server takes.
	MaxMessage int
	// Keep is what either end keeps of packed payloads.
	Keep Keep
}

// Headers lists the limits as names and values, in turn.
func (l Limits) Headers() []string {
	headers := []string{
		HeaderWindowRequests, strconv.Itoa(l.Requests),
		HeaderWindowBytes, strconv.Itoa(l.Bytes),
		HeaderMaxMessage, strconv.Itoa(l.MaxMessage),
	}
	if l.Keep.Window > 0 {
		headers = append(headers, HeaderWindowSize, strconv.Itoa(l.Keep.Window), HeaderHistory, strconv.Itoa(l.Keep.History))
	}
	return headers
}

// ParseLimits reads the headers back. A limit that is absent or malformed is no limit.
func ParseLimits(get func(name string) string) Limits {
	number := func(name string) int {
		n, err := strconv.Atoi(get(name))
		if err != nil || n < 0 {
			return 0
		}
		return n
	}
	return Limits{
		Requests:   number(HeaderWindowRequests),
		Bytes:      number(HeaderWindowBytes),
		MaxMessage: number(HeaderMaxMessage),
		Keep:       Keep{Window: number(HeaderWindowSize), History: number(HeaderHistory)},
	}
}

// ParseGreeting reads everything that a server announces when a stream opens.
func ParseGreeting(get func(name string) string) (Limits, Caps) {
	return ParseLimits(get), ParseCaps(get(HeaderCaps))
}

// Credit is what is left of Limits. The zero value has no limits. It is not safe for concurrent use.
type Credit struct {
	Limits

	requests, bytes int
}

// Fits reports whether a request of the given number of bytes may be sent now. A request alone always may: one larger
// than the window would never be sent otherwise.
func (c *Credit) Fits(bytes int) bool {
	if c.requests == 0 {
		return true
	}
	return (c.Requests == 0 || c.requests < c.Requests) &&
		(c.Bytes == 0 || c.bytes+bytes <= c.Bytes)
}

// Spent reports whether any request is unanswered.
func (c *Credit) Spent() bool { return c.requests > 0 }

// Spend records that a request was sent, Return that it was answered.
func (c *Credit) Spend(bytes int) { c.requests++; c.bytes += bytes }

// Return gives back what Spend took.
func (c *Credit) Return(bytes int) { c.requests--; c.bytes -= bytes }
