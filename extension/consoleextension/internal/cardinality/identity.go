// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinality

import (
	"slices"
	"strings"
)

// Identities are labels that identify targets and hosts, or are part of classic histograms and summaries. Joins, alerts
// and other systems depend on them, so dropping one is never recommended, however many values it has.
var Identities = strings.Fields("job instance le quantile node cluster " +
	"service.name service_name service.namespace service_namespace service.instance.id service_instance_id " +
	"host.name host_name host.id host_id k8s.node.name k8s_node_name k8s.cluster.name k8s_cluster_name")

// IsIdentity reports whether a label is one of Identities.
func IsIdentity(label string) bool { return slices.Contains(Identities, label) }
