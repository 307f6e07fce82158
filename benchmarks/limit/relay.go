// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/benchmarks/tally"
)

// The loads of relays: pages of node exporters, a few per request as Prometheus sends them, in remote write or OTLP.
const (
	relayTargets = 1000
	pagesOfOne   = 4
)

// pageSample is a sample of a page.
type pageSample struct {
	name   string
	labels []string // names and values in turn, sorted by name
	typ    int      // the number of the type in remote write 2.0
	help   string
	value  float64
}

// readPage reads a page in Prometheus' text format.
func readPage(file string) (page []pageSample, err error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the page: %w", err)
	}
	types := map[string]int{"counter": 1, "gauge": 2, "histogram": 3, "summary": 5}
	help, family, typ := "", "", 0
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			_, help, _ = strings.Cut(rest, " ")
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			var kind string
			family, kind, _ = strings.Cut(rest, " ")
			typ = types[kind]
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			continue
		}
		s := pageSample{typ: typ, help: help}
		if s.value, err = strconv.ParseFloat(line[at+1:], 64); err != nil {
			return nil, fmt.Errorf("cannot read the page: %w", err)
		}
		series := line[:at]
		s.name, series, _ = strings.Cut(series, "{")
		if !strings.HasPrefix(s.name, family) {
			s.typ, s.help = 0, ""
		}
		for series = strings.TrimSuffix(series, "}"); series != ""; series = strings.TrimPrefix(series, ",") {
			name, rest, _ := strings.Cut(series, "=")
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, fmt.Errorf("cannot read the page: label %s: %w", name, err)
			}
			value, _ := strconv.Unquote(quoted)
			s.labels = append(s.labels, name, value)
			series = rest[len(quoted):]
		}
		page = append(page, s)
	}
	return page, nil
}

// ofPages reports whether a shape is made of pages.
func ofPages(shape string) bool { return shape[0] == 'R' || shape[0] == 'A' }

// relayRequests makes the requests of a shape R1 to R3, A1 or A2 from a page.
func relayRequests(shape, file string) (all []*request, err error) {
	page, err := readPage(file)
	if err != nil {
		return nil, err
	}
	if shape[0] == 'A' {
		page = slices.DeleteFunc(page, func(s pageSample) bool { return !strings.HasSuffix(s.name, "_total") })
	}
	for first := 0; first < relayTargets; first += pagesOfOne {
		var r *request
		switch shape {
		case "R1", "A1":
			r = remoteWrite1(page, first)
		case "R2", "A2":
			r = remoteWrite2(page, first)
		default:
			if r, err = relayOTLP(page, first); err != nil {
				return nil, err
			}
		}
		r.healthy = int64(len(page) * pagesOfOne)
		all = append(all, r)
	}
	return all, nil
}

