// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/memo"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/admission"
)

func needRuns(t *testing.T) {
	if !slab.Places() || handback.Poisons() {
		t.Skip("nothing is shared in this build")
	}
}

// TestRunsChangeNothing: for any requests in any order, and wherever they are divided, metrics are the same with and
// without runs.
func TestRunsChangeNothing(t *testing.T) {
	racetest.Sequential(t)
	needRuns(t)
	for _, room := range []int{8 << 20, 400_000} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%d bytes, seed %d", room, seed), func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 19))
				cfg := sized(1 << 20)
				cfg.ScopesFromLabels = seed%2 == 0
				known := newKnown(room, true)
				var workers []*worker
				for range 2 {
					w, err := newWorker(cfg, known)
					require.NoError(t, err)
					workers = append(workers, w)
				}
				f := newFleet(random, 5, 2, 60)
				f.odd = true
				now := time.Now()
				var idle, busy []*tree
				runs := 0
				for round := range 24 {
					version := promwrite.V1
					if (seed+uint64(round)/8)%2 == 0 {
						version = promwrite.V2
					}
					for _, body := range f.requests(version, []int{0, 0, 0, 60}[round%4]) {
						if len(idle) == 0 {
							idle = append(idle, newTree(true))
						}
						tree := idle[len(idle)-1]
						idle = idle[:len(idle)-1]
						tree.defers = random.IntN(2) == 0
						want, b, err := twin(workers[random.IntN(2)], cfg, version, body, tree)
						require.NoError(t, err)
						require.Equal(t, said(want), said(b))
						runs += len(tree.placed)
						if tree.defers && random.IntN(3) > 0 { // as if the values were not written
							for _, p := range tree.placed {
								p.part.Defer()
							}
						} else if random.IntN(3) == 0 {
							ruinStructure(random, b.metrics)
						}
						if busy = append(busy, tree); len(busy) > 3 { // others are still in the pipeline
							at := random.IntN(len(busy))
							require.True(t, busy[at].takeBack())
							idle = append(idle, busy[at])
							busy = slices.Delete(busy, at, at+1)
						}
					}
					if round%5 == 4 {
						f.change()
					}
					now = now.Add(time.Duration(random.IntN(90)) * time.Second)
					known.age(now)
					bytes, _ := known.stats()
					require.LessOrEqual(t, bytes, room)
				}
				require.Positive(t, runs)
				if room > 1<<20 { // with little room, hashes decide which sets of labels are known
					require.Greater(t, runs, 10)
				}
			})
		}
	}
}

// An instance may be in two jobs, one with the first series of a run and the other with the rest; or have a job but no
// name.
func TestRunsEndWithTheirTarget(t *testing.T) {
	needRuns(t)
	const all = 8
	request := func(version promwrite.Version, targets ...[]string) []byte {
		req := newV2()
		for i, target := range targets {
			labels := append([]string{"__name__", "birds", "number", fmt.Sprint(i % all)}, target...)
			req.series(sample(float64(i), 1_700_000_000_000, 0), writev2.Metadata_METRIC_TYPE_GAUGE, "Help.", "", sortedPairs(labels)...)
		}
		return bodyOf(version, &req.Request)
	}
	known := []string{"instance", "a", "job", "one"}
	whole := slices.Repeat([][]string{known}, all)
	for _, version := range []promwrite.Version{promwrite.V1, promwrite.V2} {
		for _, odd := range [][]string{{"instance", "b", "job", "two"}, {"instance", "b"}, {"job", "one"}, {"job", "two"}, nil, {"instance", "a", "job", "two"}} {
			for _, rest := range [][]string{{"instance", "b", "job", "one"}, {"job", "one"}, {"instance", "a"}, known} {
				for at := range 4 { // any series of a run may be the first
					t.Run(fmt.Sprint(version, odd, rest, at), func(t *testing.T) {
						cfg := sized(1 << 20)
						w, err := newWorker(cfg, newKnown(8<<20, true))
						require.NoError(t, err)
						tree := newTree(true)
						for range 3 + at%2*fewForeign { // so that the encoding is known for the next request, or not
							_, _, err := twin(w, cfg, version, request(version, whole...), tree)
							require.NoError(t, err)
							require.True(t, tree.takeBack())
						}
						mixed := slices.Concat(whole, slices.Repeat([][]string{rest}, all))
						mixed[all+at] = odd
						want, got, err := twin(w, cfg, version, request(version, mixed...), tree)
						require.NoError(t, err)
						require.Equal(t, said(want), said(got))
						require.NotEmpty(t, tree.placed)
					})
				}
			}
		}
	}
}

