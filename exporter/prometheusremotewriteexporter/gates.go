// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"go.opentelemetry.io/collector/featuregate"

	"github.com/godwit-otel/godwit/internal/gates"
)

const gateRemoveTopLevel = "exporter.prometheusremotewritexporter.removeTopLevelHTTPSettings"

// contribs are the gates of contrib's exporter.
var contribs = gates.Register(
	gates.Gate{
		ID: "exporter.prometheusremotewritexporter.EnableMultipleWorkers", Stage: featuregate.StageAlpha,
		Description: "Has no effect: max_batch_request_parallelism and num_consumers bound the requests at a time, and the order of each series is kept.",
		Changed:     "requests are always sent side by side, in the order of each series",
	},
	gates.Gate{
		ID: "exporter.prometheusremotewritexporter.RetryOn429", Stage: featuregate.StageAlpha,
		Description: "Has no effect: requests that are answered with 429 are always repeated.",
	},
	gates.Gate{
		ID: "exporter.prometheusremotewritexporter.enableSendingRW2", Stage: featuregate.StageAlpha,
		Description: "Has no effect: protobuf_message alone chooses Remote Write 2.0.",
	},
	gates.Gate{
		ID: gateRemoveTopLevel, Stage: featuregate.StageAlpha,
		Description: "Refuses settings of the HTTP client outside of the block `http`.",
	},
)
