// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/godwit-otel/godwit/internal/convert"

// init comes before main, which ocb generates and which knows the collector's commands only: `convert` and `check` are
// done here, and so is --help.
func init() { convert.Intercept("godwit-agent") }
