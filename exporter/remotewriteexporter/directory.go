// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/boltfile"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/segments"
)

// storageName identifies the exporter's values in a storage.
const storageName = "remotewrite"

// ownFolder is the exporter's folder in `queue.directory`.
func (e *remoteWrite) ownFolder() string {
	name := strings.NewReplacer("/", "_", string(filepath.Separator), "_").Replace("exporter_" + e.set.ID.String())
	return filepath.Join(e.cfg.Queue.Directory, url.PathEscape(name))
}

// openDirectory opens the log in `queue.directory`. If file_storage had its files there, and one of them is this
// exporter's, its content is sent first.
func (e *remoteWrite) openDirectory(ctx context.Context) (storage.Client, error) {
	log, err := segments.Open(e.ownFolder(), segments.Options{
		Sync:    e.cfg.Queue.FSync,
		Counted: queue.BlockPrefix,
		Damaged: e.telemetry.storageDamaged,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot open the queue in `queue.directory`: %w", err)
	}
	client, err := e.takeOver(ctx, log, filepath.Join(e.cfg.Queue.Directory, fileStorageName(e.set.ID)))
	if err != nil {
		return nil, errors.Join(err, log.Close(ctx))
	}
	return client, nil
}

// takeOver adds the content of a file of file_storage to a log, if there is one.
func (e *remoteWrite) takeOver(ctx context.Context, log *segments.Store, name string) (storage.Client, error) {
	var earlier queue.Earlier
	file, err := boltfile.Open(name)
	switch {
	case err == nil:
		earlier = file
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("cannot read the queue of file_storage in `queue.directory`: %w", err)
	}
	client, blocks, err := queue.TakeOver(ctx, log, earlier, func(err error) {
		if err != nil {
			e.set.Logger.Error("cannot delete the file of file_storage although all of it is sent", zap.String("file", name), zap.Error(err))
			return
		}
		e.set.Logger.Info("the queue of file_storage is sent: its file is deleted", zap.String("file", name))
	})
	if err != nil {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
		return nil, err
	}
	if blocks > 0 {
		e.set.Logger.Info("the queue of file_storage is sent first, and its file deleted then", zap.String("file", name), zap.Int("requests", blocks))
	}
	if file != nil && file.Damaged() > 0 {
		e.set.Logger.Error("a part of the queue of file_storage cannot be read: what was in it is lost; the file stays under another name",
			zap.String("file", name), zap.Int("damaged pages", file.Damaged()))
	}
	return client, nil
}

// warnOfDirectory warns that a storage is used instead of `queue.directory`, and what is left behind there.
func (e *remoteWrite) warnOfDirectory() {
	left := int64(0)
	files, _ := filepath.Glob(filepath.Join(e.ownFolder(), "*.log"))
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			left += info.Size()
		}
	}
	e.set.Logger.Warn("`queue.directory` has no effect, since `queue.storage` is set, too: without `queue.storage` the queue is there, and what "+
		"file_storage has in the same folder is sent first", zap.String("directory", e.cfg.Queue.Directory), zap.Int64("bytes left in it", left))
}

// fileStorageName is the name of the exporter's file in the folder of contrib's file_storage.
func fileStorageName(id component.ID) string {
	var b strings.Builder
	for _, r := range fmt.Sprintf("exporter_%s_%s_%s", id.Type(), id.Name(), storageName) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "~%04X", r)
		}
	}
	return b.String()
}
