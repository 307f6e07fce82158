// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAHistoryAnswersAsPrometheusWould(t *testing.T) {
	h := New(t)
	for i := range 5 {
		h.Scraped("geese", "a:1", fmt.Sprintf("# TYPE honks counter\nhonks{flock=\"north\"} %d\n", 30*i))
		h.Down("geese", "b:1")
		if i < 4 {
			h.Pass(15 * time.Second)
		}
	}
	honks := h.Query(`honks`)
	require.Len(t, honks, 1)
	assert.Equal(t, `{__name__="honks", flock="north", instance="a:1", job="geese"}`, honks[0].Metric.String())
	assert.InDelta(t, 120, honks[0].F, 0)
	rate := h.Query(`sum(rate(honks[1m]))`)
	require.Len(t, rate, 1)
	assert.InDelta(t, 2, rate[0].F, 0.01)
	assert.Len(t, h.Query(`up == 0`), 1)
	assert.Empty(t, h.Query(`ducks`))
	h.Pass(time.Hour)
	assert.Empty(t, h.Query(`up`), "what is old is gone")
}

func TestAlertsFireOnceTheyHaveLasted(t *testing.T) {
	h := New(t)
	a := Alert{Expr: `honks > 10`, For: time.Minute}
	evaluate := func(value, minutes int) (firing int) {
		t.Helper()
		for range minutes {
			h.Scraped("geese", "a:1", fmt.Sprintf("honks %d\n", value))
			firing = len(a.Evaluate(h))
			h.Pass(time.Minute)
		}
		return firing
	}
	assert.Zero(t, evaluate(11, 1), "not yet")
	assert.Equal(t, 1, evaluate(12, 1))
	assert.Zero(t, evaluate(9, 1))
	assert.Zero(t, evaluate(11, 1), "from the beginning")
	assert.Equal(t, 1, evaluate(11, 2))
}
