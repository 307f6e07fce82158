// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build purego

package slab

import "go.opentelemetry.io/collector/pdata/pcommon"

type keptLists struct{}

func (keptLists) keep(pcommon.Map) bool { return false }

func (keptLists) putBack() {}

func (keptLists) forget() {}
