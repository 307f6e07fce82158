// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

// Words that the API is made of.
const (
	wordReceiver  = "receiver"
	wordProcessor = "processor"
	wordExporter  = "exporter"
	wordConnector = "connector"
	wordExtension = "extension"

	wordMetrics = "metrics"
	wordMetric  = "metric"
	wordSamples = "samples"
	wordBytes   = "bytes"
	wordNone    = "none"
	perSecond   = "samples/s"

	itemsPerSecond = "items/s"

	viewOverview      = "overview"
	viewTargets       = "targets"
	viewCardinality   = "cardinality"
	viewDelivery      = "delivery"
	viewConfiguration = "configuration"

	formatJSON = "json"
	formatCSV  = "csv"

	paramState  = "state"
	paramReason = "reason"
	paramURL    = "url"
	paramJob    = "job"

	statusRecoverable = "recoverable_error"
	codeBadRequest    = "bad_request"

	healthOK       = "ok"
	healthDegraded = "degraded"
	healthFailing  = "failing"

	modeDryRun = "dry_run"

	labelAddress = "__address__"
	localhost    = "localhost"
)
