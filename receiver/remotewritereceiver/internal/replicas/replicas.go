// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package replicas tells apart servers that scrape and send the same data, and accepts the data of one.
package replicas

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Rules say what a replica is, and when another one takes over.
type Rules struct {
	ClusterLabel, ReplicaLabel string
	// Failover is how long the elected replica may send nothing.
	Failover    time.Duration
	MaxClusters int
}

// Elections elects one of the replicas that send the same data, for each cluster of each tenant: the first that sends,
// and another one after the elected one has sent nothing for a while.
type Elections struct {
	rules Rules
	log   *zap.Logger

	mu       sync.Mutex
	clusters map[clusterKey]*election
	full     time.Time // until then all places are taken, and none can be forgotten
}

type clusterKey struct{ tenant, cluster string }

// election is the state of a cluster.
type election struct {
	replica string
	seen    time.Time // when the pipeline last accepted its data, or it was elected
}

// A Vote says what to do with the data of a replica.
type Vote uint8

// The possible votes.
const (
	Take  Vote = iota // it is the elected one
	Leave             // another one is elected, and sends the same
	Full              // there are too many clusters
	Long              // its names are too long to be remembered
)

// maxReplicaText limits the names of a tenant, a cluster and a replica together, since as many are remembered as there
// may be clusters.
const maxReplicaText = 4 << 10

// New returns elections without any clusters.
func New(by Rules, log *zap.Logger) *Elections {
	return &Elections{rules: by, log: log, clusters: map[clusterKey]*election{}}
}

// vote elects a replica if there is none, or if the elected one was not heard of for too long. Only heard records that
// it was heard of, once the pipeline accepted its data: if the pipeline refuses that for long, another replica may
// succeed.
func (r *Elections) vote(key clusterKey, replica string) (v Vote, changed string) {
	if len(key.tenant)+len(key.cluster)+len(replica) > maxReplicaText {
		return Long, ""
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.clusters[key]
	switch {
	case e != nil && e.replica == replica:
		return Take, ""
	case e != nil && now.Sub(e.seen) <= r.rules.Failover:
		return Leave, ""
	case e == nil && len(r.clusters) >= r.rules.MaxClusters && !r.forget(now):
		return Full, ""
	}
	if e != nil {
		changed = e.replica
	}
	// Its strings are parts of a request, which must not be kept in memory.
	key = clusterKey{strings.Clone(key.tenant), strings.Clone(key.cluster)}
	r.clusters[key] = &election{strings.Clone(replica), now}
	return Take, changed
}

// forget makes room: clusters without data for so long that any replica would be elected can be forgotten.
func (r *Elections) forget(now time.Time) bool {
	if now.Before(r.full) {
		return false
	}
	r.full = now.Add(r.rules.Failover)
	for key, e := range r.clusters {
		if now.Sub(e.seen) > r.rules.Failover {
			delete(r.clusters, key)
		} else if until := e.seen.Add(r.rules.Failover); until.Before(r.full) {
			r.full = until
		}
	}
	if len(r.clusters) < r.rules.MaxClusters {
		r.full = now
		return true
	}
	return false
}

// Elected returns the elected replica of a cluster, and when the pipeline last accepted its data.
func (r *Elections) Elected(tenant, cluster string) (replica string, seen time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.clusters[clusterKey{tenant, cluster}]; e != nil {
		return e.replica, e.seen
	}
	return "", seen
}

// heard records that the pipeline accepted a replica's data, if it is still the elected one.
func (r *Elections) heard(key clusterKey, replica string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.clusters[key]; e != nil && e.replica == replica {
		e.seen = time.Now()
	}
}

// Ballot is one request's part in the elections; nil if there are none.
type Ballot struct {
	of     *Elections
	tenant string

	// A request is usually of one replica, so the last vote is remembered.
	last     Key
	lastVote Vote
	taken    map[Key]bool
	changed  []change // elections that changed to another replica
}

// Key identifies a replica of a cluster, by the labels of a series.
type Key struct{ Cluster, Replica string }

// Clone copies its strings.
func (k Key) Clone() Key { return Key{strings.Clone(k.Cluster), strings.Clone(k.Replica)} }

type change struct {
	Key

	from string
}

// maxChanges limits the log lines about one request.
const maxChanges = 10

// Ballot returns a tenant's ballot for one request, nil if there are no elections.
func (r *Elections) Ballot(tenant string) *Ballot {
	if r == nil {
		return nil
	}
	return &Ballot{of: r, tenant: tenant, taken: map[Key]bool{}}
}

// Vote decides about a series. Series without both labels are of no replica.
func (b *Ballot) Vote(of Key) Vote {
	if b == nil || of.Cluster == "" || of.Replica == "" {
		return Take
	}
	if of == b.last {
		return b.lastVote
	}
	v, from := b.of.vote(clusterKey{b.tenant, of.Cluster}, of.Replica)
	if v == Take {
		b.taken[of] = true
	}
	if from != "" && len(b.changed) < maxChanges {
		b.changed = append(b.changed, change{of, from})
	}
	b.last, b.lastVote = of, v
	return v
}

// Rules returns the rules of the elections, nil if there are none.
func (b *Ballot) Rules() *Rules {
	if b == nil {
		return nil
	}
	return &b.of.rules
}

// Passed records that the pipeline accepted the request.
func (b *Ballot) Passed() {
	if b == nil {
		return
	}
	for k := range b.taken {
		b.of.heard(clusterKey{b.tenant, k.Cluster}, k.Replica)
	}
}

// Tell logs elections that changed to another replica, and returns how many.
func (b *Ballot) Tell() int {
	for _, c := range b.changed {
		b.of.log.Info("another replica is elected: nothing came from the one before",
			zap.String("tenant", b.tenant), zap.String("cluster", c.Cluster), zap.String("replica", c.Replica), zap.String("before", c.from))
	}
	return len(b.changed)
}

// Errors of series that got Long or Full.
var (
	ErrLong     = fmt.Errorf("the names of its tenant, cluster and replica are longer than %d bytes", maxReplicaText)
	ErrClusters = errors.New("its cluster is one too many: raise `replicas.max_clusters`")
)
