// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package changedfiles tells when files have changed, by their size and time.
package changedfiles

import (
	"os"
	"slices"
)

// Files are files as they were when they were last looked at. One goroutine may use them at a time.
type Files struct {
	names  []string
	stamps []stamp
}

// stamp tells versions of a file apart. It is zero while there is no file.
type stamp struct{ written, size int64 }

// New returns files as they are now. Empty names are left out.
func New(names ...string) *Files {
	f := &Files{names: slices.DeleteFunc(names, func(name string) bool { return name == "" })}
	f.stamps = f.look()
	return f
}

// None reports whether there are no files.
func (f *Files) None() bool { return len(f.names) == 0 }

// Changed reports whether one of them differs from what it was at the last call.
func (f *Files) Changed() bool {
	before := f.stamps
	f.stamps = f.look()
	return !slices.Equal(before, f.stamps)
}

func (f *Files) look() []stamp {
	stamps := make([]stamp, len(f.names))
	for i, name := range f.names {
		if info, err := os.Stat(name); err == nil {
			stamps[i] = stamp{info.ModTime().UnixNano(), info.Size()}
		}
	}
	return stamps
}
