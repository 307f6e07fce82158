// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"
)

// What receivers say about their memory, in the log and by a metric, is compared with what is expected, and with what
// they do.

// isAgain compares what the receiver does with what it says.
func (run *randomRun) isAgain(t *testing.T, w *witness, way way, i int) {
	t.Helper()
	for _, twin := range twins {
		e := run.expects(i, twin, true)
		w.mu.Lock()
		again := w.again[fmt.Sprint(twin, i)]
		w.mu.Unlock()
		if !e.used {
			require.Zero(t, again, "seed %d: memory of %s%d is used again, and it says that it is not: %v", run.seed, twin, i, way)
		} else if e.mayBeAgain {
			require.Positive(t, again, "seed %d: memory of %s%d is not used again, and it says that it is: %v", run.seed, twin, i, way)
		}
	}
}

// says compares what receivers log about their memory, for the nth time, with what is expected.
func (run *randomRun) says(t *testing.T, log *observer.ObservedLogs, times int, changed bool) {
	t.Helper()
	for i := range run.ways {
		w := run.wayOf(i, changed)
		for _, twin := range twins {
			for _, id := range run.receiverIDs(i, twin) {
				said := log.Filter(func(e observer.LoggedEntry) bool {
					return (e.Message == used || e.Message == unused) && e.ContextMap()["otelcol.component.id"] == id
				}).All()
				require.Len(t, said, times, "%s: %v", id, w)
				run.expects(i, twin, changed).matches(t, said[times-1], fmt.Sprintf("%s: %v", id, w))
			}
		}
	}
}

// expects returns what is expected of one of the twins.
func (run *randomRun) expects(i int, twin string, changed bool) expectation {
	w, name := run.wayOf(i, changed), fmt.Sprint(twin, i)
	if twin == "slow" && w.slow == "never" && !run.relaying {
		return expectation{what: "`reuse`", why: "is never"}
	}
	if run.pooling {
		return expectation{what: "gate pdata.useProtoPooling", why: "has the Collector free metrics as soon as they are consumed"}
	}
	if twin == "slow" {
		w.pieces = append([]piece{{id: "passing/slow", is: silence}}, w.pieces...)
	}
	e := run.poisonedRelay(i, w.expect("metrics/"+name, "forward/"+name, !run.relaying))
	if !run.relaying && (run.shows[i].kind == "large" || run.shows[i].kind == "medium") && slices.ContainsFunc(w.pieces, func(p piece) bool { return p.is == removes }) {
		e.mayBeAgain = false // only trees are
	}
	return e
}

func (e expectation) matches(t *testing.T, said observer.LoggedEntry, of string) {
	t.Helper()
	m := said.ContextMap()
	if !e.used {
		require.Equal(t, unused, said.Message, of)
		require.Equal(t, e.what, m["because_of"], of)
		require.Equal(t, e.why, m["which"], of)
		return
	}
	require.Equal(t, used, said.Message, "%s: %v", of, m)
	if _, scrapes := m["attributes_are_written_when_read"]; scrapes {
		require.Equal(t, e.restored, m["restored_first"], of)
		require.Equal(t, e.unread, m["attributes_are_written_when_read"], of)
		require.Equal(t, e.later, m["comes_back_from_batches"], of)
	}
	if defers, relays := m["points_are_written_when_read"]; relays {
		require.Equal(t, e.unread, defers, of)
	}
}

var reuseMetric = regexp.MustCompile(`^otelcol_receiver_(fastprometheus|remotewrite|otlpstream)_reuse\{`)

// measures compares the metric with what is expected.
func (run *randomRun) measures(t *testing.T, changed bool) {
	t.Helper()
	if run.level == "none" {
		return
	}
	resp, err := http.Get("http://" + run.metrics + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	for i := range run.ways {
		for _, twin := range twins {
			id, want := run.receiverIDs(i, twin)[0], 0
			if run.expects(i, twin, changed).used {
				want = 1
			}
			found := false
			for line := range strings.Lines(string(text)) {
				if reuseMetric.MatchString(line) && strings.Contains(line, fmt.Sprintf("receiver=%q", id)) {
					found = true
					require.True(t, strings.HasSuffix(strings.TrimSpace(line), fmt.Sprint("} ", want)), "%s is to be %d", line, want)
				}
			}
			require.True(t, found, "no metric of %s", id)
		}
	}
}
