// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinality

import (
	"slices"
	"strings"
)

// Identities are what targets and hosts are known by, and what classic histograms and summaries are made of: joins, alerts and
// other systems go by them, so that nobody is told to drop one, however many values it has.
var Identities = strings.Fields("job instance le quantile node cluster " +
	"service.name service_name service.namespace service_namespace service.instance.id service_instance_id " +
	"host.name host_name host.id host_id k8s.node.name k8s_node_name k8s.cluster.name k8s_cluster_name")

// IsIdentity reports whether a label is one of them.
func IsIdentity(label string) bool { return slices.Contains(Identities, label) }
