// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"errors"
	"sync/atomic"

	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/send"
)

// A round is what is encoded and stored together.
type round struct {
	taken   chan struct{} // closed when encoding begins: what is added now belongs to the next round
	queued  chan struct{} // closed when the blocks are in the queue, or err says why not
	err     error
	batches atomic.Int64 // of the pipeline
	fate    *queue.Fate  // of its blocks; nil if there are none
}

func newRound() *round { return &round{taken: make(chan struct{}), queued: make(chan struct{})} }

// result waits for what becomes of the data of some tenants in a round that is queued. If any of it may be delivered when it
// is brought again, the error says so.
func (r *round) result(ctx context.Context, tenants []string) error {
	if r.fate == nil {
		return nil
	}
	var permanent error
	for _, tenant := range tenants {
		err := r.fate.Await(ctx, tenant)
		lost := (*send.LostError)(nil)
		switch {
		case err == nil:
		case errors.As(err, &lost) && !lost.Again():
			permanent = consumererror.NewPermanent(err)
		default:
			return err
		}
	}
	return permanent
}
