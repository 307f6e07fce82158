// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"
)

const tag = 1<<3 | byte(protowire.BytesType)

// ends has both sides of a stream.
type ends struct {
	tb  testing.TB
	in  *Encoder
	out *Decoder
}

func newEnds(tb testing.TB, limit int) ends { return ends{tb, NewEncoder(limit), NewDecoder(limit)} }

// pass sends a payload through the stream, and returns the size of its encoded form. It requires that both sides store
// the same, within the limit.
func (e ends) pass(payload []byte) int {
	before := slices.Clone(payload)
	form, ok := e.in.Append([]byte("x"), payload)
	require.True(e.tb, ok)
	require.Equal(e.tb, before, payload, "payloads are shared")
	got, err := e.out.Append([]byte("y"), form[1:], len(payload), tag)
	require.NoError(e.tb, err)
	require.Equal(e.tb, "y"+string(payload), string(got))
	require.Equal(e.tb, e.in.used, e.out.used)
	require.LessOrEqual(e.tb, e.in.used, e.in.limit)
	require.Len(e.tb, e.out.rows, len(e.in.rows))
	return len(form) - 1
}

func TestWhatComesAgainIsAFractionOfItself(t *testing.T) {
	const targets = 5
	payloads, points := scrapes(t, targets, 10, 0.3)
	e := newEnds(t, 1<<20)
	first, joined, moved := 0, 0, 0
	for i, p := range payloads {
		size := e.pass(p)
		switch {
		case i == 0:
			first = size
		case i < targets:
			joined += size
		default:
			moved += size
		}
	}
	require.Less(t, first, len(payloads[0])+10)
	page := points / len(payloads)
	require.Less(t, float64(joined)/(targets-1)/float64(page), 2.5, "bytes a point where only the shape is known")
	require.Less(t, float64(moved)/float64(len(payloads)-targets)/float64(page), 1.3, "bytes a point")
}

// zoo returns metrics of all kinds, with their times, and variable parts.
func zoo(random *rand.Rand, host int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for r := range 1 + random.IntN(3) {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("host", fmt.Sprintf("host-%d-%d", host, r))
		sm := rm.ScopeMetrics().AppendEmpty()
		metric := func(name string) pmetric.Metric {
			m := sm.Metrics().AppendEmpty()
			m.SetName(name)
			return m
		}
		times := func(p interface {
			SetTimestamp(v pcommon.Timestamp)
			SetStartTimestamp(v pcommon.Timestamp)
		},
		) {
			p.SetTimestamp(pcommon.Timestamp(random.IntN(3) * 1000))
			p.SetStartTimestamp(pcommon.Timestamp(random.IntN(2)))
		}
		for range random.IntN(3) {
			gauge := metric("gauge").SetEmptyGauge().DataPoints().AppendEmpty()
			times(gauge)
			gauge.SetDoubleValue(someFloat(random))
			counter := metric("counter").SetEmptySum().DataPoints().AppendEmpty()
			times(counter)
			counter.SetIntValue(int64(random.Uint64() >> random.IntN(64)))
		}
		h := metric("histogram").SetEmptyHistogram().DataPoints().AppendEmpty()
		times(h)
		h.BucketCounts().FromRaw([]uint64{random.Uint64(), 7, uint64(random.IntN(3))})
		h.ExplicitBounds().FromRaw([]float64{1, 2})
		h.SetSum(someFloat(random))
		h.SetMax(someFloat(random))
		h.SetCount(uint64(random.IntN(100)))
		x := metric("exponential").SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
		times(x)
		x.Positive().BucketCounts().FromRaw([]uint64{1, uint64(random.IntN(2) * 200)}) // its size differs
		x.SetZeroCount(uint64(random.IntN(5)))
		s := metric("summary").SetEmptySummary().DataPoints().AppendEmpty()
		times(s)
		q := s.QuantileValues().AppendEmpty()
		q.SetQuantile(0.5)
		q.SetValue(someFloat(random))
	}
	return md
}

