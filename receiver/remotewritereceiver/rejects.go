// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
)

// rejects counts the items of a request that could not be accepted, and keeps the first reason for the sender.
type rejects struct {
	counts [reasons]int
	first  error
}

type reason int

const (
	reasonLabels reason = iota
	reasonTimestamp
	reasonHistogram
	reasonOrphanExemplar
	reasonClusters
	reasons
)

var reasonNames = [reasons]string{"labels", "timestamp", "histogram", "orphan_exemplar", "clusters"}

// add counts items of the series at index. The error is nil if the sender is not at fault.
func (r *rejects) add(why reason, items, index int, name string, err error) {
	r.counts[why] += items
	if r.first == nil && err != nil {
		r.first = fmt.Errorf("series %d (%.200q): %w", index, name, err)
	}
}

// err is the error for the sender, if any.
func (r *rejects) err() error {
	if r.first == nil {
		return nil
	}
	total := 0
	for why, n := range r.counts {
		if reason(why) != reasonOrphanExemplar {
			total += n
		}
	}
	return fmt.Errorf("cannot take %d items, first: %w", total, r.first)
}

func (r *remoteWriteReceiver) countRejects(ctx context.Context, of *rejects) {
	for why, n := range of.counts {
		if n > 0 {
			r.telemetry.ReceiverRemotewriteRejectedItems.Add(ctx, int64(n), r.measured(attribute.String("reason", reasonNames[why])))
		}
	}
}
