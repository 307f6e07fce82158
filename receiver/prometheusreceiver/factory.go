// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusreceiver

import (
	"go.opentelemetry.io/collector/receiver"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver"
	"github.com/godwit-otel/godwit/receiver/prometheusreceiver/internal/metadata"
)

// NewFactory creates the factory of the fastprometheus receiver, under the type prometheus.
func NewFactory() receiver.Factory {
	return fastprometheusreceiver.NewFactoryOfType(metadata.Type)
}
