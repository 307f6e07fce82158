// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"

	"github.com/godwit-otel/godwit/internal/convert"
	"github.com/godwit-otel/godwit/internal/earlysignal"
	"github.com/godwit-otel/godwit/internal/recommend"
)

// init runs before main, which ocb generates and which knows only the Collector's commands. It handles `convert`,
// `check`, `cardinality recommend` and --help, which end the process. Otherwise a collector may start.
func init() {
	recommend.Intercept("godwit-agent")
	convert.Intercept("godwit-agent")
	earlysignal.Keep()
}

// plain makes the collector report errors in its configuration as `validate` does, and print no secrets.
func plain[C interface {
	SetErr(w io.Writer)
	SetOut(w io.Writer)
}](command C) C {
	command.SetErr(convert.Plain(os.Stderr))
	command.SetOut(convert.Shown(os.Stdout, os.Args[1:]))
	return command
}
