// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter"
)

const (
	// walSize bounds the queue on disk. Contrib's log has no bound.
	walSize = 10 << 30
	// contribLog is where contrib's exporter keeps its log, in `wal.directory`.
	contribLog = "prom_remotewrite"
)

// storage is where the queue is kept that takes the place of contrib's log: in a file of `wal.directory`, which is synced with
// the disk after each write, as that log is.
func (c *WALConfig) storage(ctx context.Context, set exporter.Settings) (storage.Extension, error) {
	factory := filestorage.NewFactory()
	cfg := factory.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory, cfg.CreateDirectory, cfg.FSync = c.Directory, true, true
	cfg.Compaction.Directory, cfg.Compaction.OnStart, cfg.Compaction.OnRebound = c.Directory, true, true
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("cannot keep a queue in `wal.directory`: %w", err)
	}
	created, err := factory.Create(ctx, extension.Settings{
		ID:                component.NewIDWithName(factory.Type(), set.ID.Name()),
		TelemetrySettings: set.TelemetrySettings,
		BuildInfo:         set.BuildInfo,
	}, cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot keep a queue in `wal.directory`: %w", err)
	}
	return created.(storage.Extension), nil
}

// warnOfContribs says what an earlier run of contrib's exporter has left, which nobody else can read.
func (c *WALConfig) warnOfContribs(log *zap.Logger) {
	path := filepath.Join(c.Directory, contribLog)
	if entries, err := os.ReadDir(path); err == nil && len(entries) > 0 {
		log.Warn("`wal.directory` holds a log of contrib's exporter, which is not sent: let that exporter send it, or delete it",
			zap.String("path", path))
	}
}

// withWAL is the option that keeps the queue on disk, if the configuration says so.
func (c *Config) withWAL(ctx context.Context, set exporter.Settings) ([]remotewriteexporter.Option, error) {
	if !c.WAL.HasValue() {
		return nil, nil
	}
	wal := c.WAL.Get()
	own, err := wal.storage(ctx, set)
	if err != nil {
		return nil, err
	}
	wal.warnOfContribs(set.Logger)
	return []remotewriteexporter.Option{remotewriteexporter.WithStorage(own)}, nil
}
