// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// inspection returns what the receiver shows on request.
func (r *remoteWriteReceiver) inspection() inspect.Source {
	return inspect.Source{
		Kind: component.KindReceiver, ID: r.settings.ID, Signal: "metrics",
		Flow: r.tally.flow, Intake: r.intake, Tap: &r.tap,
	}
}

// tally counts requests since the start. It takes a lock for a moment, which is little compared to the request.
type tally struct {
	mu       sync.Mutex
	sums     inspect.Flow
	requests map[outcome]int64
	last     inspect.Fault
}

// outcome is the attributes by which requests are counted. There are few: versions and our status codes.
type outcome struct {
	version promwrite.Version
	code    int
}

// reasonPipeline is the reason of points that the pipeline refuses permanently.
const reasonPipeline = "pipeline"

// maxFault limits the text of a fault.
const maxFault = 1000

// count adds one answered request.
func (t *tally) count(req *http.Request, version promwrite.Version, answer *response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.requests == nil {
		t.requests = map[outcome]int64{}
		t.sums.Dropped, t.sums.Failed = map[string]int64{}, map[string]int64{}
	}
	t.requests[outcome{version, answer.code}]++
	t.sums.WireBytes += int64(answer.wire)
	t.sums.RawBytes += int64(answer.plain)
	t.sums.In += int64(answer.points)
	for why, n := range answer.rejects.counts {
		if n > 0 {
			t.sums.Dropped[reasonNames[why]] += int64(n)
			if reason(why) != reasonOrphanExemplar { // not a point
				t.sums.In += int64(n)
			}
		}
	}
	if answer.points > 0 {
		switch {
		case answer.taken:
			t.sums.Out += int64(answer.points)
		case answer.code == http.StatusBadRequest:
			t.sums.Dropped[reasonPipeline] += int64(answer.points)
		default:
			t.sums.Refused++ // and sent again
		}
	}
	if answer.code == http.StatusNoContent {
		return
	}
	t.sums.Failed[strconv.Itoa(answer.code)]++
	from := req.RemoteAddr
	if host, _, err := net.SplitHostPort(from); err == nil {
		from = host
	}
	t.last.At = time.Now()
	t.last.Text = fmt.Sprintf("answered %d to %s: %.*s", answer.code, from, maxFault, answer.err)
}

func (t *tally) flow() inspect.Flow {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.sums
	out.Dropped, out.Failed = maps.Clone(out.Dropped), maps.Clone(out.Failed)
	return out
}

func (r *remoteWriteReceiver) intake() inspect.Intake {
	t := &r.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	out := inspect.Intake{Addresses: []string{r.address.String()}, Requests: map[string]int64{}, Last: t.last}
	for o, n := range t.requests {
		out.Requests[outcomeName(o)] += n
	}
	return out
}

// outcomeName is the version for display, and the answer.
func outcomeName(o outcome) string {
	code := strconv.Itoa(o.code)
	switch o.version {
	case promwrite.V1:
		return "1.0 " + code
	case promwrite.V2:
		return "2.0 " + code
	}
	return "unknown " + code
}
