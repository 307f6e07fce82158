// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/stretchr/testify/assert"
)

// said forwards what a test sends.
type said chan []*targetgroup.Group

func (s said) Run(ctx context.Context, up chan<- []*targetgroup.Group) {
	for {
		select {
		case <-ctx.Done():
			return
		case groups, open := <-s:
			if !open {
				return
			}
			select {
			case up <- groups:
			case <-ctx.Done():
				return
			}
		}
	}
}

// Only changed groups are forwarded, but the first time an empty list as well.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, up := make(said), make(chan []*targetgroup.Group)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { changes{inner}.Run(ctx, up); close(ended) }()
		group := func(source string, addresses ...string) *targetgroup.Group {
			g := &targetgroup.Group{Source: source, Labels: model.LabelSet{"a": "b"}}
			for _, a := range addresses {
				g.Targets = append(g.Targets, model.LabelSet{model.AddressLabel: model.LabelValue(a)})
			}
			return g
		}
		say := func(groups ...*targetgroup.Group) []*targetgroup.Group {
			t.Helper()
			inner <- groups
			synctest.Wait()
			select {
			case got := <-up:
				return got
			default:
				return nil
			}
		}
		assert.Equal(t, []*targetgroup.Group{}, say())
		assert.Nil(t, say())
		one, two := group("1", "x", "y"), group("2", "z")
		assert.Equal(t, []*targetgroup.Group{one, two}, say(one, nil, two))
		assert.Nil(t, say(group("1", "x", "y"), group("2", "z")))
		assert.Equal(t, []*targetgroup.Group{one}, say(one, group("2", "z")), "the same group may have changed")
		assert.Equal(t, []*targetgroup.Group{group("1", "y")}, say(group("1", "y"), group("2", "z")))
		labelled := group("2", "z")
		labelled.Labels["a"] = "c"
		assert.Equal(t, []*targetgroup.Group{labelled}, say(labelled))
		assert.Equal(t, []*targetgroup.Group{group("2")}, say(group("2")), "it has no targets any more")
		assert.Equal(t, []*targetgroup.Group{group("2", "z")}, say(group("2", "z")), "and has them again")

		// It also ends while nobody receives.
		inner <- []*targetgroup.Group{group("3", "x")}
		synctest.Wait()
		cancel()
		<-ended
	})
}

// A mechanism may end by itself.
func TestChangesOfOneThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := make(said)
		close(inner)
		changes{inner}.Run(t.Context(), nil)
		synctest.Wait()
	})
}
