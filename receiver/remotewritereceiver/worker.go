// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import "github.com/godwit-otel/godwit/internal/promwrite"

// worker turns bodies into metrics, one at a time, in memory it keeps.
type worker struct {
	decompressor *promwrite.Decompressor
	decoder      promwrite.Decoder
	translator   translator
	plain        []byte // the body, decompressed
}

const maxRetainedPlain = 16 << 20 // twice what senders make on purpose

func newWorker(maxDecodedBodySize int) (*worker, error) {
	decompressor, err := promwrite.NewDecompressor(maxDecodedBodySize)
	if err != nil {
		return nil, err
	}
	return &worker{decompressor: decompressor}, nil
}

// work decodes body. The batch it returns refers neither to body nor to the worker.
func (w *worker) work(version promwrite.Version, encoding promwrite.Encoding, body []byte) (batch, error) {
	plain, err := w.decompressor.Decompress(w.plain, encoding, body)
	if err != nil {
		return batch{}, err
	}
	if encoding != promwrite.Identity && cap(plain) <= maxRetainedPlain {
		w.plain = plain
	}
	if err := w.decoder.Decode(version, plain); err != nil {
		return batch{}, err
	}
	b, err := w.translator.translate(w.decoder.Series)
	b.plain = len(plain)
	return b, err
}
