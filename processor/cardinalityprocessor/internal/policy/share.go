// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// share is how a limit is shared.
type share struct {
	By       []Source
	Priority Source
	Weights  map[string]int
	Parties  Bound // counted, without a limit
}

func newShare(cfg *AdaptiveConfig, series uint64) *share {
	if len(cfg.ShareBy) == 0 {
		return nil
	}
	s := &share{By: newSources(cfg.ShareBy), Priority: NewSource(cfg.Priority.By), Weights: map[string]int{}}
	for i, value := range cfg.Priority.Order {
		s.Weights[value] = 1 << (len(cfg.Priority.Order) - 1 - i)
	}
	s.Parties = Bound{Key: ident.Mix(series, xxh3.HashString(fmt.Sprintf("%q %q", cfg.ShareBy, cfg.Priority.By)))}
	return s
}
