// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// TestLongNamesAreRefused: the sender is told which ones.
func TestLongNamesAreRefused(t *testing.T) {
	long := strings.Repeat("long", 2<<10)
	sink := new(consumertest.MetricsSink)
	url := start(t, settings(), sink, func(c *Config) { c.Replicas.Deduplicate = true })
	mixed := newV2()
	for _, cluster := range []string{long, "north"} {
		mixed.series(sample(1, 1000, 0), writev2.Metadata_METRIC_TYPE_GAUGE, "", "", "__name__", "up", labelReplica, "a", labelCluster, cluster)
	}
	a := postV2(t, url, &mixed.Request)
	require.Equal(t, http.StatusBadRequest, a.code)
	require.Contains(t, a.body, "longer than")
	require.Equal(t, promwrite.Written{Samples: 1}, a.written)
}

// TestReplicasAreDeduplicated: data of the elected replica arrives without the replica label; data of others is
// acknowledged as if it was written.
func TestReplicasAreDeduplicated(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	url := start(t, settings(), sink, func(c *Config) {
		c.Replicas.Deduplicate, c.Replicas.MaxClusters = true, 2
	})
	request := func(replica string, more ...string) *writev2.Request {
		ts := sample(1, 1000, 0)
		ts.Exemplars = []writev2.Exemplar{{Value: 1, Timestamp: 1000}}
		return &newV2().series(ts, writev2.Metadata_METRIC_TYPE_GAUGE, "", "",
			append([]string{"__name__", "up", labelReplica, replica, labelCluster, "north", "job", "j"}, more...)...).Request
	}
	written := promwrite.Written{Samples: 1, Exemplars: 1}
	for _, replica := range []string{"a", "b", "a", "b"} {
		a := postV2(t, url, request(replica))
		require.Equal(t, http.StatusNoContent, a.code, a.body)
		require.Equal(t, written, a.written)
	}
	require.Len(t, sink.AllMetrics(), 2)
	attributes := sink.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes()
	require.Equal(t, map[string]any{labelCluster: "north"}, attributes.AsRaw())

	// The labels of each series decide which replica it is from, whatever else the request contains.
	mixed := newV2()
	for _, labels := range [][]string{
		{"__name__", "x", labelReplica, "b", labelCluster, "north"}, // dropped
		{"__name__", "x", labelReplica, "b", labelCluster, "south"},
		{"__name__", "x", labelReplica, "b"}, // without a cluster
		{"__name__", "x", labelCluster, "north"},
		{"__name__", "x", labelReplica, "b", labelCluster, "west"}, // one cluster too many
	} {
		mixed.series(sample(1, 1000, 0), writev2.Metadata_METRIC_TYPE_GAUGE, "", "", labels...)
	}
	sink.Reset()
	a := postV2(t, url, &mixed.Request)
	require.Equal(t, http.StatusBadRequest, a.code)
	require.Contains(t, a.body, "`replicas.max_clusters`")
	require.Equal(t, promwrite.Written{Samples: 4}, a.written)
	points := sink.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
	var got []map[string]any
	for _, p := range points.All() {
		got = append(got, p.Attributes().AsRaw())
	}
	require.Equal(t, []map[string]any{{labelCluster: "south"}, {labelReplica: "b"}, {labelCluster: "north"}}, got)
}

// TestOnlyWhatIsTakenIsHeardOf: a replica whose data the pipeline refuses does not prevent the election of another one.
func TestOnlyWhatIsTakenIsHeardOf(t *testing.T) {
	var refuses atomic.Bool
	next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error {
		if refuses.Load() {
			return errors.New("busy")
		}
		return nil
	})
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	cfg.Replicas.Deduplicate = true
	r, err := newReceiver(cfg, settings(), next)
	require.NoError(t, err)
	r.prepare()
	ask := func(code int) time.Time {
		t.Helper()
		body := v1(t, []string{"__name__", "up", labelReplica, "a", labelCluster, "north"})
		req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		req.Header.Set("Content-Type", promwrite.ContentTypeV1)
		req.Header.Set("Content-Encoding", "identity")
		req.Header.Set("X-Scope-Orgid", "flock")
		answer := httptest.NewRecorder()
		r.ServeHTTP(answer, req)
		require.Equal(t, code, answer.Code)
		_, seen := r.replicas.Elected("flock", "north")
		return seen
	}
	first := ask(http.StatusNoContent)
	refuses.Store(true)
	require.Equal(t, first, ask(http.StatusServiceUnavailable))
	refuses.Store(false)
	require.Greater(t, ask(http.StatusNoContent), first)
}

func TestFaultsOfReplicasAreNamed(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Replicas.MaxClusters = 0
	require.NoError(t, cfg.Validate(), "it is off")
	cfg.Replicas = ReplicasConfig{Deduplicate: true, ClusterLabel: "job"}
	err := cfg.Validate()
	for _, key := range []string{"cluster_label", "replica_label", "failover_timeout", "max_clusters"} {
		require.ErrorContains(t, err, "`replicas."+key+"`")
	}
	cfg.Replicas.ClusterLabel, cfg.Replicas.ReplicaLabel = "a", "a"
	require.ErrorContains(t, cfg.Validate(), "must differ")
}
