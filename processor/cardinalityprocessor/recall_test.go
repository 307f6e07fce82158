// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	rand "math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// TestRecallChangesNoFingerprint: keys and values are repeated, at other positions, with other types and after other
// keys, including empty ones; strings are in memory of their own, or shared by equal ones.
func TestRecallChangesNoFingerprint(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var slabs slab.Slabs
	shared := map[string]*slab.Text{}
	for _, s := range []string{"", "a", "b", "1"} {
		shared[s] = slab.NewText(s)
	}
	m := pmetric.NewMetric()
	points := m.SetEmptyGauge().DataPoints()
	for range 2000 {
		a := points.AppendEmpty().Attributes()
		for n := random.IntN(6); n > 0; n-- {
			key := []string{"", "a", "b", "c", "dd"}[random.IntN(5)]
			switch text := []string{"", "a", "b", "1"}[random.IntN(4)]; random.IntN(12) {
			case 0:
				a.PutInt(key, int64(random.IntN(3)))
			case 1:
				a.PutEmpty(key)
			case 2:
				a.PutDouble(key, []float64{0, 1, math.NaN()}[random.IntN(3)])
			case 3:
				a.PutBool(key, random.IntN(2) == 0)
			case 4:
				a.PutEmptyBytes(key).FromRaw([]byte(text))
			case 5:
				a.PutEmptyMap(key).PutStr(text, text)
			case 6, 7, 8:
				a.PutStr(key, text)
			default:
				if _, ok := a.Get(key); !ok {
					slabs.PutText(a, key, shared[text])
				}
			}
		}
		if random.IntN(50) == 0 {
			for i := range 2 * ident.MaxRecalled {
				a.PutInt("n"+strconv.Itoa(i), int64(random.IntN(2)))
			}
		}
	}
	var r ident.Recall
	for range 2 {
		got, _ := r.Fingerprints(testHasher(), &ident.Hinted{}, nil, nil, 7, m)
		for i := range points.Len() {
			require.Equal(t, fingerprint(7, points.At(i).Attributes()), got[i], "point %d", i)
		}
		r.Forget()
	}
}
