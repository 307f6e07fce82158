// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// proof returns the value of a sample: it follows from the labels and the time, and so reveals memory that was mixed
// up.
func proof(labels []promwrite.Label, at int64) float64 {
	h := fnv.New64a()
	for _, l := range labels {
		_, _ = fmt.Fprintf(h, "%s\xff%s\xff", l.Name, l.Value)
	}
	_, _ = fmt.Fprint(h, at)
	return float64(h.Sum64() >> 12)
}

// warehouse accepts remote write, and checks each sample.
type warehouse struct {
	mu    sync.Mutex
	found map[string]int
	wrong []string
}

func (w *warehouse) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var written promwrite.Written
	if err := w.take(r, &written); err != nil {
		w.wrong = append(w.wrong, err.Error())
	}
	written.SetHeaders(answer.Header())
}

func (w *warehouse) take(r *http.Request, written *promwrite.Written) error {
	return eachSeries(r, func(s *promwrite.Series) {
		written.Samples += len(s.Samples)
		for _, v := range s.Samples {
			key := fmt.Sprint(s.Labels, v.Timestamp)
			if w.found[key]++; v.Value != proof(s.Labels, v.Timestamp) || w.found[key] > 1 {
				w.wrong = append(w.wrong, fmt.Sprint(key, " is ", v.Value, ", not ", proof(s.Labels, v.Timestamp), ", times ", w.found[key]))
			}
		}
	})
}

// eachSeries decodes a remote-write request.
func eachSeries(r *http.Request, do func(*promwrite.Series)) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	version, err := promwrite.ParseContentType(r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	encoding, err := promwrite.ParseContentEncoding(r.Header.Get("Content-Encoding"))
	if err != nil {
		return err
	}
	unpack, err := promwrite.NewDecompressor(64 << 20)
	if err != nil {
		return err
	}
	plain, err := unpack.Decompress(nil, encoding, body)
	if err != nil {
		return err
	}
	var d promwrite.Decoder
	if err := d.Decode(version, plain); err != nil {
		return err
	}
	for i := range d.Series {
		do(&d.Series[i])
	}
	return nil
}

// TestRelaysMixNothingUp: many senders send known and new series at the same time to a pipeline that reuses memory.
// Each sample arrives once, with the labels and the time that it was sent with.
func TestRelaysMixNothingUp(t *testing.T) {
	const senders, requests, samples = 6, 60, 40
	for name, c := range map[string]struct {
		receiver, path, encoding string
		encode                   func([][]promwrite.Label, int64) ([]byte, error)
	}{
		"remotewrite": {`remotewrite: {endpoint: "%s"}`, "/api/v1/write", "identity", encodeWrite},
		"otlpstream":  {`otlpstream: {protocols: {http: {endpoint: "%s"}}}`, "/v1/metrics", "", encodeOTLP},
	} {
		t.Run(name, func(t *testing.T) {
			sink := &warehouse{found: map[string]int{}}
			far := httptest.NewServer(sink)
			t.Cleanup(far.Close)
			address := freeAddress(t)
			road := start(t, fmt.Sprintf(`
receivers: {%s}
processors: {memory_limiter: {check_interval: 1s, limit_mib: 4000}, cardinality: {defaults: {max_series_per_metric: 1000000}}}
exporters: {remotewrite: {endpoint: "%s", target_info: {enabled: false}, batch: {timeout: 50ms}}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [%s], processors: [memory_limiter, cardinality], exporters: [remotewrite]}}
`, fmt.Sprintf(c.receiver, address), far.URL, name))
			if name != "otlpstream" || !handback.Poisons() { // what otlpstream shares cannot be overwritten
				require.Equal(t, 1, road.log.FilterMessage(used).Len(), "memory is used again")
			}

			now := time.Now().UnixMilli()
			var all sync.WaitGroup
			var sent atomic.Int64
			for sender := range senders {
				all.Go(func() {
					random := rand.New(rand.NewPCG(uint64(sender), 1))
					for i := range requests {
						var list [][]promwrite.Label
						for j := range 1 + random.IntN(samples) {
							list = append(list, someLabels(random, sender, i, j))
						}
						body, err := c.encode(list, now-int64(sender*requests+i))
						if err != nil {
							t.Error(err)
							return
						}
						req, err := http.NewRequest(http.MethodPost, "http://"+address+c.path, bytes.NewReader(body))
						if err != nil {
							t.Error(err)
							return
						}
						req.Header.Set("Content-Type", "application/x-protobuf")
						req.Header.Set("Content-Encoding", c.encoding)
						resp, err := http.DefaultClient.Do(req)
						if err != nil {
							t.Error(err)
							return
						}
						_ = resp.Body.Close()
						assert.Equal(t, 2, resp.StatusCode/100)
						sent.Add(int64(len(list)))
					}
				})
			}
			all.Wait()
			require.Eventually(t, func() bool {
				sink.mu.Lock()
				defer sink.mu.Unlock()
				return len(sink.found) >= int(sent.Load()) || len(sink.wrong) > 0
			}, patience, glance)
			sink.mu.Lock()
			defer sink.mu.Unlock()
			require.Empty(t, sink.wrong[:min(len(sink.wrong), 3)])
			require.Len(t, sink.found, int(sent.Load()))
		})
	}
}

