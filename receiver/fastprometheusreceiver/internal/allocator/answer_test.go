// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"bytes"
	"io"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnswersAreReadWhole(t *testing.T) {
	for _, size := range []int{0, 1, answerPiece - 1, answerPiece, answerPiece + 1, 3*answerPiece + 7} {
		want := bytes.Repeat([]byte("job "), size)[:size]
		for name, from := range map[string]io.Reader{
			"plain":        bytes.NewReader(want),
			"one byte":     iotest.OneByteReader(bytes.NewReader(want)),
			"end and data": iotest.DataErrReader(bytes.NewReader(want)),
		} {
			got, err := readAnswer(from, int64(size))
			require.NoError(t, err, name)
			assert.True(t, bytes.Equal(want, got), "%s: %d", name, size)
		}
		if size > 0 {
			_, err := readAnswer(bytes.NewReader(want), int64(size)-1)
			require.ErrorContains(t, err, "larger than")
		}
		_, err := readAnswer(io.MultiReader(bytes.NewReader(want), iotest.ErrReader(io.ErrUnexpectedEOF)), 1<<30)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "cut off")
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestEndlessAnswerTakesItsLimit checks that an endless response is held only once, up to the limit.
func TestEndlessAnswerTakesItsLimit(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readAnswer(endless{}, 32<<20)
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "larger than 32MiB")
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(34<<20))
}