// The bytes of a 2.0 request mean what its own symbols say, whatever they have meant before.
func TestTheSameReferencesToOtherSymbols(t *testing.T) {
	needRuns(t)
	cfg := sized(1 << 20)
	known := newKnown(4<<20, true)
	w, err := newWorker(cfg, known)
	require.NoError(t, err)
	tree := newTree(true)
	request := func() *writev2.Request {
		req := newV2()
		for target := range 3 {
			for i := range 12 {
				pairs := []string{"__name__", fmt.Sprintf("metric_%d", i/5), "code", fmt.Sprint(i), "instance", fmt.Sprint("host-", target), "job", "node", "zone", "a"}
				if i == 7 {
					pairs = []string{"__name__", "metric_1", "interface", "eth0", "instance", fmt.Sprint("host-", target), "job", "node"}
				}
				req.series(sample(float64(i), 1_700_000_000_000, 0), counter, "Help.", "seconds", pairs...)
			}
		}
		return &req.Request
	}
	send := func(req *writev2.Request) {
		body, err := req.Marshal()
		require.NoError(t, err)
		want, got, err := twin(w, cfg, promwrite.V2, body, tree)
		require.NoError(t, err)
		require.Equal(t, said(want), said(got))
		require.True(t, tree.takeBack())
	}
	encodings := func() (n int) {
		for _, r := range known.runs.all {
			if r.said.Load() != nil {
				n++
			}
		}
		return n
	}
	for range 2 + fewForeign + 1 {
		send(request())
	}
	require.Positive(t, encodings())
	symbols := request().Symbols
	for i := 1; i < len(symbols); i++ {
		for _, other := range []string{"x", symbols[1+i%(len(symbols)-1)], ""} {
			req := request()
			req.Symbols[i] = other
			send(req)
			send(request())
		}
	}
	for range 2 * fewForeign { // all differ
		req := request()
		slices.Reverse(req.Symbols[1:])
		for i := range req.Timeseries {
			ts := &req.Timeseries[i]
			for j, ref := range ts.LabelsRefs {
				if ref > 0 {
					ts.LabelsRefs[j] = uint32(len(req.Symbols)) - ref
				}
			}
			ts.Metadata.HelpRef, ts.Metadata.UnitRef = uint32(len(req.Symbols))-ts.Metadata.HelpRef, uint32(len(req.Symbols))-ts.Metadata.UnitRef
		}
		send(req)
	}
	send(request())
	for range 2 * maxUnused {
		known.age(time.Now())
	}
	require.Zero(t, known.runs.bytes(), "what is known of how they were encoded goes with runs")
}

// The reported size of known series includes what requests have taken of it, until they give it back.
func TestPartsOfRequestsAreCounted(t *testing.T) {
	needRuns(t)
	f := newFleet(rand.New(rand.NewPCG(9, 9)), 4, 1, 100)
	cfg := sized(8 << 20)
	known := newKnown(8<<20, true)
	w, err := newWorker(cfg, known)
	require.NoError(t, err)
	tree := newTree(true)
	last := 0
	for range 5 {
		for _, body := range f.requests(promwrite.V1, 0) {
			_, _, err := twin(w, cfg, promwrite.V1, body, tree)
			require.NoError(t, err)
			out, bytes := 0, known.runs.bytes()
			for _, p := range tree.placed {
				out += p.of.part
			}
			last = out
			require.Equal(t, out, known.runs.out)
			require.Equal(t, known.runs.known+known.runs.spare+out, bytes)
			require.True(t, tree.takeBack())
			require.Zero(t, known.runs.out)
			require.Equal(t, bytes, known.runs.bytes(), "they are kept for the next request")
		}
	}
	require.Positive(t, last)
}

// A run is used by several goroutines at a time.
func TestRunsAreUsedAtATime(t *testing.T) {
	needRuns(t)
	cfg := sized(1 << 20)
	known := newKnown(2<<20, true)
	var all sync.WaitGroup
	for g := range uint64(2) {
		all.Go(func() {
			f := newFleet(rand.New(rand.NewPCG(1, 1)), 3, 1, 40) // the same for all
			f.r = rand.New(rand.NewPCG(g, 1))
			w, err := newWorker(cfg, known)
			if err != nil {
				t.Error(err)
				return
			}
			tree := newTree(true)
			placed := 0
			for round := range 30 {
				for _, body := range f.requests(promwrite.V1, 60*int(g&1)) {
					want, got, err := twin(w, cfg, promwrite.V1, body, tree)
					if err != nil {
						t.Error(err)
						return
					}
					assert.Equal(t, said(want), said(got))
					placed += len(tree.placed)
					assert.True(t, tree.takeBack())
				}
				known.age(time.Now().Add(time.Duration(round) * time.Minute))
			}
			assert.Positive(t, placed)
		})
	}
	all.Wait()
}