// someLabels returns the labels of a series, sorted, which is either one of a few or new.
func someLabels(random *rand.Rand, sender, request, index int) []promwrite.Label {
	path := fmt.Sprint("again", index)
	if random.IntN(4) == 0 {
		path = fmt.Sprintf("new-%d-%d-%d", sender, request, index)
	}
	labels := []promwrite.Label{
		{Name: "__name__", Value: fmt.Sprint("metric_", index%7)},
		{Name: "instance", Value: fmt.Sprintf("host-%d:9100", random.IntN(5))},
		{Name: "job", Value: "node"},
		{Name: "path", Value: path},
	}
	if random.IntN(3) == 0 {
		labels = append(labels, promwrite.Label{Name: "zone", Value: fmt.Sprint("z", random.IntN(3))})
	}
	return labels
}

func encodeWrite(list [][]promwrite.Label, at int64) (body []byte, _ error) {
	for _, labels := range list {
		var series, sample []byte
		for _, l := range labels {
			var m []byte
			m = protowire.AppendString(protowire.AppendTag(m, 1, protowire.BytesType), l.Name)
			m = protowire.AppendString(protowire.AppendTag(m, 2, protowire.BytesType), l.Value)
			series = protowire.AppendBytes(protowire.AppendTag(series, 1, protowire.BytesType), m)
		}
		sample = protowire.AppendFixed64(protowire.AppendTag(sample, 1, protowire.Fixed64Type), math.Float64bits(proof(labels, at)))
		sample = protowire.AppendVarint(protowire.AppendTag(sample, 2, protowire.VarintType), uint64(at))
		series = protowire.AppendBytes(protowire.AppendTag(series, 2, protowire.BytesType), sample)
		body = protowire.AppendBytes(protowire.AppendTag(body, 1, protowire.BytesType), series)
	}
	return body, nil
}

func encodeOTLP(list [][]promwrite.Label, at int64) ([]byte, error) {
	md := pmetric.NewMetrics()
	slices.SortStableFunc(list, func(a, b []promwrite.Label) int { return cmp.Compare(a[1].Value, b[1].Value) })
	for i, labels := range list {
		var rm pmetric.ResourceMetrics
		if i > 0 && list[i-1][1] == labels[1] {
			rm = md.ResourceMetrics().At(md.ResourceMetrics().Len() - 1)
		} else {
			rm = md.ResourceMetrics().AppendEmpty()
			rm.Resource().Attributes().PutStr("service.instance.id", labels[1].Value)
			rm.Resource().Attributes().PutStr("service.name", labels[2].Value)
			rm.ScopeMetrics().AppendEmpty()
		}
		m := rm.ScopeMetrics().At(0).Metrics().AppendEmpty()
		m.SetName(labels[0].Value)
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.Timestamp(at * 1_000_000))
		p.SetDoubleValue(proof(labels, at))
		for _, l := range labels[3:] {
			p.Attributes().PutStr(l.Name, l.Value)
		}
	}
	return pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
}
