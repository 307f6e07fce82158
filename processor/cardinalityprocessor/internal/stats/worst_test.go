// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
)

// ask tells of n series with a value each of the labels given, and then asks often enough for a look at the counts.
func ask(b *Book, metric string, n int, exploding ...string) string {
	for i := range n {
		labels := []string{"route", strconv.Itoa(i % 15)}
		for _, name := range exploding {
			labels = append(labels, name, name+strconv.Itoa(i))
		}
		b.Observe(seriesOf(metric, labels...))
	}
	answer := ""
	for range reconsider {
		answer, _ = b.Worst(metric, []string{"route", "user", "session"})
	}
	return answer
}

func TestWorstIsTheLabelWithMostValues(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	require.Empty(t, ask(b, "m", 0), "nothing is known")
	require.Empty(t, ask(b, "m", 1000), "all have few")
	require.Equal(t, "user", ask(b, "m", 100, "user"))
	require.Equal(t, "user", ask(b, "m", 190, "session"), "another one must have twice as many")
	require.Equal(t, "session", ask(b, "m", 300, "session"))
	_, ok := b.Worst("m", []string{"route"})
	require.False(t, ok, "it is not one of them, and the next is none")
}

// Of a metric whose labels are not counted by themselves, those of all metrics are what is known.
func TestWorstOfASmallMetric(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	for i := range 2 * maxDetailed {
		ask(b, strconv.Itoa(i), 1000)
	}
	require.Equal(t, "user", ask(b, "small", 100, "user"))
	require.Equal(t, "user", ask(b, "unknown", 0))
}