// Most series of similar targets are found by runs, wherever requests are divided.
func TestMostSeriesComeByRuns(t *testing.T) {
	racetest.Sequential(t)
	needRuns(t)
	for _, version := range []promwrite.Version{promwrite.V1, promwrite.V2} {
		for cutOneIn, least := range map[int]float64{0: 0.8, 1000: 0.5} {
			f := newFleet(rand.New(rand.NewPCG(5, 5)), 8, 1, 400)
			cfg := sized(8 << 20)
			w, err := newWorker(cfg, newKnown(9<<20, true))
			require.NoError(t, err)
			tree := newTree(true)
			points, byRuns := 0, 0
			for round := range 9 {
				for _, body := range f.requests(version, cutOneIn) {
					want, got, err := twin(w, cfg, version, body, tree)
					require.NoError(t, err)
					require.Equal(t, said(want), said(got))
					if round > 5 {
						points += got.written.Samples
						for _, p := range tree.placed {
							byRuns += p.part.Len()
						}
					}
					require.True(t, tree.takeBack())
				}
			}
			require.Greater(t, float64(byRuns), least*float64(points), "%s, cut one in %d", version, cutOneIn)
		}
	}
}

// Runs and their parts are removed when they are no longer sent.
func TestRunsThatDoNotComeAreForgotten(t *testing.T) {
	needRuns(t)
	f := newFleet(rand.New(rand.NewPCG(7, 7)), 4, 1, 100)
	cfg := sized(8 << 20)
	known := newKnown(8<<20, true)
	w, err := newWorker(cfg, known)
	require.NoError(t, err)
	tree := newTree(true)
	placed := func() (n int) {
		for range 4 {
			for _, body := range f.requests(promwrite.V1, 0) {
				_, _, err := twin(w, cfg, promwrite.V1, body, tree)
				require.NoError(t, err)
				n = len(tree.placed)
				require.True(t, tree.takeBack())
			}
		}
		return n
	}
	require.Positive(t, placed())
	runs, bytes := len(known.runs.all), known.runs.bytes()
	require.Positive(t, runs)
	now := time.Now()
	for range maxUnused {
		known.age(now)
	}
	require.Len(t, known.runs.all, runs)
	require.Less(t, known.runs.bytes(), bytes, "parts that nobody needs go first")
	known.age(now)
	known.age(now)
	require.Empty(t, known.runs.all)
	require.Zero(t, known.runs.bytes())
	require.Positive(t, placed(), "they are learnt again")
	require.Len(t, known.runs.all, runs)
	known.age(now.Add(memo.Generation))
	known.age(now.Add(3 * memo.Generation))
	require.Len(t, known.runs.all, runs, "what runs are of is asked for")
}

// A changed byte anywhere in a request is decoded correctly.
func TestAByteThatDiffersIsSeen(t *testing.T) {
	needRuns(t)
	random := rand.New(rand.NewPCG(3, 83))
	for _, version := range []promwrite.Version{promwrite.V1, promwrite.V2} {
		f := newFleet(random, 2, 1, 40)
		cfg := sized(1 << 20)
		w, err := newWorker(cfg, newKnown(8<<20, true))
		require.NoError(t, err)
		tree := newTree(true)
		var whole []byte
		for range 3 + fewForeign {
			for _, body := range f.requests(version, 0) {
				if len(body) >= len(whole) {
					whole = slices.Clone(body)
				}
				_, _, err := twin(w, cfg, version, body, tree)
				require.NoError(t, err)
				require.True(t, tree.takeBack())
			}
		}
		placed, taken := 0, 0
		for range 1500 {
			body := slices.Clone(whole)
			body[random.IntN(len(body))] ^= 1 << random.IntN(8)
			tree.defers = random.IntN(2) == 0
			want, got, err := twin(w, cfg, version, slices.Clone(body), tree)
			if err != nil { // not a valid request
				tree.takeBack()
				oracle, err := newWorker(cfg, newKnown(0, false))
				require.NoError(t, err)
				held := admission.New(64 << 20).Held()
				_, err = oracle.work(t.Context(), version, promwrite.Identity, body, &held, nil, newTree(false))
				held.Done()
				require.Error(t, err)
				continue
			}
			require.Equal(t, said(want), said(got))
			taken++
			placed += len(tree.placed)
			require.True(t, tree.takeBack())
		}
		require.Greater(t, taken, 500)
		require.Greater(t, placed, taken/2)
	}
}
