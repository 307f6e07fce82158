// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package prometheusremotewriteexporter takes the configuration of contrib's
// exporter of that name and runs the remotewrite exporter with it.
//
// It only translates keys. What a key asks for that the remotewrite exporter
// does in another way is said in one warning when the exporter is created.
package prometheusremotewriteexporter
