// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"bytes"
	"fmt"
	"testing"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/admission"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/replicas"
)

// TestNothingOutlivesABodyThatIsItsOwn: a request leaves more than metrics: votes, elections, target_info of targets,
// the first reason of a refusal, and known series. None of them may refer to the body, which is overwritten as soon as
// it is translated, whether it was uncompressed or decompressed into the memory of a worker.
func TestNothingOutlivesABodyThatIsItsOwn(t *testing.T) {
	for _, encoding := range []promwrite.Encoding{promwrite.Identity, promwrite.Snappy, promwrite.Zstd} {
		for _, room := range []int{0, 1 << 20} {
			for _, reused := range []bool{false, slab.Places()} {
				t.Run(fmt.Sprintf("%s, %d bytes to know, reused %t", encoding, room, reused), func(t *testing.T) {
					cfg := createDefaultConfig().(*Config)
					cfg.ScopesFromLabels = true
					cfg.Replicas.Deduplicate = true
					cfg.Replicas.MaxClusters = 2
					known := newKnown(room, reused)
					w, err := newWorker(cfg, known)
					require.NoError(t, err)
					elections, learnt := replicas.New(*cfg.Replicas.rules(), nil), newInfos(100)

					work := func() (batch, []string) {
						req := newV2()
						target := []string{"instance", "h1:1", "job", "ns/node", "__replica__", "r1", "cluster", "c1"}
						series := func(labels ...string) {
							ts := sample(1, 1000, 0)
							ts.Exemplars = []writev2.Exemplar{{LabelsRefs: req.refs("user", "somebody"), Value: 1, Timestamp: 900}}
							req.series(ts, writev2.Metadata_METRIC_TYPE_COUNTER, "What it is.", "parsecs", labels...)
						}
						series(append([]string{"__name__", "target_info", "zone", "east"}, target...)...)
						series(append([]string{"__name__", "a_total", "code", "200", "otel_scope_name", "scope", "otel_scope_x", "y"}, target...)...)
						series("__name__", "b", "cluster", "c2", "__replica__", "r1", "job", "other")
						series("__name__", "refused", "cluster", "c3", "__replica__", "r1", "job", "third")
						plain, err := req.Marshal()
						require.NoError(t, err)
						body := bytes.Clone(compress(t, encoding, plain))
						held := admission.New(64 << 20).Held()
						defer held.Done()
						w.translator.layout.asker = asker{learnt, "tenant"}
						b, err := w.work(t.Context(), promwrite.V2, encoding, body, &held, elections.Ballot("tenant"), newTree(reused))
						require.NoError(t, err)
						overwrite(body)
						overwrite(w.plain[:cap(w.plain)])
						b.ballot.Passed()
						return b, describe(b.metrics)
					}
					_, first := work()
					b, second := work()
					require.Equal(t, first, second)
					require.Contains(t, fmt.Sprint(second), "somebody")
					require.NotContains(t, fmt.Sprint(second), "XX")
					require.ErrorContains(t, b.rejects.err(), `"refused"`)
					for _, cluster := range []string{"c1", "c2"} {
						replica, seen := elections.Elected("tenant", cluster)
						require.Equal(t, "r1", replica)
						require.False(t, seen.IsZero())
					}
					replica, _ := elections.Elected("tenant", "c3")
					require.Empty(t, replica, "it has only what is refused")
					require.Equal(t, []promwrite.Label{{Name: "zone", Value: "east"}, {Name: "cluster", Value: "c1"}},
						learnt.of(infoKey{"tenant", "ns/node", "h1:1"}))
				})
			}
		}
	}
}

func overwrite(b []byte) {
	for i := range b {
		b[i] = 'X'
	}
}
