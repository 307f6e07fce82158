// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"os"
	"path/filepath"

	"go.uber.org/zap"
)

const (
	// walSize limits the queue on disk. Contrib's log has no bound.
	walSize = 10 << 30
	// contribLog is where contrib's exporter keeps its log, in `wal.directory`.
	contribLog = "prom_remotewrite"
)

// warnOfContribs says what an earlier run of contrib's exporter has left, which nobody else can read.
func (c *WALConfig) warnOfContribs(log *zap.Logger) {
	path := filepath.Join(c.Directory, contribLog)
	if entries, err := os.ReadDir(path); err == nil && len(entries) > 0 {
		log.Warn("`wal.directory` holds a log of contrib's exporter, which is not sent: let that exporter send it, or delete it",
			zap.String("path", path))
	}
}
