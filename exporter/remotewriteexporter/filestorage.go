// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/boltfile"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
)

const (
	// fileStoragePackage is the package of contrib's file_storage.
	fileStoragePackage = "github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	// salvaged is the suffix of a damaged file whose values are being copied: if the process ends meanwhile, the next
	// one continues.
	salvaged = ".salvage"
	// copiedAtOnce is about how many bytes are copied in one batch.
	copiedAtOnce = 1 << 20
)

// folderOf returns the folder of file_storage. There is no API for it, so its configuration is read by reflection;
// false for any other extension, or if that changes.
func folderOf(extension storage.Extension) (folder string, ok bool) {
	v := reflect.Indirect(reflect.ValueOf(extension))
	if v.Kind() != reflect.Struct || v.Type().PkgPath() != fileStoragePackage {
		return "", false
	}
	cfg := v.FieldByName("cfg")
	if cfg.Kind() != reflect.Pointer || cfg.Elem().Kind() != reflect.Struct {
		return "", false
	}
	directory := cfg.Elem().FieldByName("Directory")
	if directory.Kind() != reflect.String {
		return "", false
	}
	return directory.String(), true
}

// openStorage opens the exporter's storage in an extension. bbolt crashes the process if a file is damaged, so files of
// file_storage are checked before: a damaged one is set aside, and what can be read of it is copied to another.
func (e *remoteWrite) openStorage(ctx context.Context, extension storage.Extension) (storage.Client, error) {
	var damaged *boltfile.File
	name := ""
	if folder, ok := folderOf(extension); ok {
		var err error
		name = filepath.Join(folder, fileStorageName(e.set.ID))
		if damaged, err = setAsideIfDamaged(name); err != nil {
			return nil, fmt.Errorf("cannot set the damaged file of file_storage aside: %w", err)
		}
	}
	client, err := extension.GetClient(ctx, component.KindExporter, e.set.ID, storageName)
	if damaged == nil || err != nil {
		if damaged != nil {
			err = errors.Join(err, damaged.Close())
		}
		return client, err
	}
	keys := damaged.Keys()
	lost, why := copyValues(ctx, client, damaged, keys)
	e.telemetry.damaged.Add(damaged.DamagedBytes())
	e.set.Logger.Error("a part of the queue of file_storage cannot be read: what was in it is lost, the rest is sent; the file stays under another name",
		zap.String("file", name+boltfile.SetAside), zap.Int("damaged pages", damaged.Damaged()), zap.Int("values read", len(keys)))
	if lost > 0 {
		e.telemetry.lost(lost)
		e.set.Logger.Error("cannot copy all that can be read of the queue of file_storage", zap.Error(why))
	}
	if err := errors.Join(damaged.Close(), os.Rename(name+salvaged, name+boltfile.SetAside)); err != nil {
		return nil, errors.Join(err, client.Close(ctx))
	}
	return &mended{Client: client, keys: keys}, nil
}

// setAsideIfDamaged renames a bbolt file, and returns it, if it is damaged. It returns nil if it is not, or cannot be
// read: then file_storage will report why.
func setAsideIfDamaged(name string) (*boltfile.File, error) {
	file, err := boltfile.Open(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	half, halfErr := boltfile.Open(name + salvaged) // left by a process that ended while it copied
	switch {
	case halfErr == nil:
		if file == nil {
			return half, nil
		}
		isDamaged := file.Damaged() > 0
		if err = file.Close(); err == nil && isDamaged {
			err = os.Rename(name, name+boltfile.SetAside)
		}
		if err != nil {
			return nil, errors.Join(err, half.Close())
		}
		return half, nil
	case file == nil:
		return nil, nil
	case file.Damaged() == 0:
		return nil, file.Close()
	}
	if err := errors.Join(file.Close(), os.Rename(name, name+salvaged)); err != nil {
		return nil, err
	}
	return boltfile.Open(name + salvaged)
}

// copyValues copies the values of a file. It returns how many blocks could not be copied, and why.
func copyValues(ctx context.Context, client storage.Client, from *boltfile.File, keys []string) (lost int, why error) {
	for len(keys) > 0 {
		var ops []*storage.Operation
		blocks, size, n := 0, 0, 0
		for ; n < len(keys) && size < copiedAtOnce; n++ {
			isBlock := strings.HasPrefix(keys[n], queue.BlockPrefix)
			value, err := from.Get(keys[n])
			if err != nil {
				if why = err; isBlock {
					lost++
				}
				continue
			}
			if ops, size = append(ops, storage.SetOperation(keys[n], value)), size+len(value); isBlock {
				blocks++
			}
		}
		if err := client.Batch(ctx, ops...); err != nil {
			lost, why = lost+blocks, err
		}
		keys = keys[n:]
	}
	return lost, why
}

// mended is a storage with what could be copied from a damaged file.
type mended struct {
	storage.Client

	keys []string
}

// IsDamaged reports that some of it is lost.
func (*mended) IsDamaged() bool { return true }

// Promised reports that it is not known how much there was.
func (*mended) Promised() (blocks int, ok bool) { return 0, false }

// Keys are the keys of all values that were copied.
func (m *mended) Keys() []string { return slices.Clone(m.keys) }
