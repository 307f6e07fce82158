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
)

var (
	errLabels     = fmt.Errorf("more than %d labels", maxLabels)
	errNoName     = errors.New("label __name__ is missing")
	errLabelName  = errors.New("a label has no name")
	errLabelUTF8  = errors.New("a label is not UTF-8")
	errLabelTwice = errors.New("a label appears twice")
)

// maxLabels bounds the labels of a series and of an exemplar: putting n attributes on a point takes n*n/2 comparisons.
// No database is known to take half as many.
const maxLabels = 256

const (
	labelName     = "__name__"
	labelJob      = "job"
	labelInstance = "instance"
	labelCluster  = "cluster" // unless others are configured
	labelReplica  = "__replica__"
	scopePrefix   = "otel_scope_"
)

// identity is what a series' labels say beside the attributes of its points.
type identity struct {
	name     string
	resource resourceKey
	replica  replicaKey // empty where replicas are not told apart
}

// identify checks labels, and sorts them should their sender not have.
func identify(labels []promwrite.Label, b *ballot) (identity, error) {
	var id identity
	if len(labels) > maxLabels {
		return id, errLabels
	}
	sorted := true
	for i, l := range labels {
		switch l.Name {
		case "":
			return id, errLabelName
		case labelName:
			id.name = l.Value
		case labelJob:
			id.resource.job = l.Value
		case labelInstance:
			id.resource.instance = l.Value
		default:
			if b == nil { // fast path: nobody asks who has sent it
				break
			}
			switch l.Name {
			case b.of.cfg.ClusterLabel:
				id.replica.cluster = l.Value
			case b.of.cfg.ReplicaLabel:
				id.replica.replica = l.Value
			}
		}
		if !utf8.ValidString(l.Name) || !utf8.ValidString(l.Value) {
			return id, errLabelUTF8
		}
		sorted = sorted && (i == 0 || labels[i-1].Name < l.Name)
	}
	if id.name == "" {
		return id, errNoName
	}
	if !sorted {
		slices.SortStableFunc(labels, func(a, b promwrite.Label) int { return cmp.Compare(a.Name, b.Name) })
		for i := range labels[1:] {
			if labels[i].Name == labels[i+1].Name {
				return id, errLabelTwice
			}
		}
	}
	return id, nil
}

// attributes are those of a series, first made and then copied from point to point.
type attributes struct {
	first pcommon.Map
	made  bool
	less  string // a label that is left out; empty for none
	scope bool   // whether labels of the scope are left out
}

// put sets labels on a point, less those that became its metric's name and its resource. Prometheus takes an empty
// value for an absent label.
func (a *attributes) put(dst pcommon.Map, labels []promwrite.Label) {
	if a.made {
		a.first.CopyTo(dst)
		return
	}
	dst.EnsureCapacity(len(labels))
	for _, l := range labels {
		switch {
		case l.Value == "", l.Name == labelName, l.Name == labelJob, l.Name == labelInstance, l.Name == a.less,
			a.scope && strings.HasPrefix(l.Name, scopePrefix):
		default:
			dst.PutStr(l.Name, l.Value)
		}
	}
	a.first, a.made = dst, true
}

// setAttributes undoes what exporters do to service.namespace, service.name and service.instance.id. A job with no
// slash, several, or nothing on one side of it was not made of two names.
func (key resourceKey) setAttributes(dst pcommon.Map) {
	name := key.job
	if namespace, rest, ok := strings.Cut(name, "/"); ok && namespace != "" && rest != "" && !strings.Contains(rest, "/") {
		dst.PutStr("service.namespace", namespace)
		name = rest
	}
	if name != "" {
		dst.PutStr("service.name", name)
	}
	if key.instance != "" {
		dst.PutStr("service.instance.id", key.instance)
	}
}

// appendScope appends what labels, which are sorted, say of a scope: pairs of texts, each closed with a byte that is in no
// UTF-8 text.
func appendScope(dst []byte, labels []promwrite.Label) []byte {
	for _, l := range labels {
		if l.Value != "" && strings.HasPrefix(l.Name, scopePrefix) {
			dst = append(append(dst, l.Name[len(scopePrefix):]...), 0xff)
			dst = append(append(dst, l.Value...), 0xff)
		}
	}
	return dst
}

// setScope undoes what exporters do to a scope.
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

// validUTF8 is s as protobuf may carry it: help and unit are prose, not worth losing a sample for.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
