// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
)

// ask records n series with a value for each of the given labels, and then asks often enough for the counts to be read.
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
		if answer = ""; len(b.Worst(metric, []string{"route", "user", "session"})) > 0 {
			answer = b.Worst(metric, []string{"route", "user", "session"})[0]
		}
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
	require.Empty(t, b.Worst("m", []string{"route"}), "it is not one of them, and the next is none")
}

// For a metric whose labels are not counted separately, the labels of all metrics are used.
func TestWorstOfASmallMetric(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	for i := range 2 * maxDetailed {
		ask(b, strconv.Itoa(i), 1000)
	}
	require.Equal(t, "user", ask(b, "small", 100, "user"))
	require.Equal(t, "user", ask(b, "unknown", 0))
}

// Labels that explode together are returned together, and others are not.
func TestWorstOfLabelsThatGoTogether(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	for i := range 2000 {
		id := strconv.Itoa(i % 1000)
		b.Observe(seriesOf("pods", "route", strconv.Itoa(i%15), "pod", "p"+id, "uid", "u"+id))
		b.Observe(seriesOf("users", "route", strconv.Itoa(i%15), "user", "u"+id))
	}
	require.ElementsMatch(t, []string{"pod", "uid"}, b.Worst("pods", []string{"route", "pod", "uid"}))
	require.Equal(t, []string{"uid"}, b.Worst("pods", []string{"uid"}))
	require.Equal(t, []string{"user"}, b.Worst("users", []string{"route", "user"}))
}
