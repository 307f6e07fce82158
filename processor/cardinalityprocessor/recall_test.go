// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	rand "math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// TestRecallChangesNoFingerprint: keys and values come again, in other places, as other types and after other keys, and
// empty ones do, too.
func TestRecallChangesNoFingerprint(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	m := pmetric.NewMetric()
	points := m.SetEmptyGauge().DataPoints()
	for range 2000 {
		a := points.AppendEmpty().Attributes()
		for n := random.IntN(6); n > 0; n-- {
			key := []string{"", "a", "b", "c", "dd"}[random.IntN(5)]
			switch random.IntN(4) {
			case 0:
				a.PutInt(key, int64(random.IntN(3)))
			case 1:
				a.PutEmpty(key)
			default:
				a.PutStr(key, []string{"", "a", "b", "1"}[random.IntN(4)])
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
		require.Len(t, r, ident.MaxRecalled)
		r.Forget()
		require.Empty(t, r)
	}
	for _, b := range r[:cap(r)] {
		require.Zero(t, b, "it is not to keep strings")
	}
}
