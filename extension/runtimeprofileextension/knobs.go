// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"sync/atomic"
)

// noLimit is the runtime's own word for "no GOMEMLIMIT".
const noLimit = math.MaxInt64

var errHeld = errors.New("another runtimeprofile extension holds the Go runtime of this process: configure one only")

// held says that an instance holds the knobs: there is one pair per process.
var held atomic.Bool

// knobs are the values of GOGC (-1 is off) and GOMEMLIMIT.
type knobs struct {
	gogc  int
	limit int64
}

// lease is the right to turn the knobs, and the memory of where they stood.
type lease struct {
	gogcFromEnv  bool
	limitFromEnv bool
	before, now  knobs
}

func takeLease() (*lease, error) {
	if !held.CompareAndSwap(false, true) {
		return nil, errHeld
	}
	before := readKnobs()
	return &lease{
		gogcFromEnv:  os.Getenv("GOGC") != "", // the runtime takes an empty value for none
		limitFromEnv: os.Getenv("GOMEMLIMIT") != "",
		before:       before,
		now:          before,
	}, nil
}

// apply turns the knobs that the environment left alone and reports whether
// either moved. Each turn stops the world for a moment, so none is turned twice.
func (l *lease) apply(want knobs) bool {
	if l.gogcFromEnv {
		want.gogc = l.now.gogc
	}
	if l.limitFromEnv {
		want.limit = l.now.limit
	}
	changed := want != l.now
	if want.gogc != l.now.gogc {
		debug.SetGCPercent(want.gogc)
	}
	if want.limit != l.now.limit {
		debug.SetMemoryLimit(want.limit)
	}
	l.now = want
	return changed
}

// release restores what was found and lets the next instance in.
func (l *lease) release() {
	l.apply(l.before)
	held.Store(false)
}

// fromEnv names the variables that win over the profile.
func (l *lease) fromEnv() []string {
	var names []string
	if l.gogcFromEnv {
		names = append(names, "GOGC")
	}
	if l.limitFromEnv {
		names = append(names, "GOMEMLIMIT")
	}
	return names
}

// envLimit is GOMEMLIMIT as the environment set it, 0 if it did not.
func (l *lease) envLimit() int64 {
	if l.limitFromEnv {
		return l.before.limit
	}
	return 0
}
