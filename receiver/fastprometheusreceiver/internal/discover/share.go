// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

// A Shard is one member's share of the targets, by rendezvous hashing: each target goes to the Replication members that
// score highest for it, so adding or removing a member moves only the targets that it gains or gives up.
// The zero Shard owns everything.
type Shard struct {
	Members     int // how many share the targets; 0 and 1 mean no sharing
	Index       int // which of them this is, from 0
	Replication int // how many scrape each target; 0 means 1
}

// Owns reports whether the target of this hash is this member's.
func (s Shard) Owns(hash uint64) bool {
	replication := max(s.Replication, 1)
	if s.Members <= replication {
		return true
	}
	mine := score(hash, s.Index)
	better := 0
	for i := range s.Members {
		if other := score(hash, i); other > mine || other == mine && i < s.Index {
			better++
		}
		if better == replication {
			return false
		}
	}
	return true
}

func score(hash uint64, member int) uint64 {
	return mix(hash ^ mix(uint64(member)+1))
}

// mix is a bijection whose output bits each depend on all input bits (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
