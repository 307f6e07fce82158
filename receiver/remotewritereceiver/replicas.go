// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// replicas elects one of the replicas that send the same data, for each cluster of each tenant: the first that comes, and
// another once nothing has come from that one for a while.
type replicas struct {
	cfg ReplicasConfig
	log *zap.Logger

	mu       sync.Mutex
	clusters map[clusterKey]*election
}

type clusterKey struct{ tenant, cluster string }

// election is what a cluster has come to.
type election struct {
	replica string
	seen    time.Time // when the pipeline last took something from it, or it was elected
}

// vote says what to do with the data of a replica.
type vote uint8

const (
	voteTake  vote = iota // it is the one elected
	voteLeave             // another one is, and sends the same
	voteFull              // there are too many clusters
	voteLong              // its names are too long to be remembered
)

// maxReplicaText is how long the names of a tenant, a cluster and a replica may be together: as many as there may be clusters are remembered.
const maxReplicaText = 4 << 10

func newReplicas(cfg ReplicasConfig, log *zap.Logger) *replicas {
	return &replicas{cfg: cfg, log: log, clusters: map[clusterKey]*election{}}
}

// vote elects a replica where none is, or the one that was has not been heard of. That it was heard of is for heard to say,
// once the pipeline has its data: should the pipeline refuse that for long, another replica may have more luck.
func (r *replicas) vote(key clusterKey, replica string) (v vote, changed string) {
	if len(key.tenant)+len(key.cluster)+len(replica) > maxReplicaText {
		return voteLong, ""
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.clusters[key]
	switch {
	case e != nil && e.replica == replica:
		return voteTake, ""
	case e != nil && now.Sub(e.seen) <= r.cfg.FailoverTimeout:
		return voteLeave, ""
	case e == nil && len(r.clusters) >= r.cfg.MaxClusters && !r.forget(now):
		return voteFull, ""
	}
	if e != nil {
		changed = e.replica
	}
	// Its texts are parts of a request, which must not stay for their sake.
	key = clusterKey{strings.Clone(key.tenant), strings.Clone(key.cluster)}
	r.clusters[key] = &election{strings.Clone(replica), now}
	return voteTake, changed
}

// forget makes room: where nothing came for so long that any replica would be elected, it makes no difference.
func (r *replicas) forget(now time.Time) bool {
	for key, e := range r.clusters {
		if now.Sub(e.seen) > r.cfg.FailoverTimeout {
			delete(r.clusters, key)
		}
	}
	return len(r.clusters) < r.cfg.MaxClusters
}

// heard notes that the pipeline took what a replica sent, if it still is the one elected.
func (r *replicas) heard(key clusterKey, replica string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.clusters[key]; e != nil && e.replica == replica {
		e.seen = time.Now()
	}
}

// ballot is the elections that one request has a say in. nil if replicas are not told apart.
type ballot struct {
	of     *replicas
	tenant string

	// A request mostly is of one replica, which saves asking for each series.
	last     replicaKey
	lastVote vote
	taken    map[replicaKey]bool
	changed  []change // elections that went to another
}

type replicaKey struct{ cluster, replica string }

type change struct {
	replicaKey

	from string
}

// maxChanges bounds what the log is told of one request.
const maxChanges = 10

func (r *replicas) ballot(tenant string) *ballot {
	if r == nil {
		return nil
	}
	return &ballot{of: r, tenant: tenant, taken: map[replicaKey]bool{}}
}

// vote says what to do with a series. Those that do not bear both labels are of no replica.
func (b *ballot) vote(id *labelSet) vote {
	if b == nil || id.replica.cluster == "" || id.replica.replica == "" {
		return voteTake
	}
	if id.replica == b.last {
		return b.lastVote
	}
	v, from := b.of.vote(clusterKey{b.tenant, id.replica.cluster}, id.replica.replica)
	if v == voteTake {
		b.taken[id.replica] = true
	}
	if from != "" && len(b.changed) < maxChanges {
		b.changed = append(b.changed, change{id.replica, from})
	}
	b.last, b.lastVote = id.replica, v
	return v
}

// passed notes that the pipeline took the request.
func (b *ballot) passed() {
	if b == nil {
		return
	}
	for k := range b.taken {
		b.of.heard(clusterKey{b.tenant, k.cluster}, k.replica)
	}
}

// tell logs elections that went to another replica, and returns how many.
func (b *ballot) tell() int {
	for _, c := range b.changed {
		b.of.log.Info("another replica's data is taken: nothing came from the one before",
			zap.String("tenant", b.tenant), zap.String("cluster", c.cluster), zap.String("replica", c.replica), zap.String("before", c.from))
	}
	return len(b.changed)
}

var errReplicaText = fmt.Errorf("the names of its tenant, cluster and replica are longer than %d bytes", maxReplicaText)

var errClusters = errors.New("its cluster is one too many: raise `replicas.max_clusters`")
