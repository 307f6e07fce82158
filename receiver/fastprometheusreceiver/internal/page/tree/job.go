// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/handback"
)

const (
	// PartPoints is how many points a part of a large page's metrics has.
	PartPoints = 1 << 9
	// RoundPoints is how many the parts have that are about the same things.
	RoundPoints = 1 << 13
)

// A Job is what the metrics of a job's targets are made by.
type Job struct {
	Name string
	// Reuse says that nobody keeps metrics once they are released, or has changed more of them than Changes says.
	Reuse bool
	// Changes is what is put back before metrics are filled again.
	Changes handback.Changes
	// Unread says that nobody reads attributes of points but who asks what is owed, and settles it.
	Unread bool
	// Later says that metrics are kept after the consumer has returned, and come back from the exporter. That holds for trees: what is made of
	// memory that serves any page is not used again.
	Later bool
	// JobAndInstance gives resources these two as attributes, too.
	JobAndInstance bool
	// KeepIdentity keeps service.name and service.instance.id what job and instance are, whatever a target_info says.
	KeepIdentity bool
	// Part is how many points a part of a large page's metrics has, Round how many the parts have that are about the same things.
	Part, Round int
	// Idle is how many points wait in trees that are seldom filled, in all jobs together; less than 0 says that no tree is kept.
	Idle int64
	// BrokenHistograms counts histograms that were left out because their buckets make no sense.
	BrokenHistograms *atomic.Int64
	Logger           *zap.Logger

	Changed atomic.Bool // metrics came back that were not as they had been
}

// remakes tells whether metrics for which no tree is kept are made of memory that is used again.
func (j *Job) remakes() bool { return j.Reuse && !j.Later }

// IsLarge tells whether metrics of so many points come in parts.
func (j *Job) IsLarge(points int) bool { return points > 2*j.Round }

// Divides tells whether metrics of so many points, of which no tree is kept, come in parts.
func (j *Job) Divides(points int) bool { return points > 2*j.Part }

// cameBackChanged says, once, that somebody does not keep the promise on which memory is used again. It costs no more than
// that: the metrics are made anew.
func (j *Job) cameBackChanged() {
	if j.Later { // a batch may have had to cut them
		return
	}
	if !j.Changed.Swap(true) {
		j.Logger.Warn("A component changed metrics that it had promised not to change: they are built anew",
			zap.String("job", j.Name))
	}
}
