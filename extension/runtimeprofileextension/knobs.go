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

// noLimit is the runtime's value for no GOMEMLIMIT.
const noLimit = math.MaxInt64

var errHeld = errors.New("another runtimeprofile extension holds the Go runtime of this process: configure one only")

// held is true while an instance holds the knobs, of which a process has one pair.
var held atomic.Bool

// knobs are the values of GOGC (-1 means off) and GOMEMLIMIT.
type knobs struct {
	gogc  int
	limit int64
}

// lease is the right to set the knobs, with their values before.
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
		gogcFromEnv:  os.Getenv("GOGC") != "", // the runtime ignores an empty value
		limitFromEnv: os.Getenv("GOMEMLIMIT") != "",
		before:       before,
		now:          before,
	}, nil
}

// apply sets the knobs that the environment does not set, and reports whether either changed. Setting a knob stops the
// world for a moment, so an unchanged one is not set.
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

// release restores the knobs and lets another instance take them.
func (l *lease) release() {
	l.apply(l.before)
	held.Store(false)
}

// fromEnv returns the environment variables that take precedence over the profile.
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

// envLimit returns the GOMEMLIMIT that the environment sets, 0 if it does not.
func (l *lease) envLimit() int64 {
	if l.limitFromEnv {
		return l.before.limit
	}
	return 0
}
