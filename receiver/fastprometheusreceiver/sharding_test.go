// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const shared = 96 // targets in these tests

// group runs all members of a group until each has scraped its targets, and returns which members scraped which target.
func group(t *testing.T, target *endpoint, members, replication int) map[string][]int {
	t.Helper()
	var groups strings.Builder
	for i := range shared {
		fmt.Fprintf(&groups, "        - {targets: [%s], labels: {instance: \"%d\"}}\n", target.address(), i)
	}
	rigs := make([]*rig, members)
	for i := range rigs {
		rigs[i] = run(t, fmt.Sprintf(`
sharding: {members: %d, index: %d, replication: %d}
config:
  scrape_configs:
    - job_name: test
      scrape_interval: 500ms
      scrape_timeout: 500ms
      static_configs:
%s`, members, i, replication, groups.String()))
	}
	owners := map[string][]int{}
	for i, r := range rigs {
		require.Eventually(t, func() bool {
			states := r.census()
			return states[stateHealthy]+states[stateElsewhere] == shared
		}, patience, glance)
		seen := map[string]bool{}
		require.Eventually(t, func() bool {
			for _, p := range r.some(is("requests", 42)) {
				seen[p.instance] = true
			}
			return len(seen) == r.census()[stateHealthy]
		}, patience, glance)
		for instance := range seen {
			owners[instance] = append(owners[instance], i)
		}
	}
	for _, r := range rigs {
		require.NoError(t, r.Shutdown(t.Context()))
		assert.Empty(t, r.some(func(p point) bool { return p.stale }), "a target that goes to another member is not gone")
	}
	return owners
}

// Each target is scraped by as many members as configured, and all members agree on which.
func TestShardedTargets(t *testing.T) {
	target := newEndpoint(t, text)
	for _, replication := range []int{1, 2} {
		owners := group(t, target, 3, replication)
		assert.Len(t, owners, shared)
		for instance, members := range owners {
			assert.Len(t, members, replication, instance)
		}
	}
}

// A new member takes about its share from the others. No targets move between the others.
func TestAnotherMember(t *testing.T) {
	target := newEndpoint(t, text)
	before, after := group(t, target, 3, 1), group(t, target, 4, 1)
	moved := 0
	for instance, members := range after {
		if members[0] != before[instance][0] {
			assert.Equal(t, 3, members[0], "only to the new member")
			moved++
		}
	}
	assert.Positive(t, moved)
	assert.Less(t, moved, shared/2)
}
