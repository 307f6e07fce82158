// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

func TestNothingWaitsTwice(t *testing.T) {
	q := NewTypedWithConfig(TypedQueueConfig[string]{Name: "test"})
	get := func() string {
		t.Helper()
		item, ended := q.Get()
		assert.False(t, ended)
		return item
	}
	q.Add("a")
	q.Add("b")
	q.Add("a")
	assert.Equal(t, "a", get())
	assert.Equal(t, "b", get())

	// An item that is added while it is processed waits until that is done.
	q.Add("a")
	q.Add("a")
	q.Add("c")
	assert.Equal(t, "c", get())
	q.Done("a")
	assert.Equal(t, "a", get())
	q.Done("a")

	// Items in the queue at its end are still returned.
	q.Add("d")
	q.ShutDown()
	q.Add("e")
	assert.Equal(t, "d", get())
	_, ended := q.Get()
	assert.True(t, ended)
}

func TestGetWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewTypedWithConfig(TypedQueueConfig[int]{})
		var got []int
		go func() {
			for item, ended := q.Get(); !ended; item, ended = q.Get() {
				got = append(got, item)
				q.Done(item)
			}
			got = append(got, -1)
		}()
		synctest.Wait()
		assert.Empty(t, got)
		q.Add(1)
		synctest.Wait()
		assert.Equal(t, []int{1}, got)
		q.ShutDown()
		synctest.Wait()
		assert.Equal(t, []int{1, -1}, got)
	})
}
