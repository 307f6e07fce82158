// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
)

const (
	serviceName      = "service.name"
	serviceNamespace = "service.namespace"
	serviceInstance  = "service.instance.id"
)

// Identifies reports whether a resource's attribute is part of its identity.
func Identifies(key string) bool {
	return key == serviceName || key == serviceNamespace || key == serviceInstance
}

// Identity returns job and instance of a resource; either may be empty.
func Identity(m pcommon.Map) (job, instance string) {
	text := func(key string) string {
		if v, ok := m.Get(key); ok {
			return attribute.Text(v)
		}
		return ""
	}
	if job = text(serviceName); job != "" {
		if namespace := text(serviceNamespace); namespace != "" {
			job = namespace + "/" + job
		}
	}
	return job, text(serviceInstance)
}

// Identify sets job and instance, replacing attributes of these names.
func Identify(list []Label, m pcommon.Map) []Label {
	job, instance := Identity(m)
	for _, l := range []Label{{JobLabel, job}, {InstanceLabel, instance}} {
		if l.Value == "" {
			continue
		}
		list = append(slices.DeleteFunc(list, func(o Label) bool { return o.Name == l.Name }), l)
	}
	return list
}
