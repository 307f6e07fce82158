// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/godwit-otel/godwit/benchmarks/sink"
)

// request is an encoded request with the offsets of what changes.
type request struct {
	body                             []byte
	times, starts, values, ids, pods []int
	healthy, hostile                 int64 // number of points, as a sink counts them

	// Only for relays.
	contentType string
	snappy      bool
	millis      []int     // offsets of times of six bytes, in milliseconds
	base        []float64 // of values
}

var errMarks = errors.New("it does not have a time, a start and a value for each point")

func encode(md pmetric.Metrics) (*request, error) {
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		return nil, fmt.Errorf("cannot encode a request: %w", err)
	}
	stats, err := sink.CountOTLP(body)
	if err != nil {
		return nil, fmt.Errorf("cannot count a request: %w", err)
	}
	r := &request{
		body: body, healthy: stats.Samples, hostile: stats.Strangers,
		times: marks(body, number(timeMark)), starts: marks(body, number(startMark)), values: marks(body, number(valueMark)),
		ids: marks(body, []byte(idMark)), pods: marks(body, []byte(podMark)),
	}
	if n := md.DataPointCount(); len(r.times) != n || len(r.starts) != n || len(r.values) != n {
		return nil, fmt.Errorf("cannot replay a request of %d points: %w", n, errMarks)
	}
	return r, nil
}

func number(mark uint64) []byte { return binary.LittleEndian.AppendUint64(nil, mark) }

func marks(body, mark []byte) (at []int) {
	for from := 0; ; from += len(mark) {
		i := bytes.Index(body[from:], mark)
		if i < 0 {
			return at
		}
		from += i
		at = append(at, from)
	}
}

// moment is what differs between sends.
type moment struct {
	now, start time.Time
	value      uint64
	id         uint64 // the first unused one
	generation int
}

// write appends the request as of a moment.
func (r *request) write(dst []byte, m moment) []byte {
	dst = append(dst, r.body...)
	for _, at := range r.times {
		binary.LittleEndian.PutUint64(dst[at:], uint64(m.now.UnixNano()))
	}
	for _, at := range r.starts {
		binary.LittleEndian.PutUint64(dst[at:], uint64(m.start.UnixNano()))
	}
	if r.base != nil {
		r.writeDoubles(dst, m)
		return dst
	}
	for i, at := range r.values {
		binary.LittleEndian.PutUint64(dst[at:], m.value+uint64(i))
	}
	for i, at := range r.ids {
		copy(dst[at:at+len(idMark)], fmt.Sprintf("%016x-%0*d", (m.id+uint64(i))*0x9e3779b97f4a7c15, len(idMark)-17, m.id+uint64(i)))
	}
	for _, at := range r.pods {
		copy(dst[at:at+len(podMark)], fmt.Sprintf("%0*d", len(podMark), m.generation))
	}
	return dst
}
