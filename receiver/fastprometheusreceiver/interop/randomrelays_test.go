// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/handback"
)

// relayed is what a receiver of push requests gets.
type relayed struct {
	sending

	kind string // of randomRelays
}

// randomRelays are receivers, each with placeholders for its name and address, and how to send to them.
var randomRelays = []struct{ name, config, format, path, contentType string }{
	{"rw1", "remotewrite/%[1]s: {endpoint: '%[2]s'}", "1.0", "/api/v1/write", "application/x-protobuf"},
	{"rw2", "remotewrite/%[1]s: {endpoint: '%[2]s'}", "2.0", "/api/v1/write", "application/x-protobuf;proto=io.prometheus.write.v2.Request"},
	{"scopes", "remotewrite/%[1]s: {endpoint: '%[2]s', scopes_from_labels: true}", "1.0", "/api/v1/write", "application/x-protobuf"},
	{"otlp", "otlpstream/from-%[1]s: {protocols: {http: {endpoint: '%[2]s'}}}", "otlp", "/v1/metrics", "application/x-protobuf"},
}

const randomRequests = 60

var randomSenders = []string{"a", "b"}

// drawRelays returns relays that follow from a seed. With several senders, the order of series is not defined, so which
// of them fit within a limit is not either.
func drawRelays(seed uint64, roads int) *randomRun {
	r := rand.New(rand.NewPCG(seed, 21))
	run := &randomRun{seed: seed, listens: map[string]string{}, taken: map[string]bool{}, relaying: true, partial: true, pooling: r.IntN(5) == 0}
	for i := range roads {
		w := drawWay(r, run.fits)
		w.slow = "passing"
		run.ways = append(run.ways, w)
		run.relays = append(run.relays, relayed{
			kind: randomRelays[r.IntN(len(randomRelays))].name,
			sending: sending{
				showing{seed: seed + uint64(i)<<32, kind: []string{"plain", "own"}[r.IntN(2)], steady: r.IntN(2) == 0}, []int{15, 40, 40, 300}[r.IntN(4)],
			},
		})
	}
	run.level = []string{"none", "basic", "normal", "detailed"}[r.IntN(4)]
	run.spareBatches()
	return run
}

// relay writes the configuration of the receiver of one of the twins.
func (run *randomRun) relay(to *strings.Builder, i int, twin, address string) {
	for _, k := range randomRelays {
		if k.name == run.relays[i].kind {
			fmt.Fprintf(to, "  %s\n", fmt.Sprintf(k.config, fmt.Sprint(twin, i), address))
		}
	}
}

// send sends all requests of a pipeline to one of the twins, and returns the responses.
func (run *randomRun) send(t *testing.T, i int, twin, sender string) (answers []string) {
	t.Helper()
	for _, k := range randomRelays {
		if k.name != run.relays[i].kind {
			continue
		}
		url := "http://" + run.listens[fmt.Sprint("from ", twin, i)] + k.path
		for n := range randomRequests {
			body, err := randomFormats[k.format](run.relays[i].request(sender, n+1), timeOf(n))
			if err != nil {
				t.Error(err)
				return nil
			}
			req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return nil
			}
			req.Header.Set("Content-Type", k.contentType)
			if k.format != "otlp" {
				req.Header.Set("Content-Encoding", "identity")
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				return nil
			}
			_ = resp.Body.Close()
			answers = append(answers, fmt.Sprint(n, " ", resp.StatusCode, resp.Header["X-Prometheus-Remote-Write-Samples-Written"],
				resp.Header["X-Prometheus-Remote-Write-Histograms-Written"], resp.Header["X-Prometheus-Remote-Write-Exemplars-Written"]))
		}
	}
	return answers
}

// TestRandomRelays: with random processors and random requests, the same arrives with and without reuse of memory, and
// the responses are the same.
func TestRandomRelays(t *testing.T) {
	for _, seed := range seeds(t, 1) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testRandomRelays(t, drawRelays(seed, roadsAtOnce())) })
	}
}

func testRandomRelays(t *testing.T, run *randomRun) {
	t.Helper()
	w := newWitness()
	sink := httptest.NewServer(w)
	t.Cleanup(sink.Close)
	run.sink, run.disk, run.metrics = sink.URL, t.TempDir(), run.free(t)
	run.setGates(t)
	run.loosen(w)
	c := start(t, run.config(t, false), append(contribs(), w.strangers()...)...)
	t.Cleanup(w.kept.Wait)
	run.says(t, c.log, 1, false)

	var mu sync.Mutex
	var all sync.WaitGroup
	answers := map[string][]string{}
	for i := range run.ways {
		for _, twin := range twins {
			for _, sender := range randomSenders {
				all.Go(func() {
					got := run.send(t, i, twin, sender)
					mu.Lock()
					defer mu.Unlock()
					answers[fmt.Sprint(twin, i, sender)] = got
				})
			}
		}
	}
	all.Wait()
	for _, e := range c.log.FilterMessageSnippet("panic").All() {
		t.Error(e.Message)
	}
	run.measures(t, false)
	differ := run.settle(w)
	for i := range run.ways {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			for _, sender := range randomSenders {
				require.Equal(t, answers[fmt.Sprint("slow", i, sender)], answers[fmt.Sprint("fast", i, sender)], "%+v %v", run.relays[i], run.ways[i])
			}
			run.compare(t, w, i, differ[i])
		})
	}
	c.stop()
	w.kept.Wait()
	require.Empty(t, w.wrong[:min(len(w.wrong), 3)])
	require.Zero(t, c.log.FilterMessageSnippet("changed attributes that several requests share").Len())
}

// poisonedRelay replaces an expectation of reuse where shared memory cannot be overwritten.
func (run *randomRun) poisonedRelay(i int, e expectation) expectation {
	if run.relaying && e.used && handback.Poisons() && run.relays[i].kind == "otlp" {
		return expectation{what: "this build", why: "overwrites memory that is handed back"}
	}
	return e
}
