// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func electing(maxClusters int) *Elections {
	return New(Rules{ClusterLabel: "cluster", ReplicaLabel: "__replica__", Failover: 30 * time.Second, MaxClusters: maxClusters}, zap.NewNop())
}

func TestOneReplicaIsElected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := electing(1000)
		north := clusterKey{"", "north"}
		vote := func(key clusterKey, replica string, want Vote, wantFrom string) {
			t.Helper()
			got, from := r.vote(key, replica)
			require.Equal(t, want, got)
			require.Equal(t, wantFrom, from)
		}
		vote(north, "a", Take, "")
		vote(north, "b", Leave, "")
		vote(clusterKey{"", "south"}, "b", Take, "")
		vote(clusterKey{"other", "north"}, "b", Take, "")
		for range 10 { // as long as the pipeline accepts the data of one, the other is not needed
			time.Sleep(20 * time.Second)
			vote(north, "a", Take, "")
			r.heard(north, "a")
			vote(north, "b", Leave, "")
		}
		time.Sleep(30 * time.Second)
		vote(north, "b", Leave, "")
		vote(north, "a", Take, "") // refused by the pipeline
		time.Sleep(time.Second)
		vote(north, "b", Take, "a")
		r.heard(north, "a") // too late
		vote(north, "a", Leave, "")
		time.Sleep(31 * time.Second)
		vote(north, "a", Take, "b")
	})
}

func TestClustersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := electing(3)
		for n := range 5 {
			got, _ := r.vote(clusterKey{"", fmt.Sprint(n)}, "a")
			require.Equal(t, n >= 3, got == Full)
		}
		time.Sleep(20 * time.Second)
		r.heard(clusterKey{"", "1"}, "a")
		time.Sleep(20 * time.Second)
		got, _ := r.vote(clusterKey{"", "4"}, "a")
		require.Equal(t, Take, got, "others are silent")
		got, _ = r.vote(clusterKey{"", "1"}, "b")
		require.Equal(t, Leave, got, "this one is not")
		require.Len(t, r.clusters, 2)
	})
}

// TestMoreClustersThanMayBe are refused one by one, without a search through all existing ones.
func TestMoreClustersThanMayBe(t *testing.T) {
	took := func(clusters int) time.Duration {
		r := electing(clusters)
		for n := range clusters + 1 {
			r.vote(clusterKey{"", strconv.Itoa(n)}, "a")
		}
		began := time.Now()
		for n := range 1 << 10 {
			if v, _ := r.vote(clusterKey{"more", strconv.Itoa(n)}, "a"); v != Full {
				t.Error("a cluster is taken for which there is no room")
			}
		}
		return time.Since(began)
	}
	few, many := time.Hour, time.Hour
	for range 15 { // one good attempt is enough on a busy machine
		if few, many = min(few, took(1<<8)), min(many, took(1<<14)); many < 10*few {
			return
		}
	}
	require.Less(t, many, 10*few)
}

// TestLongNamesAreNotRemembered: clusters with names of a megabyte do not fill the memory.
func TestLongNamesAreNotRemembered(t *testing.T) {
	r := electing(1000)
	long := strings.Repeat("long", maxReplicaText/4)
	for _, replica := range []Key{{long, "a"}, {"north", long}} {
		v, _ := r.vote(clusterKey{"t", replica.Cluster}, replica.Replica)
		require.Equal(t, Long, v)
	}
	v, _ := r.vote(clusterKey{long, "north"}, "a")
	require.Equal(t, Long, v)
	require.Empty(t, r.clusters)
}
