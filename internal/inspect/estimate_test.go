// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnEstimateIsShownWhenItIsKnown(t *testing.T) {
	f := func(e Estimate, want string) {
		t.Helper()
		got, err := json.Marshal(map[string]Estimate{"N": e})
		require.NoError(t, err)
		require.JSONEq(t, `{"N":`+want+`}`, string(got))
	}
	f(Estimate{}, `{"value":0,"error":0}`)
	f(Estimate{Value: 7}, `{"value":7,"error":0}`)
	f(Estimate{Value: 7, Error: 6}, `{"value":7,"error":6}`)
	f(Estimate{Value: 7, Error: 7}, `{"value":0,"error":0,"at_most":21}`)
	f(Estimate{Value: 3, Error: 4.2}, `{"value":0,"error":0,"at_most":12}`)
	f(Estimate{Error: 4}, `{"value":0,"error":0,"at_most":8}`)
	f(Estimate{Value: -3, Error: 4}, `{"value":0,"error":0,"at_most":8}`)
}

func TestErrorsOfSumsAreThoseOfBoth(t *testing.T) {
	require.Equal(t, Estimate{Value: 30, Error: 5}, Estimate{Value: 10, Error: 3}.Plus(Estimate{Value: 20, Error: 4}))
}
