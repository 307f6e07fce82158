// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"go.opentelemetry.io/collector/featuregate"
	"go.uber.org/zap"
)

// A gate is one of contrib's, which command lines may name.
type gate struct {
	id, description string
	// meaning is what to say where somebody has enabled it; empty where it does as it says.
	meaning string
}

const gateRemoveTopLevel = "exporter.prometheusremotewritexporter.removeTopLevelHTTPSettings"

var gates = []gate{
	{
		"exporter.prometheusremotewritexporter.EnableMultipleWorkers",
		"Has no effect: max_batch_request_parallelism and num_consumers bound the requests at a time, and the order of each series is kept.",
		"it has no effect: requests are always sent side by side, in the order of each series",
	},
	{
		"exporter.prometheusremotewritexporter.RetryOn429",
		"Has no effect: requests that are answered with 429 are always repeated.",
		"",
	},
	{
		"exporter.prometheusremotewritexporter.enableSendingRW2",
		"Has no effect: protobuf_message alone chooses Remote Write 2.0.",
		"",
	},
	{
		gateRemoveTopLevel,
		"Refuses settings of the HTTP client outside of the block `http`.",
		"",
	},
}

// registered are the gates, as registered here or, where both are in one program, by contrib's exporter.
var registered = func() map[string]*featuregate.Gate {
	registry := featuregate.GlobalRegistry()
	for _, g := range gates {
		_, _ = registry.Register(g.id, featuregate.StageAlpha, featuregate.WithRegisterDescription(g.description)) // else it is there
	}
	all := map[string]*featuregate.Gate{}
	registry.VisitAll(func(g *featuregate.Gate) { all[g.ID()] = g })
	return all
}()

func isEnabled(id string) bool { return registered[id] != nil && registered[id].IsEnabled() }

// warnOfGates says which gates that somebody enabled do nothing.
func warnOfGates(log *zap.Logger) {
	for _, g := range gates {
		if g.meaning != "" && isEnabled(g.id) {
			log.Warn("feature gate is enabled: "+g.meaning, zap.String("gate", g.id))
		}
	}
}
