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

// init comes before main, which ocb generates and which knows the collector's commands only: `convert`, `check` and
// `cardinality recommend` are done here, and so is --help. What is left may be a collector that starts.
func init() {
	recommend.Intercept("godwit-agent")
	convert.Intercept("godwit-agent")
	earlysignal.Keep()
}

// plain has the collector say what is wrong with its configuration as `validate` does.
func plain[C interface{ SetErr(w io.Writer) }](command C) C {
	command.SetErr(convert.Plain(os.Stderr))
	return command
}
