// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/memlimit"
)

const (
	// defaultQueueSize is the size of a queue for which the configuration sets none, if there is memory for it.
	defaultQueueSize = 64 << 20
	// queueDivisor is the part of the memory that queues may take for which the configuration sets no size.
	queueDivisor = 8
)

// queueShare is the default size of each of several queues in memory that do not share their content.
func queueShare(queues int) memlimit.Share {
	return memlimit.Share{Part: queueDivisor * int64(queues), Least: 1 << 20, Most: defaultQueueSize}
}

// DefaultQueueSize is the size of a queue in memory for which the configuration sets none.
func DefaultQueueSize() int64 { return queueShare(1).Of(memlimit.Available()) }

// sizeQueues sets the sizes that the configuration does not set. A queue in memory gets less than one on disk if there
// is little memory: otherwise a server that is away would end the process.
func (e *remoteWrite) sizeQueues(clients []namedClient, onDisk bool, memory int64) {
	queues := 1
	if !e.intake.routing.isCommon() {
		queues = len(clients)
	}
	size, share := int64(defaultQueueSize), queueShare(queues)
	if !onDisk {
		size = share.Of(memory)
	}
	isLess := false
	for i := range clients {
		if clients[i].queue.Size == 0 {
			clients[i].queue.Size = size
			isLess = size < defaultQueueSize
		}
	}
	if isLess {
		e.set.Logger.Info("The queue is smaller than usual because there is little memory: set `queue.size` to change that, or `queue.directory` to keep it on disk",
			zap.String("size", memlimit.Size(size)), zap.String("which is", share.Why(memory)))
	}
}
