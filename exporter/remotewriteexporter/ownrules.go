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

// apart returns which destinations get copies of their own, instead of what is for all; nil if none do. If series are
// spread, nothing is for all.
func (in *intake) apart() []bool {
	if in.rules == nil || in.spread != nil {
		return nil
	}
	list := make([]bool, len(in.rules))
	for i, r := range in.rules {
		list[i] = r != nil
	}
	return list
}

// relabel makes the blocks for destinations with rules of their own. to has the destination of each block; nil is all
// of them, which then means those without such rules.
func (in *intake) relabel(blocks []block.Block, to []int) (made []block.Block, madeFor []int) {
	if in.rules == nil {
		return blocks, to
	}
	isFor := func(i, destination int) bool { return to == nil || to[i] == queue.All || to[i] == destination }
	plain := slices.Contains(in.rules, nil)
	for i := range blocks {
		only := queue.All
		if to != nil {
			only = to[i]
		}
		if only == queue.All && plain || only != queue.All && in.rules[only] == nil {
			made, madeFor = append(made, blocks[i]), append(madeFor, only)
		}
		for d, rules := range in.rules {
			if rules == nil || !isFor(i, d) {
				continue
			}
			if b := in.relabelFor(blocks[i], rules); len(b.Body()) > 0 {
				made, madeFor = append(made, b), append(madeFor, d)
			}
		}
	}
	return made, madeFor
}

// relabelFor applies rules to a block; it returns the zero block if they leave nothing. A block that was just encoded
// can always be decoded.
func (in *intake) relabelFor(b block.Block, rules *block.Rules) block.Block {
	ruled, left, err := rules.Relabel(b, in.cfg.CompressionLevel)
	if err != nil {
		in.telemetry.log.Error("lost points to a defect in the rules of an endpoint; please report it", zap.Error(err))
		in.telemetry.Dropped(loss.Panic, b.Samples+b.Histograms)
		return block.Block{}
	}
	for reason, n := range map[loss.Reason]int{
		loss.Relabelled: left.Dropped, loss.Rules: left.Unusable, loss.Duplicate: left.Duplicate,
	} {
		if n > 0 {
			in.telemetry.Dropped(reason, n)
		}
	}
	return ruled
}
