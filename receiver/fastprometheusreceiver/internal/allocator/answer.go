// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/godwit-otel/godwit/internal/memlimit"
)

// answerShare bounds the list of jobs, as it does lists of targets. A job takes about one kilobyte.
var answerShare = memlimit.Share{Part: 32, Least: 8 << 20, Most: 64 << 20}

// answerPiece is how much of an answer is read at once.
const answerPiece = 64 << 10

// readAnswer reads what is no larger than limit. It holds no more of a larger one than that: a slice that grows as it is read
// leaves several times its size behind.
func readAnswer(from io.Reader, limit int64) ([]byte, error) {
	var pieces [][]byte
	var size int64
	for {
		piece, err := readPiece(from)
		pieces = append(pieces, piece)
		size += int64(len(piece))
		switch {
		case size > limit:
			return nil, fmt.Errorf("the answer is larger than %s", memlimit.Size(limit))
		case errors.Is(err, io.EOF):
			return bytes.Join(pieces, nil), nil
		case err != nil:
			return nil, err
		}
	}
}

// readPiece is io.ReadFull, but for the error: that of an answer which was cut off is another than that of its end.
func readPiece(from io.Reader) (piece []byte, err error) {
	piece = make([]byte, answerPiece)
	n := 0
	for n < len(piece) && err == nil {
		var more int
		more, err = from.Read(piece[n:])
		n += more
	}
	return piece[:n], err
}
