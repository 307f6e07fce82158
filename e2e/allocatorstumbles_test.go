// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/cluster"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// The ways a stumbler changes the allocator's responses.
const (
	asTheyAre int32 = iota
	late            // after the next poll is due
	cutOff          // the body ends in the middle
	lacking         // a collector's own list lacks half of the targets
)

// A stumbler is a proxy between an allocator and its collectors.
type stumbler struct {
	listener *serve.Listener
	mood     atomic.Int32
}

func newStumbler(t *testing.T, allocator string) *stumbler {
	t.Helper()
	s := &stumbler{listener: serve.Listen(t, "127.0.0.1:0")}
	serve.HTTP(t, s.listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, err := http.NewRequestWithContext(r.Context(), r.Method, allocator+r.URL.RequestURI(), http.NoBody)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		answer, err := http.DefaultClient.Do(question)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		mood := s.mood.Load()
		if mood == late && !wait.Pause(r.Context(), 3*time.Second) {
			panic(http.ErrAbortHandler)
		}
		if mood == lacking && r.URL.Query().Has("collector_id") {
			var groups []json.RawMessage
			if json.Unmarshal(body, &groups) == nil {
				body, _ = json.Marshal(slices.DeleteFunc(groups, func(group json.RawMessage) bool { return isLacking(string(group)) }))
			}
		}
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(answer.StatusCode)
		if mood == cutOff {
			_, _ = w.Write(body[:len(body)/2])
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(body)
	}))
	return s
}

var evenTarget = regexp.MustCompile(`127\.0\.1\.\d*[02468]:`)

// isLacking reports whether a target is missing from the responses of the mood lacking.
func isLacking(target string) bool { return evenTarget.MatchString(target) }

// The allocator is slow, its responses are cut off, or a collector's list lacks targets that the allocator assigns to
// it, as can happen between two looks at the cluster. Then two members die at once. Scraping goes on as far as
// possible, and no target that is there gets a staleness marker.
func TestAllocatorThatStumbles(t *testing.T) {
	t.Parallel()
	k := cluster.Start(t)
	names := []string{"collector-0", "collector-1", "collector-2"}
	for _, name := range names {
		k.Create(t, memberPod(name))
	}
	a := startAllocator(t, k, allocatedFleet(t))
	between := newStumbler(t, a.plain)
	var servers []*rwserver.Server
	var members []*collector
	for _, name := range names {
		server := rwserver.New(t, rwserver.Options{})
		servers, members = append(servers, server), append(members, startMember(t, name, server, "http://"+between.listener.Addr().String(), "{insecure: true}", time.Second))
	}
	scraped := func(since time.Time, among int) {
		t.Helper()
		waitScraped(t, servers, since, among)
	}
	var died time.Time
	// gaps checks all scrapes after since. It returns the longest gap of targets that the responses lacked, and of the
	// others.
	gaps := func(since time.Time) (lacked, others time.Duration) {
		t.Helper()
		twice := 0
		for instance, list := range glimpses(servers) {
			for i, g := range list {
				assert.False(t, g.Stale(), "%s is there, and collector %d calls it stale", instance, g.by)
				if i == 0 || g.T < since.UnixMilli() {
					continue
				}
				gap := time.Duration(g.T-list[i-1].T) * time.Millisecond
				if gap < allocatedInterval/2 && !isOrphan(died, g) {
					twice++
				}
				if isLacking(instance) {
					lacked = max(lacked, gap)
				} else {
					others = max(others, gap)
				}
			}
		}
		assert.LessOrEqual(t, twice, 2, "scrapes by two")
		return lacked, others
	}
	scraped(time.Now(), len(names))

	since := time.Now()
	between.mood.Store(late)
	scraped(since, len(names))
	between.mood.Store(cutOff)
	scraped(time.Now(), len(names))
	lacked, others := gaps(since)
	t.Logf("answers that are late and cut off: the longest gap was %s", max(lacked, others))
	assert.Less(t, max(lacked, others), 3*allocatedInterval/2, "nothing is left out")

	since = time.Now()
	between.mood.Store(lacking)
	wait.Pause(t.Context(), 3*allocatedInterval+allocatedInterval/2) // longer than it takes until a staleness marker
	between.mood.Store(asTheyAre)
	scraped(time.Now(), len(names))
	lacked, others = gaps(since)
	t.Logf("answers that lack half of the targets for %s: the longest gap of those was %s, of others %s", 7*allocatedInterval/2, lacked, others)
	assert.Greater(t, lacked, 2*allocatedInterval, "or the answer did not lack them")
	assert.Less(t, lacked, 6*allocatedInterval)
	assert.Less(t, others, 3*allocatedInterval/2, "nothing of the others is left out")

	since, died = time.Now(), time.Now()
	for i, name := range names[1:] {
		members[i+1].Kill()
		require.NoError(t, k.Remove(cluster.Objects(t, memberPod(name))[0]))
	}
	scraped(since, 1)
	for i, name := range names[1:] {
		k.Create(t, memberPod(name))
		members[i+1].Restart()
		members[i+1].ready()
	}
	back := time.Now()
	scraped(back, len(names))
	after := time.Now().Add(3 * allocatedInterval) // when a collector that handed a target over would have sent a staleness marker
	scraped(after, len(names))
	lacked, others = gaps(since)
	t.Logf("two of three members that die at once and come back: the longest gap was %s", max(lacked, others))
	assert.Less(t, max(lacked, others), allocatedInterval+orphaned)
	for _, m := range members {
		assert.Zero(t, m.Stop(syscall.SIGTERM, drainTime))
	}
}
