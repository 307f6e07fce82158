// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"os"
	"path/filepath"

	"go.uber.org/zap"
)

const (
	// walSize limits the queue on disk. Contrib's log has no limit.
	walSize = 10 << 30
	// contribLog is the directory in `wal.directory` that contains the log of contrib's exporter.
	contribLog = "prom_remotewrite"
)

// warnOfContribs logs a warning if contrib's exporter has left a log, which only it can read.
func (c *WALConfig) warnOfContribs(log *zap.Logger) {
	path := filepath.Join(c.Directory, contribLog)
	if entries, err := os.ReadDir(path); err == nil && len(entries) > 0 {
		log.Warn("`wal.directory` holds a log of contrib's exporter, which is not sent: let that exporter send it, or delete it",
			zap.String("path", path))
	}
}
