// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/replicas"
)

const (
	targetInfo = "target_info"
	// maxInfo limits the bytes for the labels of one target, maxInfos those of all that are remembered.
	maxInfo  = 16 << 10
	maxInfos = 32 << 20
	// infoOverhead is what a target takes besides its texts.
	infoOverhead = 256
)

// TargetInfoConfig is about the series target_info, whose labels say more of a target.
type TargetInfoConfig struct {
	// ToResource makes its labels attributes of the target's resource, for all of its series from then on. Default false: it
	// is a series like others.
	ToResource bool `mapstructure:"to_resource"`
	// MaxTargets limits the targets that are remembered, of all tenants together: those not heard of for longest are forgotten.
	// Default 10000.
	MaxTargets int `mapstructure:"max_targets"`
	// TenantHeader is the header of requests that names the tenant: targets of the same name are others in another tenant.
	// Default X-Scope-OrgID.
	TenantHeader string `mapstructure:"tenant_header"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func (c *TargetInfoConfig) validate() error {
	if c.ToResource && c.MaxTargets <= 0 {
		return fmt.Errorf("`target_info.max_targets` must be positive, got %d", c.MaxTargets)
	}
	return nil
}

// infos remembers what target_info says about targets, in two generations: what was used lately, and what was before.
// When the first is full, it becomes the second.
type infos struct {
	most int // targets in a generation

	mu            sync.Mutex
	fresh, before map[infoKey]infoLabels
	size          int // of fresh
}

type infoKey struct{ tenant, job, instance string }

// infoLabels is the labels of a target. It does not change.
type infoLabels struct {
	labels []promwrite.Label
	size   int
}

func newInfos(most int) *infos { return &infos{most: max(most/2, 1), fresh: map[infoKey]infoLabels{}} }

// of returns the labels of a target; none if it is not known.
func (x *infos) of(key infoKey) []promwrite.Label {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i, ok := x.fresh[key]; ok {
		return i.labels
	}
	i, ok := x.before[key]
	if ok {
		x.add(key.clone(), i)
	}
	return i.labels
}

// set remembers labels, or forgets the target if there are none.
func (x *infos) set(key infoKey, i infoLabels) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key = key.clone()
	x.remove(key)
	delete(x.before, key)
	if len(i.labels) > 0 {
		x.add(key, i)
	}
}

func (x *infos) add(key infoKey, i infoLabels) {
	if len(x.fresh) >= x.most || x.size+i.size > maxInfos/2 {
		x.fresh, x.before, x.size = map[infoKey]infoLabels{}, x.fresh, 0
	}
	x.fresh[key] = i
	x.size += i.size
}

func (x *infos) remove(key infoKey) {
	x.size -= x.fresh[key].size
	delete(x.fresh, key)
}

// clone returns a copy that refers to no request.
func (k infoKey) clone() infoKey {
	return infoKey{strings.Clone(k.tenant), strings.Clone(k.job), strings.Clone(k.instance)}
}

// asker looks up what is known about a tenant's targets. Its zero value knows and learns nothing.
type asker struct {
	infos  *infos
	tenant string
}

// learn removes the series target_info from a request, before anything else of it is translated, since they apply to
// all of it. Those that describe no target, or are too large, stay series. It returns how many points it removed.
func (a *asker) learn(series []promwrite.Series, b *replicas.Ballot) (left []promwrite.Series, taken promwrite.Written) {
	if a.infos == nil {
		return series, taken
	}
	left = series[:0]
	for i := range series {
		s := &series[i]
		if len(s.Samples) > 0 && isTargetInfo(s.Labels) && a.take(s, b) {
			taken.Samples += len(s.Samples)
			taken.Exemplars += len(s.Exemplars)
		} else {
			left = append(left, *s)
		}
	}
	return left, taken
}

func isTargetInfo(labels []promwrite.Label) bool {
	for _, l := range labels {
		if l.Name == labelName {
			return l.Value == targetInfo
		}
	}
	return false
}

// take learns from a series, if it describes a target.
func (a *asker) take(s *promwrite.Series, b *replicas.Ballot) bool {
	var set labelSet
	rules := b.Rules()
	if err := identify(s.Labels, false, rules, &set); err != nil {
		return false
	}
	key := infoKey{tenant: a.tenant}
	for _, l := range s.Labels {
		switch l.Name {
		case labelJob:
			key.job = l.Value
		case labelInstance:
			key.instance = l.Value
		}
	}
	set.replica = set.replica.Clone() // it outlives the request
	if key.job == "" && key.instance == "" || b.Vote(set.replica) != replicas.Take {
		return false
	}
	if last := s.Samples[len(s.Samples)-1]; math.Float64bits(last.Value) == promwrite.StaleNaN {
		a.infos.set(key, infoLabels{}) // the target is gone
		return true
	}
	made := infoLabels{size: infoOverhead + len(key.tenant) + len(key.job) + len(key.instance)}
	for _, l := range s.Labels {
		made.size += len(l.Name) + len(l.Value)
	}
	if made.size > maxInfo {
		return false
	}
	replica := ""
	if rules != nil {
		replica = rules.ReplicaLabel
	}
	for _, l := range s.Labels {
		switch {
		case l.Value == "", l.Name == labelName, l.Name == labelJob, l.Name == labelInstance, l.Name == replica:
		default:
			made.labels = append(made.labels, promwrite.Label{Name: strings.Clone(l.Name), Value: strings.Clone(l.Value)})
		}
	}
	a.infos.set(key, made)
	return true
}

// describe adds what is known about a target to its resource. Attributes from its job and instance stay.
func (a *asker) describe(key resourceKey, dst pcommon.Map) {
	if a.infos == nil {
		return
	}
	for _, l := range a.infos.of(infoKey{a.tenant, key.job, key.instance}) {
		if _, ok := dst.Get(l.Name); !ok {
			dst.PutStr(l.Name, l.Value)
		}
	}
}
