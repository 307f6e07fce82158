// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package clientgo documents its module, which takes the place of Kubernetes' client in the agent: see docs/design/065.
//
// Prometheus' service discovery is compiled against it as it is. It lists and watches the nine kinds that discovery reads, in JSON, and
// decodes the fields that discovery reads: beside it stand the modules of the API's types. The original brings all types of all groups,
// which take 15 MB of the file.
package clientgo
