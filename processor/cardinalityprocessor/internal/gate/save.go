// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
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

// Save writes all parts, one after the other. Batches continue meanwhile.
func (g *Gate) Save(ctx context.Context) error {
	g.Rules.RLock()
	policy := g.Policy
	g.Rules.RUnlock()
	if err := g.Storage.Set(ctx, SnapshotLimits, g.Limiter.AppendLimits(nil, policy)); err != nil {
		return fmt.Errorf("cannot save the limits: %w", err)
	}
	var buf []byte
	for i := range series.PartCount {
		buf = g.Limiter.AppendPart(buf[:0], i)
		if err := g.Storage.Set(ctx, SnapshotKey(i), buf); err != nil {
			return fmt.Errorf("cannot save part %d of %d (%d bytes): %w", i, series.PartCount, len(buf), err)
		}
	}
	return nil
}

// Load restores what was saved. Damaged parts are left out: their series must find a place again.
func (g *Gate) Load(ctx context.Context) error {
	limits, err := g.Storage.Get(ctx, SnapshotLimits)
	if err != nil {
		return fmt.Errorf("cannot read the snapshot: %w", err)
	}
	damaged, whole := 0, true
	for i := range series.PartCount {
		saved, err := g.Storage.Get(ctx, SnapshotKey(i))
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
	for _, load := range []func(context.Context) (bool, error){g.loadLedger, g.loadFeeders} {
		if bad, err := load(ctx); err != nil {
			return err
		} else if bad {
			damaged++
		}
	}
	if !whole { // series whose place is not known have sent everything themselves
		g.Overflow.Doubt()
	}
	if g.Storage.Later > 0 {
		for i := range aggregate.MaxParts { // which are not looked for otherwise
			if _, err := g.Storage.Get(ctx, feedersKey(i)); err != nil {
				return fmt.Errorf("cannot read the snapshot: %w", err)
			}
		}
		g.Logger.Warn("The snapshot is of a later version: it is kept beside that of this one", zap.Int("parts", g.Storage.Later))
	}
	if g.Storage.Foreign > 0 {
		g.Logger.Warn("Ignoring the snapshot: it has another key or is of an earlier version", zap.Int("parts", g.Storage.Foreign))
	}
	if damaged > 0 {
		g.Logger.Warn("Ignoring damaged parts of the snapshot", zap.Int("parts", damaged))
	}
	g.Policy = &policy.Policy{Known: known, Instance: g.Instance} // the current rules come next
	return nil
}

// SaveLedger writes the current ledger.
func (g *Gate) SaveLedger(ctx context.Context, closed bool) error {
	if g.Storage == nil {
		return nil
	}
	if err := g.Storage.Set(ctx, SnapshotLedger, g.Overflow.SealedLedger(closed)); err != nil {
		return fmt.Errorf("cannot save the overflow: %w", err)
	}
	return nil
}

// loadLedger restores the saved ledger, and opens it again. It must come after the places.
func (g *Gate) loadLedger(ctx context.Context) (damaged bool, err error) {
	saved, err := g.Storage.Get(ctx, SnapshotLedger)
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
	if g.SaveLedger(ctx, false) != nil { // as it will be when it is next written
		g.SaveFailure.Add(1)
	}
	return damaged, nil
}

// SaveFeeders writes what the shards were drained for. With due set, the process continues.
func (g *Gate) SaveFeeders(ctx context.Context, due map[*aggregate.State]pcommon.Timestamp) error {
	state, shards := g.Aggregator.Snapshot(g.Now(), due)
	values := map[string][]byte{SnapshotAggregates: state}
	for i := range shards {
		values[feedersKey(i)] = shards[i]
	}
	if err := g.Storage.SetAll(ctx, values); err != nil {
		return fmt.Errorf("cannot save the aggregates: %w", err)
	}
	return nil
}

// CloseFeeders writes what there is at the end.
func (g *Gate) CloseFeeders(ctx context.Context) error {
	return g.Aggregator.Close(func() error { return g.SaveFeeders(ctx, nil) })
}

// loadFeeders restores what was saved. If it is damaged, all of it is left out: parts are useless on their own.
func (g *Gate) loadFeeders(ctx context.Context) (damaged bool, err error) {
	saved, err := g.Storage.Get(ctx, SnapshotAggregates)
	if err != nil {
		return false, fmt.Errorf("cannot read the snapshot: %w", err)
	}
	if len(saved) == 0 || g.DryRun {
		return false, nil
	}
	a, err := g.Aggregator.Restored(saved, g.Limiter.Now().Epoch(), g.Now(), func(i int) ([]byte, error) {
		return g.Storage.Get(ctx, feedersKey(i))
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
