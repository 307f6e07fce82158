// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

// Package earlysignal shuts a collector down in order if it is told to end while it starts. A collector listens for signals when all of its
// components have started. Until then a signal's default action ends the process at once, with the data that its receivers have by then.
package earlysignal

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	// every is how often a signal is raised again. A collector that is shutting down ignores further ones.
	every = 50 * time.Millisecond
	// patience is how long a start may take after a signal. If it takes longer, the signal ends the process, as it
	// would without this package.
	patience = 10 * time.Second
)

// Keep raises a SIGINT or SIGTERM again until the process has ended. Commands that do not run a collector are left alone: they end at once.
func Keep() {
	if !runs(os.Args) {
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		again(s, time.NewTicker(every).C, time.After(patience))
		signal.Stop(signals)
		raise(s) // for its default action, in case nobody listens by now
	}()
}

// runs reports whether the arguments start a collector, and not a command, which has a name.
func runs(args []string) bool { return len(args) > 1 && strings.HasPrefix(args[1], "-") }

func again(s os.Signal, tick, late <-chan time.Time) {
	for {
		select {
		case <-tick:
			raise(s)
		case <-late:
			return
		}
	}
}

func raise(s os.Signal) { _ = syscall.Kill(os.Getpid(), s.(syscall.Signal)) }
