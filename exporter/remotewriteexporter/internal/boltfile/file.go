// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package boltfile reads the bbolt file of contrib's file_storage, and does not write to it.
//
// It uses plain reads and trusts no number in the file: if a page is damaged, the values below it are missing, and
// everything else is readable. Only the keys are in memory.
package boltfile

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/segments"
)

const (
	// bucket is file_storage's only bucket.
	bucket = "default"
	// SetAside is the suffix of a damaged file that is kept.
	SetAside = ".damaged"
)

// File is a bbolt file, of which only the values are used.
type File struct {
	name   string
	file   *os.File
	size   int64
	page   int64 // size of a page in bytes
	pages  uint64
	values map[string]place
	seen   map[uint64]bool // pages
	last   string          // the last key that was visited
	least  string          // lower bound of the next key
	// damaged is the number of damaged pages and values.
	damaged int
}

// place is the position of a value.
type place struct {
	at   int64
	size uint32
}

// Open reads the keys of a file, which nobody else may have open.
func Open(name string) (*File, error) {
	file, err := os.Open(name) //nolint:gosec // the configuration names the folder
	if err != nil {
		return nil, err
	}
	f := &File{name: name, file: file, values: map[string]place{}, seen: map[uint64]bool{}}
	if err := f.open(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

func (f *File) open() error {
	if err := segments.Lock(f.file); err != nil {
		return fmt.Errorf("cannot lock %s, which another process may use: %w", f.name, err)
	}
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if f.size = info.Size(); f.size == 0 {
		return nil // the file is new
	}
	root, ok := f.root()
	if !ok {
		f.damaged++
		return nil
	}
	f.walk(root, 0, func(e element) {
		if !e.isBucket || e.key != bucket {
			f.damaged++ // without a root, there is nothing else to read
			return
		}
		f.walkBucket(e.value, func(e element) {
			if e.isBucket {
				f.damaged++
				return
			}
			f.values[e.key] = e.value
		})
	})
	f.seen = nil
	return nil
}

// Name returns the name of the file.
func (f *File) Name() string { return f.name }

// Damaged is how many pages and values could not be read.
func (f *File) Damaged() int { return f.damaged }

// DamagedBytes is about how many bytes that is.
func (f *File) DamagedBytes() int64 {
	if f.page == 0 {
		return f.size
	}
	return min(int64(f.damaged)*f.page, f.size)
}

// Keys are the keys of all readable values, sorted.
func (f *File) Keys() []string { return slices.Sorted(maps.Keys(f.values)) }

// Get reads a value. It returns nil if there is none.
func (f *File) Get(key string) ([]byte, error) {
	p, ok := f.values[key]
	if !ok {
		return nil, nil
	}
	value := make([]byte, p.size)
	if _, err := f.file.ReadAt(value, p.at); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read %s: %w", f.name, err)
	}
	return value, nil
}

// Remove deletes the file, and returns once that is on disk. A damaged file is kept under another name, for inspection.
func (f *File) Remove() error {
	err := f.file.Close()
	if f.damaged > 0 {
		err = errors.Join(err, os.Rename(f.name, f.name+SetAside))
	} else {
		err = errors.Join(err, os.Remove(f.name))
	}
	return errors.Join(err, segments.SyncFolder(filepath.Dir(f.name)))
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }
