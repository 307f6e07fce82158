// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/internal/reuse"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/decode"
)

// again is memory of metrics that the pipeline has returned, if no component keeps it. Its zero value has none.
type again struct {
	lists atomic.Pointer[decode.Lists] // nil if metrics are made anew
	free  sync.Pool                    // of *reuse.Metrics
	aged  atomic.Int64                 // when lists were last aged
	log   *zap.Logger
}

// listShare is the share of the memory for attributes that come again: one part in 64.
var listShare = memlimit.Share{Part: 64, Least: 4 << 20, Most: 64 << 20}

// listAge is how often attributes that no longer come are looked for.
const listAge = 10 * time.Second

// decide decides whether the memory of metrics is used again, and logs it.
func (a *again) decide(host component.Host, set receiver.Settings) {
	a.log = set.Logger
	obstacles := handback.Ask(host, set.ID)
	switch {
	case !slab.Places():
		obstacles = append(obstacles, handback.Obstacle{What: "this build", Why: "does not know how metrics look in memory"})
	case handback.Poisons(): // shared attributes cannot be overwritten
		obstacles = append(obstacles, handback.Obstacle{What: "this build", Why: "overwrites memory that is handed back"})
	}
	if len(obstacles) > 0 {
		set.Logger.Info("The memory of metrics is not used again",
			zap.String("because_of", obstacles[0].What), zap.String("which", obstacles[0].Why))
		return
	}
	set.Logger.Info("The memory of metrics is used again once the pipeline has taken them")
	a.lists.Store(decode.NewLists(int(listShare.Of(memlimit.Available()))))
}

func (a *again) used() int64 {
	if a.lists.Load() == nil {
		return 0
	}
	return 1
}

// get returns memory for the metrics of a request, and the known attributes; nil if metrics are to be made anew.
func (a *again) get() (*reuse.Metrics, *decode.Lists) {
	lists := a.lists.Load()
	if lists == nil {
		return nil, nil
	}
	now := time.Now()
	if last := a.aged.Load(); moment(now)-last > int64(listAge) && a.aged.CompareAndSwap(last, moment(now)) {
		lists.Age(now)
	}
	if m, ok := a.free.Get().(*reuse.Metrics); ok {
		return m, lists
	}
	return reuse.New(), lists
}

// lend returns the context for handing metrics on.
func lend(ctx context.Context, m *reuse.Metrics) context.Context {
	if m == nil {
		return ctx
	}
	return m.Lend(ctx)
}

// takeBack takes back what the pipeline has accepted, or what nobody has seen; nil is ignored.
func (a *again) takeBack(m *reuse.Metrics) {
	switch {
	case m == nil:
	case m.TakeBack():
		a.free.Put(m)
	case m.Changed() && a.lists.Swap(nil) != nil:
		a.log.Error("A component of the pipeline changed attributes that several requests share: some of them may have been "+
			"delivered with its changes. From now on nothing is shared",
			zap.String("what_to_do", "find the processor that changes attributes of points in place and says that it does not keep metrics"))
	}
}
