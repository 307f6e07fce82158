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

// answerShare limits the list of jobs, as lists of targets are limited. A job takes about one kilobyte.
var answerShare = memlimit.Share{Part: 32, Least: 8 << 20, Most: 64 << 20}

// answerPiece is how much of an answer is read at once.
const answerPiece = 64 << 10

// readAnswer reads an answer that is no larger than limit. Of a larger one it holds no more than that: a slice that
// grows while it is read leaves several times its size to the garbage collector.
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

// readPiece is io.ReadFull, except that an answer which was cut off gives another error than the end of one.
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