func someFloat(random *rand.Rand) float64 {
	return []func() float64{
		func() float64 { return float64(random.IntN(1000)) / 100 },
		func() float64 { return float64(random.IntN(1 << 40)) },
		func() float64 { return float64(random.Uint64()) },
		random.NormFloat64,
		func() float64 { return math.Copysign(0, -1) },
		func() float64 { return math.Float64frombits(random.Uint64()) },
		func() float64 { return math.Inf(1 - 2*random.IntN(2)) },
		math.NaN,
	}[random.IntN(8)]()
}

func TestWhatIsDecodedIsWhatWasSent(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		hosts := 1 + random.IntN(30)
		limit := []int{1 << 20, 20_000, 3000, 0}[seed%4]
		e := newEnds(t, limit)
		forgotten := 0
		for range 400 {
			b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(zoo(random, random.IntN(hosts)))
			require.NoError(t, err)
			before := slices.Clone(e.in.rows)
			e.pass(b)
			for i, r := range before {
				if r != nil && r != e.in.rows[i] {
					forgotten++
				}
			}
			if random.IntN(100) == 0 {
				e = newEnds(t, limit) // the stream broke
			}
		}
		if limit == 0 {
			require.Zero(t, e.in.used)
		} else {
			require.NotZero(t, forgotten)
		}
	}
}

func TestWhatGoesRoundDoesNotPushOutWhatIsThere(t *testing.T) {
	const targets, times = 40, 6
	payloads, _ := scrapes(t, targets, times, 0.3)
	e := newEnds(t, 150_000) // for half of them
	small := 0
	for i, p := range payloads {
		if e.pass(p) < len(p)/10 && i >= targets {
			small++
		}
	}
	require.Greater(t, small, (times-1)*targets/4)
	// When the others are gone, the remaining targets take their room.
	for range 20 {
		for _, p := range payloads[:targets/4] {
			small = e.pass(p)
		}
	}
	require.Less(t, small, len(payloads[0])/10)
}

func TestResourcesThatNeverComeAgainAreLeftAlone(t *testing.T) {
	e := newEnds(t, 1<<20)
	learned := 0
	for i := range 1000 {
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("host", "one")
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(fmt.Sprintf("metric-%06d", i))
		m.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(1)
		b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		require.NoError(t, err)
		before := slices.Clone(e.in.rows)
		e.pass(b)
		if !slices.Equal(before, e.in.rows) {
			learned++
		}
	}
	require.Less(t, learned, 50)
}

func TestPayloadsThatAreNoneAreRefused(t *testing.T) {
	e := NewEncoder(1 << 20)
	for _, bad := range []string{"\x0a", "\x0a\x05abc", "\x0a\x01a\x12\x01a", "\x0a\x81\x00a", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		out, ok := e.Append([]byte("x"), []byte(bad))
		require.False(t, ok, "%q", bad)
		require.Equal(t, "x", string(out))
	}
	out, ok := e.Append(nil, nil)
	require.True(t, ok)
	require.Empty(t, out)
}

func TestFaultsOfAFormAreErrors(t *testing.T) {
	payloads, _ := scrapes(t, 2, 2, 0.3)
	kind := func(row, kind int) []byte { return appendKind(nil, row, kind) }
	learn := func(row int) []byte {
		content, _ := protowire.ConsumeBytes(payloads[0][1:])
		return append(binary.AppendUvarint(kind(row, kindLearn), uint64(len(content))), content...)
	}
	for name, form := range map[string][]byte{
		"no kind":           {7},
		"cut":               {0x80},
		"cut content":       {kindPlain, 9, 1},
		"no row":            kind(0, kindStep),
		"nothing to forget": kind(3, kindForget),
		"no donor":          append(kind(0, kindJoin), 0),
		"a gap":             learn(1),
		"taken":             append(learn(0), learn(0)...),
		"no shape":          append(kind(0, kindLearn), 2, 0x0a, 0),
		"too short":         {kindPlain, 0},
		"too long":          append(learn(0), learn(1)...),
		"a step that ends":  append(learn(0), kind(0, kindStep)...),
		"a bad scale":       append(append(learn(0), kind(0, kindStep)...), append(slices.Repeat([]byte{0}, 2), slices.Repeat([]byte{0xff}, 100)...)...),
	} {
		_, err := NewDecoder(1<<20).Append(nil, form, len(payloads[0]), tag)
		require.Error(t, err, name)
	}
	_, err := NewDecoder(10_000).Append(nil, learn(0), len(payloads[0]), tag)
	require.ErrorIs(t, err, errFull)
}

