// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
)

// routing decides which destinations get a block: all of them, or each its own part of it or copy, since series are
// spread over destinations or some have rules of their own.
type routing struct {
	spread    *block.Spread  // chooses the destinations of a series; nil is all
	rules     []*block.Rules // by destination, nil if it has none; nil if none has any
	level     int            // of compression, for blocks that are made here
	telemetry *telemetry
}

func newRouting(cfg *Config, t *telemetry) (routing, error) {
	rules, err := cfg.ownRules()
	return routing{spread: cfg.spread(), rules: rules, level: cfg.CompressionLevel, telemetry: t}, err
}

// ownRules returns the rules of each destination; nil if none has any.
func (c *Config) ownRules() ([]*block.Rules, error) {
	var list []*block.Rules
	var errs []error
	some := false
	for _, n := range c.clients() {
		configs, err := relabelling(n.rules, c.Names.scheme(), n.key)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		var rules *block.Rules
		if len(configs) > 0 {
			rules, some = block.NewRules(configs, c.Names.scheme(), c.Cache.MaxSeries), true
		}
		list = append(list, rules)
	}
	if !some {
		list = nil
	}
	return list, errors.Join(errs...)
}

// isCommon reports whether all destinations get the same.
func (r *routing) isCommon() bool { return r.spread == nil && r.rules == nil }

// route returns blocks for the destinations in to, those of all for nil.
func (r *routing) route(blocks []block.Block) (routed []block.Block, to []int) {
	return r.relabel(r.part(blocks))
}

// apart returns which destinations get copies of their own, instead of what is for all; nil if none do. If series are
// spread, nothing is for all.
func (r *routing) apart() []bool {
	if r.rules == nil || r.spread != nil {
		return nil
	}
	list := make([]bool, len(r.rules))
	for i, rules := range r.rules {
		list[i] = rules != nil
	}
	return list
}

// part divides blocks for all destinations into blocks for one each, and returns these with their destinations. If each
// series goes to all, blocks are not changed. A block that was just encoded can always be divided; if not, sending it
// to all would be better than losing it.
func (r *routing) part(blocks []block.Block) (parts []block.Block, to []int) {
	if r.spread == nil {
		return blocks, nil
	}
	for i := range blocks {
		of, err := block.Partition(blocks[i], r.spread, r.level)
		if err != nil {
			parts, to = append(parts, blocks[i]), append(to, queue.All)
			continue
		}
		for at := range of {
			if len(of[at].Body()) > 0 {
				parts, to = append(parts, of[at]), append(to, at)
			}
		}
	}
	return parts, to
}

// relabel makes the blocks for destinations with rules of their own. to has the destination of each block; nil is all
// of them, which then means those without such rules.
func (r *routing) relabel(blocks []block.Block, to []int) (made []block.Block, madeFor []int) {
	if r.rules == nil {
		return blocks, to
	}
	isFor := func(i, destination int) bool { return to == nil || to[i] == queue.All || to[i] == destination }
	plain := slices.Contains(r.rules, nil)
	for i := range blocks {
		only := queue.All
		if to != nil {
			only = to[i]
		}
		if only == queue.All && plain || only != queue.All && r.rules[only] == nil {
			made, madeFor = append(made, blocks[i]), append(madeFor, only)
		}
		for d, rules := range r.rules {
			if rules == nil || !isFor(i, d) {
				continue
			}
			if b := r.relabelFor(blocks[i], rules); len(b.Body()) > 0 {
				made, madeFor = append(made, b), append(madeFor, d)
			}
		}
	}
	return made, madeFor
}

// relabelFor applies rules to a block; it returns the zero block if they leave nothing. A block that was just encoded
// can always be decoded.
func (r *routing) relabelFor(b block.Block, rules *block.Rules) block.Block {
	ruled, left, err := rules.Relabel(b, r.level)
	if err != nil {
		r.telemetry.log.Error("lost points to a defect in the rules of an endpoint; please report it", zap.Error(err))
		r.telemetry.Dropped(loss.Panic, b.Samples+b.Histograms)
		return block.Block{}
	}
	for reason, n := range map[loss.Reason]int{
		loss.Relabelled: left.Dropped, loss.Rules: left.Unusable, loss.Duplicate: left.Duplicate,
	} {
		if n > 0 {
			r.telemetry.Dropped(reason, n)
		}
	}
	return ruled
}
