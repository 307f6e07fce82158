// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/store"
)

// Names of what is saved: the places, part by part, the limits by which these are counted, the overflow, and the
// aggregates.
const (
	SnapshotLimits     = "limits"
	SnapshotLedger     = "overflow"
	SnapshotAggregates = "aggregates"
)

// SnapshotKey is the name of a part of the places.
func SnapshotKey(part int) string { return "shard" + strconv.Itoa(part) }

func feedersKey(part int) string { return SnapshotAggregates + strconv.Itoa(part) }

var errNoStorage = errors.New("it is not configured, or not a storage extension")

// OpenStorage returns the client of the storage extension for one instance: that of a pipeline, or of all.
func OpenStorage(ctx context.Context, host component.Host, id, owner component.ID, of string) (storage.Client, error) {
	extension, ok := host.GetExtensions()[id].(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("cannot use `storage` %q: %w", id, errNoStorage)
	}
	client, err := extension.GetClient(ctx, component.KindProcessor, owner, of)
	if err != nil {
		return nil, fmt.Errorf("cannot open `storage` %q: %w", id, err)
	}
	return client, nil
}

// A Snapshot saves the state of a gate, and restores it.
type Snapshot struct {
	gate *Gate

	Storage  *store.Keyed // nil if nothing is saved
	Failures atomic.Int64
}

// Save writes all parts, one after the other. Batches continue meanwhile.
func (s *Snapshot) Save(ctx context.Context) error {
	g := s.gate
	if err := s.Storage.Set(ctx, SnapshotLimits, g.Limiter.AppendLimits(nil, g.Rules.Current())); err != nil {
		return fmt.Errorf("cannot save the limits: %w", err)
	}
	var buf []byte
	for i := range series.PartCount {
		buf = g.Limiter.AppendPart(buf[:0], i)
		if err := s.Storage.Set(ctx, SnapshotKey(i), buf); err != nil {
			return fmt.Errorf("cannot save part %d of %d (%d bytes): %w", i, series.PartCount, len(buf), err)
		}
	}
	return nil
}

// Load restores what was saved. Damaged parts are left out: their series must find a place again.
func (s *Snapshot) Load(ctx context.Context) error {
	g := s.gate
	limits, err := s.Storage.Get(ctx, SnapshotLimits)
	if err != nil {
		return fmt.Errorf("cannot read the snapshot: %w", err)
	}
	damaged, whole := 0, true
	for i := range series.PartCount {
		saved, err := s.Storage.Get(ctx, SnapshotKey(i))
		if err != nil {
			return fmt.Errorf("cannot read the snapshot: %w", err)
		}
		if len(saved) > 0 && g.Limiter.RestorePart(i, saved) != nil {
			damaged++
		}
		whole = whole && len(saved) > 0 && damaged == 0
	}
	known, err := series.ParseLimits(limits)
	if err != nil {
		damaged++
	}
	for _, load := range []func(context.Context) (bool, error){s.loadLedger, s.loadFeeders} {
		if bad, err := load(ctx); err != nil {
			return err
		} else if bad {
			damaged++
		}
	}
	if !whole { // series whose place is not known have sent everything themselves
		g.Overflow.Doubt()
	}
	if s.Storage.Later > 0 {
		for i := range aggregate.MaxParts { // which are not looked for otherwise
			if _, err := s.Storage.Get(ctx, feedersKey(i)); err != nil {
				return fmt.Errorf("cannot read the snapshot: %w", err)
			}
		}
		g.Logger.Warn("The snapshot is of a later version: it is kept beside that of this one", zap.Int("parts", s.Storage.Later))
	}
	if s.Storage.Foreign > 0 {
		g.Logger.Warn("Ignoring the snapshot: it has another key or is of an earlier version", zap.Int("parts", s.Storage.Foreign))
	}
	if damaged > 0 {
		g.Logger.Warn("Ignoring damaged parts of the snapshot", zap.Int("parts", damaged))
	}
	g.Rules.Policy = &policy.Policy{Known: known, Instance: g.Telemetry.Instance} // the current rules come next
	return nil
}

// SaveLedger writes the current ledger.
func (s *Snapshot) SaveLedger(ctx context.Context, closed bool) error {
	if s.Storage == nil {
		return nil
	}
	if err := s.Storage.Set(ctx, SnapshotLedger, s.gate.Overflow.SealedLedger(closed)); err != nil {
		return fmt.Errorf("cannot save the overflow: %w", err)
	}
	return nil
}

// loadLedger restores the saved ledger, and opens it again. It must come after the places.
func (s *Snapshot) loadLedger(ctx context.Context) (damaged bool, err error) {
	g := s.gate
	saved, err := s.Storage.Get(ctx, SnapshotLedger)
	if err != nil {
		return false, fmt.Errorf("cannot read the snapshot: %w", err)
	}
	if len(saved) > 0 && !g.DryRun {
		now := g.Limiter.Now()
		damaged = g.Overflow.RestoreLedger(saved, now.Epoch()) != nil
		for fp, owns := range g.Overflow.Restored() {
			if g.Limiter.Lapse(fp, now, owns) && !owns {
				g.Overflow.Grant(fp)
			}
		}
	}
	if s.SaveLedger(ctx, false) != nil { // as it will be when it is next written
		s.Failures.Add(1)
	}
	return damaged, nil
}

// SaveFeeders writes what the shards were drained for. With due set, the process continues.
func (s *Snapshot) SaveFeeders(ctx context.Context, due map[*aggregate.State]pcommon.Timestamp) error {
	state, shards := s.gate.Aggregator.Snapshot(s.gate.Now(), due)
	values := map[string][]byte{SnapshotAggregates: state}
	for i := range shards {
		values[feedersKey(i)] = shards[i]
	}
	if err := s.Storage.SetAll(ctx, values); err != nil {
		return fmt.Errorf("cannot save the aggregates: %w", err)
	}
	return nil
}

// CloseFeeders writes what there is at the end.
func (s *Snapshot) CloseFeeders(ctx context.Context) error {
	return s.gate.Aggregator.Close(func() error { return s.SaveFeeders(ctx, nil) })
}

// loadFeeders restores what was saved. If it is damaged, all of it is left out: parts are useless on their own.
func (s *Snapshot) loadFeeders(ctx context.Context) (damaged bool, err error) {
	g := s.gate
	saved, err := s.Storage.Get(ctx, SnapshotAggregates)
	if err != nil {
		return false, fmt.Errorf("cannot read the snapshot: %w", err)
	}
	if len(saved) == 0 || g.DryRun {
		return false, nil
	}
	a, err := g.Aggregator.Restored(saved, g.Limiter.Now().Epoch(), g.Now(), func(i int) ([]byte, error) {
		return s.Storage.Get(ctx, feedersKey(i))
	})
	if err != nil {
		return false, fmt.Errorf("cannot read the snapshot: %w", err)
	}
	if a == nil {
		return true, nil
	}
	g.Aggregator = a
	return false, nil
}