func TestNumbersMoveExactly(t *testing.T) {
	f := func(before, now float64, most int) {
		t.Helper()
		b, n := math.Float64bits(before), math.Float64bits(now)
		out, s := appendMove(nil, scaleOf(b), b, n)
		r := &reader{rest: out}
		got, to := r.move(scaleOf(b), b)
		require.Equal(t, n, got)
		require.Equal(t, s, to)
		require.Empty(t, r.rest)
		require.LessOrEqual(t, len(out), most, "%v to %v", before, now)
	}
	f(1, 2, 1)
	f(1e15, 1e15+7000, 3)
	f(12345.67, 12355.6, 2)
	f(12, 12.25, 3)
	f(0.1, 0.3, 1)
	f(0, math.Copysign(0, -1), 9)
	f(1, math.NaN(), 9)
	f(math.NaN(), 3, 2)
	f(math.Inf(1), math.Inf(-1), 9)
	f(math.Pi, math.Pi*1.0001, 7)
	f(math.MaxFloat64, 1e-300, 9)
	f(1<<53, 1<<53-1, 1)
}

func FuzzDecode(f *testing.F) {
	payloads, _ := scrapes(f, 3, 3, 0.3)
	e := NewEncoder(1 << 20)
	var forms []byte
	for i, p := range payloads {
		form, _ := e.Append(nil, p)
		forms = append(forms, form...)
		f.Add(form, forms, (i+1)*len(p))
	}
	random := rand.New(rand.NewPCG(1, 2))
	small := NewEncoder(20_000)
	for i := range 30 {
		b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(zoo(random, i%3))
		require.NoError(f, err)
		form, _ := small.Append(nil, b)
		f.Add(form, form, len(b))
	}
	f.Fuzz(func(t *testing.T, a, b []byte, size int) {
		const limit = 200_000
		d := NewDecoder(limit)
		for _, form := range [][]byte{a, b, a} {
			out, err := d.Append(nil, form, max(0, min(size, 1<<20)), tag)
			require.LessOrEqual(t, len(out), 1<<20)
			require.LessOrEqual(t, d.used, limit)
			used := 0
			for shapes := map[*shape]int{}; len(shapes) == 0; shapes[nil] = 1 {
				for _, r := range d.rows {
					if r == nil {
						continue
					}
					used += r.cost()
					if shapes[r.shape]++; shapes[r.shape] == 1 {
						used += r.shape.cost()
					}
				}
			}
			require.Equal(t, used, d.used)
			if err != nil {
				return
			}
		}
	})
}

func FuzzPayloads(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 10 {
		one, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(zoo(random, i))
		require.NoError(f, err)
		other, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(zoo(random, i))
		require.NoError(f, err)
		f.Add(one, other)
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		e := newEnds(t, 50_000)
		for _, p := range [][]byte{a, b, a, b, b} {
			if len(p) == 0 || p[0] != tag {
				return
			}
			if _, ok := NewEncoder(0).Append(nil, p); !ok {
				return
			}
			e.pass(p)
		}
	})
}

func FuzzNumbers(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint64(3))
	f.Add(math.Float64bits(12.5), math.Float64bits(12.75), math.Float64bits(1e300))
	f.Fuzz(func(t *testing.T, a, b, c uint64) {
		s := scaleOf(a)
		for _, step := range [][2]uint64{{a, b}, {b, c}, {c, a}, {a, c}} {
			if step[0] == step[1] {
				return
			}
			out, to := appendMove(nil, s, step[0], step[1])
			r := &reader{rest: out}
			got, is := r.move(s, step[0])
			require.Equal(t, step[1], got)
			require.Equal(t, to, is)
			require.Empty(t, r.rest)
			s = to
		}
	})
}
