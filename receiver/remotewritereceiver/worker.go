// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// worker turns bodies into metrics, one at a time, in memory it keeps.
type worker struct {
	decompressor *promwrite.Decompressor
	decoder      promwrite.Decoder
	translator   translator
	plain        []byte // the body, decompressed

	// kept is about the bytes that the worker has grown to, usual about the most that its last requests needed.
	kept, usual int
}

// spareMemory is what a worker may keep that its last requests did not need.
const spareMemory = 4 << 20

func newWorker(maxDecodedBodySize int, scoped bool) (*worker, error) {
	decompressor, err := promwrite.NewDecompressor(maxDecodedBodySize)
	if err != nil {
		return nil, err
	}
	return &worker{decompressor: decompressor, translator: translator{scoped: scoped}}, nil
}

// work decodes body, in memory that it takes from m first. The batch it returns refers neither to body nor to the worker.
func (w *worker) work(
	ctx context.Context, version promwrite.Version, encoding promwrite.Encoding, body []byte, m *hold, ballot *ballot,
) (batch, error) {
	msg, err := w.inflate(ctx, encoding, body, m)
	if err != nil {
		return batch{}, err
	}
	size, err := promwrite.Measure(version, msg)
	if err != nil {
		return batch{}, err
	}
	if err = m.forMetrics(ctx, len(msg), &size); err != nil {
		return batch{}, err
	}
	w.kept = max(w.kept, cap(w.plain)+size.Memory())
	w.usual = max(len(msg)+size.Memory(), w.usual-w.usual/16)
	if err = w.decoder.DecodeMeasured(version, msg, size); err != nil {
		return batch{}, err
	}
	defer w.decoder.Reset() // what it refers to is the batch's alone
	b := w.translator.translate(w.decoder.Series, ballot)
	b.plain = len(msg)
	return b, nil
}

// inflate returns the body decompressed, as a copy that strings may refer to.
func (w *worker) inflate(ctx context.Context, encoding promwrite.Encoding, body []byte, m *hold) (string, error) {
	if err := m.forPlain(ctx, w.decompressor.Size(encoding, body)); err != nil {
		return "", err
	}
	plain, err := w.decompressor.Decompress(w.plain, encoding, body)
	if err != nil {
		return "", err
	}
	if encoding != promwrite.Identity {
		w.plain = plain
		w.kept = max(w.kept, cap(plain))
	}
	return string(plain), nil
}

// oversized says whether the worker has grown to much more than its last requests needed, so that it had better go.
func (w *worker) oversized() bool { return w.kept > 4*w.usual+spareMemory }
