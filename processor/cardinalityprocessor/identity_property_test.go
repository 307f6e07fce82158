// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"math"
	rand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// node is the value of an attribute, or a value within another one.
type node struct {
	kind   string // as in OTLP's JSON, "" for none
	scalar string
	keys   []string // of a map, possibly with duplicates
	inner  []node
}

var valueKinds = []string{"", "stringValue", "boolValue", "intValue", "doubleValue", "bytesValue", "arrayValue", "kvlistValue"}

func randomNode(r *rand.Rand, depth int) node {
	n := node{kind: valueKinds[r.IntN(len(valueKinds))]}
	pick := func(from ...string) { n.scalar = from[r.IntN(len(from))] }
	switch n.kind {
	case "stringValue":
		pick(`""`, `"1"`, `"a"`, `"aa"`, `"true"`, `"\u0000"`)
	case "boolValue":
		pick("true", "false")
	case "intValue":
		pick(`"0"`, `"1"`, `"-1"`, `"4607182418800017408"`, `"9223372036854775807"`) // including the bits of 1.0
	case "doubleValue":
		pick("0", "-0", "1", "-1", `"NaN"`, `"Infinity"`, "5e-324")
	case "bytesValue":
		pick(`""`, `"MQ=="`, `"YQ=="`, `"AAAAAAAAAAA="`, `"AAAAAAAAAAAA"`) // 1, a, 8 and 9 zeros
	case "arrayValue", "kvlistValue":
		for range r.IntN(4) {
			if depth == 0 {
				break
			}
			n.inner = append(n.inner, randomNode(r, depth-1))
			n.keys = append(n.keys, []string{"", "a", "b", "aa"}[r.IntN(4)])
		}
	}
	return n
}

// json returns a value as JSON, with the elements of maps in any order.
func (n node) json(r *rand.Rand) string {
	switch n.kind {
	case "":
		return "{}"
	case "arrayValue":
		var all []string
		for _, e := range n.inner {
			all = append(all, e.json(r))
		}
		return `{"arrayValue":{"values":[` + strings.Join(all, ",") + "]}}"
	case "kvlistValue":
		return `{"kvlistValue":{"values":` + n.list(r) + "}}"
	default:
		return fmt.Sprintf("{%q:%s}", n.kind, n.scalar)
	}
}

func (n node) list(r *rand.Rand) string {
	var all []string
	for i, e := range n.inner {
		all = append(all, fmt.Sprintf(`{"key":%q,"value":%s}`, n.keys[i], e.json(r)))
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return "[" + strings.Join(all, ",") + "]"
}

// spell returns the same text for equal values, and only for those.
func (n node) spell() string {
	var all []string
	for i, e := range n.inner {
		text := e.spell()
		if n.kind == "kvlistValue" {
			text = strconv.Quote(n.keys[i]) + text
		}
		all = append(all, text)
	}
	if n.kind == "kvlistValue" {
		slices.Sort(all)
	}
	return n.kind + "(" + n.scalar + strings.Join(all, ",") + ")"
}

// TestFingerprintsAreEqualExactlyOfEqualSeries compares fingerprints with an identity in full, over many series of few
// and similar values: as attributes of points, scopes and resources.
func TestFingerprintsAreEqualExactlyOfEqualSeries(t *testing.T) {
	racetest.Sequential(t)
	r := rand.New(rand.NewPCG(1, 2))
	byFingerprint, bySpelling := map[uint64]string{}, map[string]uint64{}
	var unmarshal pmetric.JSONUnmarshaler
	again := 0
	for range 20_000 {
		of := [3]node{{kind: "kvlistValue"}, {kind: "kvlistValue"}, {kind: "kvlistValue"}}
		for range r.IntN(3) {
			at := &of[r.IntN(3)]
			at.keys, at.inner = append(at.keys, []string{"", "a", "b"}[r.IntN(3)]), append(at.inner, randomNode(r, r.IntN(3)))
		}
		name, scope := []string{"", "a", "b"}[r.IntN(3)], []string{"", "a", "b"}[r.IntN(3)]
		unit, version := []string{"", "a"}[r.IntN(2)], []string{"", "a"}[r.IntN(2)]
		spelling := fmt.Sprintf("%q %q %q %q ", name, unit, scope, version)
		spelling += of[0].spell() + of[1].spell() + of[2].spell()
		md, err := unmarshal.UnmarshalMetrics(fmt.Appendf(nil, `{"resourceMetrics":[{"resource":{"attributes":%s},"scopeMetrics":[{"scope":`+
			`{"name":%q,"version":%q,"attributes":%s},"metrics":[{"name":%q,"unit":%q,"gauge":{"dataPoints":[{"attributes":%s}]}}]}]}]}`,
			of[0].list(r), scope, version, of[1].list(r), name, unit, of[2].list(r)))
		require.NoError(t, err)
		fp := fingerprintsOf(md)[0]
		if other, ok := byFingerprint[fp]; ok {
			require.Equal(t, other, spelling, "one fingerprint of two")
			again++
		} else if other, ok := bySpelling[spelling]; ok {
			require.Equal(t, other, fp, "two fingerprints of %s", spelling)
		}
		byFingerprint[fp], bySpelling[spelling] = spelling, fp
	}
	require.Greater(t, again, 100, "equal ones must come, too")
	require.Greater(t, len(byFingerprint), 1000)
}

// TestNumbersAreToldByTheirBits, including NaNs.
func TestNumbersAreToldByTheirBits(t *testing.T) {
	seen := map[uint64]bool{}
	all := []float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0x7ff8000000000002), math.Inf(1), math.Inf(-1)}
	for _, f := range all {
		seen[fingerprint(1, attributesOf(attrs{"a": f}))] = true
	}
	require.Len(t, seen, len(all))
}
