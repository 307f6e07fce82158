// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

const shareTargets = 10_000

func hashes() []uint64 {
	random := rand.New(rand.NewPCG(1, 2))
	out := make([]uint64, shareTargets)
	for i := range out {
		out[i] = random.Uint64()
	}
	return out
}

func owners(hash uint64, members, replication int) []int {
	var out []int
	for i := range members {
		if (Shard{Members: members, Index: i, Replication: replication}).Owns(hash) {
			out = append(out, i)
		}
	}
	return out
}

func TestEachTargetHasItsMembers(t *testing.T) {
	for _, members := range []int{1, 2, 3, 7, 32} {
		for _, replication := range []int{1, 2, 3} {
			share := make([]int, members)
			want := min(members, replication)
			for _, hash := range hashes() {
				got := owners(hash, members, replication)
				assert.Len(t, got, want)
				for _, i := range got {
					share[i]++
				}
			}
			for i := range share {
				assert.InEpsilon(t, shareTargets*want/members, share[i], 0.25, "member %d of %d", i, members)
			}
		}
	}
}

// A new member takes its share from the others, and nothing else moves.
func TestMovementIsMinimal(t *testing.T) {
	for _, members := range []int{1, 2, 9} {
		moved := 0
		for _, hash := range hashes() {
			before, after := owners(hash, members, 1)[0], owners(hash, members+1, 1)[0]
			if before != after {
				assert.Equal(t, members, after, "only to the new member")
				moved++
			}
		}
		assert.InEpsilon(t, shareTargets/(members+1), moved, 0.2)
	}
}

func TestNoSharing(t *testing.T) {
	assert.True(t, Shard{}.Owns(1))
	assert.True(t, Shard{Members: 1}.Owns(2))
	assert.True(t, Shard{Members: 3, Replication: 3, Index: 2}.Owns(3))
}
