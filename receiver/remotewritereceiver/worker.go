// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"

	"github.com/godwit-otel/godwit/internal/borrow"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/admission"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/replicas"
)

// worker turns bodies into metrics, one at a time, in memory that it keeps.
type worker struct {
	decompressor *promwrite.Decompressor
	decoder      promwrite.Decoder
	translator   translator
	plain        []byte // the body, decompressed

	// pause is how many requests are measured before one is tried without again, pauses how many were since the last
	// such try.
	pause, pauses int

	// kept is about the memory that the worker has grown to, usual about the most that its last requests needed.
	kept, usual int
}

// spareMemory is what a worker may keep beyond what its last requests needed.
const spareMemory = 4 << 20

func newWorker(cfg *Config, k *known) (*worker, error) {
	decompressor, err := promwrite.NewDecompressor(cfg.MaxDecodedBodySize)
	if err != nil {
		return nil, err
	}
	w := &worker{decompressor: decompressor}
	w.translator.prepare()
	w.translator.request.known, w.translator.recognition.scoped = k, cfg.ScopesFromLabels
	if cfg.Replicas.Deduplicate {
		w.translator.recognition.replicas = cfg.Replicas.rules()
	}
	return w, nil
}

// work decodes body, in memory that it first takes from m. The returned batch is in a tree, and refers neither to body
// nor to the worker.
func (w *worker) work(
	ctx context.Context, version promwrite.Version, encoding promwrite.Encoding, body []byte, m *admission.Hold, ballot *replicas.Ballot, into *tree,
) (batch, error) {
	text, err := w.inflate(ctx, encoding, body, m)
	if err != nil {
		return batch{}, err
	}
	length := len(text.String())
	w.decoder.MaxText = m.MostText()
	if b, ok := w.unmeasured(version, &text, m, ballot, into); ok { // fast path
		return b, nil
	}
	size, err := promwrite.Measure(version, text.String())
	if err != nil {
		return batch{}, err
	}
	if err = m.ForMetrics(ctx, length, &size); err != nil {
		return batch{}, err
	}
	w.remember(length, size.Memory())
	b, err := w.translator.translate(&text, &w.decoder, version, &size, m, ballot, into)
	b.plain = length
	return b, err
}

// maxPause is the most requests that are measured before one is tried without again.
const maxPause = 63

// unmeasured does the same without measuring the request, if free memory is enough. It returns false if it is not, and
// the request must be measured.
func (w *worker) unmeasured(version promwrite.Version, text *borrow.Text, m *admission.Hold, ballot *replicas.Ballot, into *tree) (b batch, ok bool) {
	if into.again == nil || ballot != nil || w.translator.layout.asker.infos != nil {
		return b, false // the one series describes the others
	}
	if w.pause > 0 {
		w.pause--
		return b, false
	}
	length := len(text.String())
	if !m.ForUsual(length) {
		return b, false
	}
	b, err := w.translator.translate(text, &w.decoder, version, nil, m, nil, into)
	if err != nil { // measuring may find the same error, and word it better
		if !into.takeBack() {
			mayDefer := into.mayDefer
			*into = *newTree(true)
			into.mayDefer = mayDefer
		}
		m.GiveUp()
		w.pauses = min(2*w.pauses+1, maxPause)
		w.pause = w.pauses
		return batch{}, false
	}
	w.pauses = 0
	w.remember(length, promwrite.UsualMemory(length))
	b.plain = length
	return b, true
}

// remember records the size of a request and the memory that decoding it took.
func (w *worker) remember(length, decoded int) {
	w.kept = max(w.kept, cap(w.plain)+decoded)
	w.usual = max(length+decoded, w.usual-w.usual/16)
}

// inflate returns the decompressed body, valid until the next call.
func (w *worker) inflate(ctx context.Context, encoding promwrite.Encoding, body []byte, m *admission.Hold) (text borrow.Text, err error) {
	if err := m.ForPlain(ctx, w.decompressor.Size(encoding, body), len(body)); err != nil {
		return text, err
	}
	plain, err := w.decompressor.Decompress(w.plain, encoding, body)
	if err != nil {
		return text, err
	}
	if encoding != promwrite.Identity {
		w.plain = plain
		w.kept = max(w.kept, cap(plain))
	}
	return borrow.Of(plain), nil
}

// oversized reports whether the worker has grown to much more than its last requests needed, and should be dropped.
func (w *worker) oversized() bool { return w.kept > 4*w.usual+spareMemory }
