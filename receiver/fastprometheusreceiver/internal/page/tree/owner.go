// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// An Owner is the target whose metrics are being made.
type Owner struct {
	*catalog.Identity

	Tree   *Job
	attrs  []labels.Label // of its own resource
	common []labels.Label // from discovery, for every resource of its
	broken brokenState
	words  words
}

// NewOwner returns the owner of a target's metrics, with the labels that discovery found.
func NewOwner(j *Job, id *catalog.Identity, discovered labels.Labels) Owner {
	common := discoveredAttributes(discovered)
	o := Owner{Identity: id, Tree: j, common: common}
	o.attrs = o.resourceOf(id.Job, id.Host)
	return o
}

// WithValues returns the owner with other own values.
func (o *Owner) WithValues(own []string) *Owner {
	other, identity := *o, *o.Identity
	identity.Own = own
	other.Identity, other.words = &identity, words{}
	return &other
}

// resourceOf returns the attributes of the resource for a job and an instance, without those that a target_info of the page
// replaces.
func (o *Owner) resourceOf(job, instance string) []labels.Label {
	attrs := resourceAttributes(nil, job, instance, o.Tree.KeepIdentity, o.common)
	if o.Tree.JobAndInstance {
		for _, l := range []labels.Label{{Name: model.JobLabel, Value: job}, {Name: model.InstanceLabel, Value: instance}} {
			if l.Value != "" || !o.Tree.KeepIdentity {
				attrs = append(attrs, l)
			}
		}
	}
	return attrs
}

// fill sets the attributes of one of the target's resources.
func (o *Owner) fill(m pcommon.Map, r *plan.PlacedResource) {
	attrs := o.attrs
	if r.Resource.IsNamed() {
		job, instance := o.Of(r.Resource)
		attrs = o.resourceOf(job, instance)
	}
	most := len(attrs)
	for _, p := range r.Info {
		most += len(p.Form.Keys.Names)
	}
	if o.Tree.Changes.Resources {
		most++ // spare, for consumers that add an attribute
	}
	all := fillAttributes(m, most)
	for _, a := range attrs {
		all.put(a.Name, a.Value)
	}
	for _, p := range r.Info {
		o.putInfo(&all, p)
	}
	all.flush()
}

// besideIdentity renames attributes of a target_info that must not replace those taken from job and instance.
// Prometheus has them as labels of that series.
var besideIdentity = map[string]string{"service.name": "service_name", "service.instance.id": "service_instance_id"}

// putInfo adds the labels of the page's target_info to a resource.
func (o *Owner) putInfo(all *attributes, p *catalog.Point) {
	if !o.Tree.KeepIdentity {
		putPoint(all, p, o)
		return
	}
	var v string
	at := 0
	for i, name := range p.Form.Keys.Names {
		v, at = p.Value(i, at, o.Identity)
		if beside, ok := besideIdentity[name]; ok {
			name = beside
		}
		all.put(name, v)
	}
}
