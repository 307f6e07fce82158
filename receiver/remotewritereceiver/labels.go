// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/replicas"
)

var (
	errLabels     = fmt.Errorf("more than %d labels", maxLabels)
	errNoName     = errors.New("label __name__ is missing")
	errLabelName  = errors.New("a label has no name")
	errLabelUTF8  = errors.New("a label is not UTF-8")
	errLabelTwice = errors.New("a label appears twice")
)

// maxLabels limits the labels of a series and of an exemplar: n attributes take n*n/2 comparisons. No known database
// accepts half as many.
const maxLabels = 256

const (
	labelName     = "__name__"
	labelJob      = "job"
	labelInstance = "instance"
	labelCluster  = "cluster" // unless others are configured
	labelReplica  = "__replica__"
	scopePrefix   = "otel_scope_"
)

// identify checks labels, and makes a set that refers to their texts.
func identify(labels []promwrite.Label, scoped bool, replicas *replicas.Rules, into *labelSet) error {
	*into = labelSet{own: into.own[:0]}
	if len(labels) > maxLabels {
		return errLabels
	}
	sorted := true
	var err error // that names the metric, wherever it is
	for i, l := range labels {
		switch l.Name {
		case "":
			err = cmp.Or(err, errLabelName)
		case labelName:
			into.name = l.Value
		default:
			if replicas == nil { // fast path: replicas are not told apart
				break
			}
			switch l.Name {
			case replicas.ClusterLabel:
				into.replica.Cluster = l.Value
			case replicas.ReplicaLabel:
				into.replica.Replica = l.Value
			}
		}
		if !utf8.ValidString(l.Name) || !utf8.ValidString(l.Value) {
			err = cmp.Or(err, errLabelUTF8)
		}
		sorted = sorted && (i == 0 || labels[i-1].Name < l.Name)
	}
	if into.name == "" {
		err = cmp.Or(err, errNoName)
	}
	if err != nil {
		return err
	}
	if !sorted {
		labels = slices.Clone(labels) // sets are found by the original order
		slices.SortStableFunc(labels, func(a, b promwrite.Label) int { return cmp.Compare(a.Name, b.Name) })
		for i := range labels[1:] {
			if labels[i].Name == labels[i+1].Name {
				return errLabelTwice
			}
		}
	}
	less := ""
	if into.replica.Cluster != "" && into.replica.Replica != "" {
		less = replicas.ReplicaLabel
	}
	// Labels are attributes, except those that became the metric's name, its resource and its scope. Prometheus takes
	// an empty value for an absent label.
	for _, l := range labels {
		switch {
		case l.Value == "", l.Name == labelName, l.Name == labelJob, l.Name == labelInstance, l.Name == less,
			scoped && strings.HasPrefix(l.Name, scopePrefix):
		default:
			into.own = append(into.own, l)
		}
	}
	if scoped {
		into.scope = string(appendScope(nil, labels))
	}
	return nil
}

// put sets the attributes of a point without any.
func (s *labelSet) put(with *slab.Slabs, dst pcommon.Map) {
	with.Reserve(dst, len(s.own))
	for i := range s.own {
		with.PutStr(dst, s.own[i].Name, s.own[i].Value)
	}
}

// setTarget reverses what exporters do to service.namespace, service.name and service.instance.id. A job without a
// slash, with several, or with nothing on one side of it was not made of two names.
func setTarget(dst pcommon.Map, job, instance string) {
	name := job
	if namespace, rest, ok := strings.Cut(name, "/"); ok && namespace != "" && rest != "" && !strings.Contains(rest, "/") {
		dst.PutStr("service.namespace", namespace)
		name = rest
	}
	if name != "" {
		dst.PutStr("service.name", name)
	}
	if instance != "" {
		dst.PutStr("service.instance.id", instance)
	}
}

// appendScope appends the part of sorted labels that describes a scope: pairs of texts, each ended by a byte that UTF-8
// does not have.
func appendScope(dst []byte, labels []promwrite.Label) []byte {
	for _, l := range labels {
		if l.Value != "" && strings.HasPrefix(l.Name, scopePrefix) {
			dst = append(append(dst, l.Name[len(scopePrefix):]...), 0xff)
			dst = append(append(dst, l.Value...), 0xff)
		}
	}
	return dst
}

// setScope reverses what exporters do to a scope.
func setScope(dst pmetric.ScopeMetrics, scope string) {
	for scope != "" {
		var name, value string
		name, scope, _ = strings.Cut(scope, "\xff")
		value, scope, _ = strings.Cut(scope, "\xff")
		switch name {
		case "name":
			dst.Scope().SetName(value)
		case "version":
			dst.Scope().SetVersion(value)
		case "schema_url":
			dst.SetSchemaUrl(value)
		default:
			dst.Scope().Attributes().PutStr(name, value)
		}
	}
}

// validUTF8 makes s valid UTF-8: help and unit are texts for people, not worth losing a sample for.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