// seriesLabels returns the labels of a target's sample, sorted by name.
func seriesLabels(s *pageSample, target int) (all [][2]string) {
	all = append(all, [2]string{"__name__", s.name}, [2]string{"instance", tally.Address(target, 1)}, [2]string{"job", "node"})
	for i := 0; i < len(s.labels); i += 2 {
		all = append(all, [2]string{s.labels[i], s.labels[i+1]})
	}
	slices.SortFunc(all, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return all
}

// varintTime takes as many bytes as current times in milliseconds will for decades.
const varintTime = 1 << 40

// appendSample appends a Sample as a field, and records where its value and time are.
func (r *request) appendSample(dst []byte, base int, value float64) []byte {
	var m []byte
	m = protowire.AppendTag(m, 1, protowire.Fixed64Type)
	m = protowire.AppendFixed64(m, 0)
	m = protowire.AppendTag(m, 2, protowire.VarintType)
	m = protowire.AppendVarint(m, varintTime)
	dst = protowire.AppendTag(dst, 2, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(len(m)))
	at := base + len(dst)
	r.values, r.millis, r.base = append(r.values, at+1), append(r.millis, at+10), append(r.base, value)
	return append(dst, m...)
}

// remoteWrite1 returns a prometheus.WriteRequest.
func remoteWrite1(page []pageSample, first int) *request {
	r := &request{contentType: "application/x-protobuf", snappy: true}
	for target := first; target < first+pagesOfOne; target++ {
		for i := range page {
			var labels []byte
			for _, l := range seriesLabels(&page[i], target) {
				var m []byte
				for n, text := range l {
					m = protowire.AppendTag(m, protowire.Number(n+1), protowire.BytesType)
					m = protowire.AppendString(m, text)
				}
				labels = protowire.AppendTag(labels, 1, protowire.BytesType)
				labels = protowire.AppendBytes(labels, m)
			}
			r.appendSeries(1, labels, nil, page[i].value+float64(target))
		}
	}
	return r
}

// appendSeries appends a message with a sample between two parts.
func (r *request) appendSeries(field protowire.Number, before, after []byte, value float64) {
	const sample = 18
	r.body = protowire.AppendTag(r.body, field, protowire.BytesType)
	r.body = protowire.AppendVarint(r.body, uint64(len(before)+sample+len(after)))
	r.body = append(r.body, before...)
	r.body = r.appendSample(r.body, 0, value)
	r.body = append(r.body, after...)
}

// remoteWrite2 returns an io.prometheus.write.v2.Request.
func remoteWrite2(page []pageSample, first int) *request {
	r := &request{contentType: "application/x-protobuf;proto=io.prometheus.write.v2.Request", snappy: true}
	refs := map[string]uint64{}
	symbol := func(text string) uint64 {
		n, ok := refs[text]
		if !ok {
			n = uint64(len(refs))
			refs[text] = n
			r.body = protowire.AppendTag(r.body, 4, protowire.BytesType)
			r.body = protowire.AppendString(r.body, text)
		}
		return n
	}
	symbol("")
	type series struct {
		before, after []byte
		value         float64
	}
	var all []series
	for target := first; target < first+pagesOfOne; target++ {
		for i := range page {
			var list, before, meta, after []byte
			for _, l := range seriesLabels(&page[i], target) {
				list = protowire.AppendVarint(protowire.AppendVarint(list, symbol(l[0])), symbol(l[1]))
			}
			before = protowire.AppendBytes(protowire.AppendTag(before, 1, protowire.BytesType), list)
			meta = protowire.AppendVarint(protowire.AppendTag(meta, 1, protowire.VarintType), uint64(page[i].typ))
			meta = protowire.AppendVarint(protowire.AppendTag(meta, 3, protowire.VarintType), symbol(page[i].help))
			after = protowire.AppendBytes(protowire.AppendTag(after, 5, protowire.BytesType), meta)
			all = append(all, series{before, after, page[i].value + float64(target)})
		}
	}
	for _, s := range all { // after all symbols
		r.appendSeries(5, s.before, s.after, s.value)
	}
	return r
}

// relayOTLP returns the same as OTLP: counters are sums, all else is gauges.
func relayOTLP(page []pageSample, first int) (*request, error) {
	md := pmetric.NewMetrics()
	var base []float64
	for target := first; target < first+pagesOfOne; target++ {
		sm := resource(md, target, "node").ScopeMetrics().AppendEmpty()
		var points pmetric.NumberDataPointSlice
		name := ""
		for i := range page {
			s := &page[i]
			if s.name != name {
				name = s.name
				m := sm.Metrics().AppendEmpty()
				m.SetName(s.name)
				m.SetDescription(s.help)
				if s.typ == 1 {
					sum := m.SetEmptySum()
					sum.SetIsMonotonic(true)
					sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
					points = sum.DataPoints()
				} else {
					points = m.SetEmptyGauge().DataPoints()
				}
			}
			p := points.AppendEmpty()
			p.SetTimestamp(timeMark)
			p.SetStartTimestamp(startMark)
			p.SetDoubleValue(math.Float64frombits(valueMark))
			for j := 0; j < len(s.labels); j += 2 {
				p.Attributes().PutStr(s.labels[j], s.labels[j+1])
			}
			base = append(base, s.value+float64(target))
		}
	}
	r, err := encode(md)
	if err == nil {
		r.base = base
	}
	return r, err
}

// writeDoubles writes the values and times of a moment: a third of the values have changed since the last one.
func (r *request) writeDoubles(dst []byte, m moment) {
	for i, at := range r.values {
		v := r.base[i]
		if i%10 < 3 {
			v += float64(m.value) * float64(1+i%7)
		}
		binary.LittleEndian.PutUint64(dst[at:], math.Float64bits(v))
	}
	for _, at := range r.millis {
		v := uint64(m.now.UnixMilli())
		for j := range 5 {
			dst[at+j] = byte(v) | 0x80
			v >>= 7
		}
		dst[at+5] = byte(v)
	}
}
