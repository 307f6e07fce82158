// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
)

// socketLabel names a unix socket to connect to in place of the address, which then is only the Host header.
const socketLabel = "__unix_socket__"

// pageLabels are reserved labels that change how a target's page is read, so they are part of its identity. Other
// reserved labels (interval, timeout, temporary ones) may change without making it another target.
var pageLabels = [...]string{customLabel, classicLabel, nativeLabel}

const (
	customLabel  = "__convert_classic_histograms_to_nhcb__"
	classicLabel = "__always_scrape_classic_histograms__"
	nativeLabel  = "__scrape_native_histograms__"
)

// resourceLabels are those before relabelling that describe a target's resource.
var resourceLabels = [...]model.LabelName{
	model.SchemeLabel,
	"__meta_kubernetes_namespace",
	"__meta_kubernetes_pod_name",
	"__meta_kubernetes_pod_uid",
	"__meta_kubernetes_pod_container_name",
	"__meta_kubernetes_pod_node_name",
	"__meta_kubernetes_node_name",
	"__meta_kubernetes_endpoint_node_name",
	"__meta_kubernetes_pod_controller_kind",
	"__meta_kubernetes_pod_controller_name",
}

// A Target is something to scrape.
type Target struct {
	// Hash identifies the target: by its public labels, its URL, its resource, and what decides how its page is read. It
	// depends on nothing else, so all members of a sharded group agree on it, and restarts do.
	Hash uint64
	// Public identifies its public labels: targets that do not differ in them may have the same series.
	Public uint64
	// Labels are those after relabelling, reserved ones included.
	Labels labels.Labels

	URL      string
	Socket   string // path of a unix socket; empty means TCP to the URL's host
	Interval time.Duration
	Timeout  time.Duration

	found Found
	job   *config.ScrapeConfig
}

// Discovered returns the target's labels before relabelling.
func (t *Target) Discovered() labels.Labels {
	return t.found.Labels(t.job)
}

// Resource returns those of them that describe the target's resource: few enough to keep for each target.
func (t *Target) Resource() labels.Labels {
	builder := labels.NewBuilder(labels.EmptyLabels())
	builder.Set(model.SchemeLabel, t.job.Scheme)
	for _, name := range resourceLabels {
		if value := t.found.get(name); value != "" {
			builder.Set(string(name), string(value))
		}
	}
	return builder.Labels()
}

// A Set is the result of deriving targets from the groups of a job.
type Set struct {
	Targets   []*Target // this member's, each once
	Elsewhere int       // number of targets that only other members have
	Dropped   []Found   // by relabelling; no more than keep_dropped_targets
	Drops     int       // all that were dropped
	Failures  []error   // targets that could not be made, one error each
}

// A Deriver turns the groups of one job into targets. Groups that it was given the last time are not derived again:
// discovery never modifies a group after publishing it.
type Deriver struct {
	job     *config.ScrapeConfig
	shard   Shard
	derived map[*targetgroup.Group]derivation
}

type derivation struct {
	targets  []*Target
	dropped  []model.LabelSet
	failures []error
}

// NewDeriver returns one for this job.
func NewDeriver(job *config.ScrapeConfig, shard Shard) *Deriver {
	return &Deriver{job: job, shard: shard}
}

// Derive returns the targets of the groups.
func (d *Deriver) Derive(groups []*targetgroup.Group) Set {
	var set Set
	seen := map[uint64]struct{}{}
	derived := make(map[*targetgroup.Group]derivation, len(groups))
	builder := labels.NewBuilder(labels.EmptyLabels())
	for _, group := range groups {
		if group == nil {
			continue
		}
		one, known := d.derived[group]
		if !known {
			one = d.derive(group, builder)
			set.Failures = append(set.Failures, one.failures...)
		}
		derived[group] = one
		for _, target := range one.targets {
			if _, twice := seen[target.Hash]; twice {
				continue
			}
			seen[target.Hash] = struct{}{}
			if d.shard.Owns(target.Hash) {
				set.Targets = append(set.Targets, target)
			} else {
				set.Elsewhere++
			}
		}
		set.Drops += len(one.dropped)
		for _, own := range one.dropped {
			if keep := d.job.KeepDroppedTargets; keep > 0 && uint(len(set.Dropped)) >= keep {
				break
			}
			set.Dropped = append(set.Dropped, Found{own: own, group: group.Labels})
		}
	}
	d.derived = derived
	return set
}

func (d *Deriver) derive(group *targetgroup.Group, builder *labels.Builder) derivation {
	var out derivation
	for i, own := range group.Targets {
		found := Found{own: own, group: group.Labels}
		found.populate(builder, d.job)
		final, err := relabelTarget(builder, d.job)
		var target *Target
		if err == nil {
			target, err = d.target(final, found)
		}
		switch {
		case err == nil:
			out.targets = append(out.targets, target)
		case errors.Is(err, errDropped):
			out.dropped = append(out.dropped, own)
		default:
			out.failures = append(out.failures, fmt.Errorf("cannot make target %d of group %s: %w", i, group, err))
		}
	}
	return out
}

func (d *Deriver) target(final labels.Labels, found Found) (*Target, error) {
	t := &Target{Labels: final, found: found, job: d.job, URL: targetURL(final, d.job), Socket: final.Get(socketLabel)}
	var err error
	if t.Interval, t.Timeout, err = times(final.Get); err != nil {
		return nil, err
	}
	var hash xxhash.Digest
	hash.Reset()
	final.Range(func(l labels.Label) {
		if !strings.HasPrefix(l.Name, model.ReservedLabelPrefix) {
			write(&hash, l.Name, l.Value)
		}
	})
	t.Public = hash.Sum64()
	for _, name := range pageLabels {
		write(&hash, name, final.Get(name))
	}
	for _, name := range resourceLabels {
		write(&hash, string(name), string(found.get(name)))
	}
	write(&hash, t.URL, t.Socket)
	t.Hash = hash.Sum64()
	return t, nil
}

// write ends each string with a byte that UTF-8 does not have, so different pairs never run into one.
func write(hash *xxhash.Digest, a, b string) {
	end := []byte{0xff}
	_, _ = hash.WriteString(a)
	_, _ = hash.Write(end)
	_, _ = hash.WriteString(b)
	_, _ = hash.Write(end)
}
