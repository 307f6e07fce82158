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
	// RoundPoints is how many points about the same things are in consecutive parts.
	RoundPoints = 1 << 13
)

// A Job is what the metrics of a job's targets have in common.
type Job struct {
	Name string
	// Reuse says that no consumer keeps metrics after they are released, or has changed more of them than Changes says.
	Reuse bool
	// Changes is what must be restored before metrics are filled again.
	Changes handback.Changes
	// Unread says that nobody reads the attributes of points without first asking for those that were left out.
	Unread bool
	// Later says that metrics are kept after the consumer has returned, and come back from the exporter. That applies
	// to trees: memory of metrics for which no tree is kept is then not used again, nor where metrics are removed.
	Later bool
	// JobAndInstance adds the attributes job and instance to resources.
	JobAndInstance bool
	// KeepIdentity takes service.name and service.instance.id from job and instance, whatever a target_info says.
	KeepIdentity bool
	// Part is how many points a part of a large page's metrics has, Round how many points about the same things are
	// made in turn.
	Part, Round int
	// Idle limits the points, over all jobs, in trees that are seldom filled; below 0, no tree is kept.
	Idle int64
	// BrokenHistograms counts histograms that were left out because their buckets are inconsistent.
	BrokenHistograms *atomic.Int64
	Logger           *zap.Logger

	Changed atomic.Bool // metrics came back in another state than they were handed out
}

// remakes reports whether memory is used again of metrics for which no tree is kept.
func (j *Job) remakes() bool { return j.Reuse && !j.Later && !j.Changes.Removes }

// IsLarge reports whether metrics of the given number of points are made in parts.
func (j *Job) IsLarge(points int) bool { return points > 2*j.Round }

// Divides reports whether metrics of the given number of points, for which no tree is kept, are made in parts.
func (j *Job) Divides(points int) bool { return points > 2*j.Part }

// cameBackChanged warns, once, that a consumer breaks the promise on which reuse is based. That costs speed only: the
// metrics are made anew.
func (j *Job) cameBackChanged() {
	if j.Later { // a batch processor may have cut them
		return
	}
	if !j.Changed.Swap(true) {
		j.Logger.Warn("A component changed metrics that it had promised not to change: they are built anew",
			zap.String("job", j.Name))
	}
}
