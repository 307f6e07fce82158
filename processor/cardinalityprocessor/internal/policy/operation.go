// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Operation is how several series are combined.
type Operation uint8

// The operations.
const (
	OperationSum Operation = iota
	OperationCount
	OperationMin
	OperationMax
	OperationAvg
	OperationLast
	Operations
)

const (
	nameSum   = "sum"
	nameCount = "count"
	nameMin   = "min"
	nameAvg   = "avg"
)

// OperationNames are the configuration's names.
var OperationNames = [Operations]string{nameSum, nameCount, nameMin, NameMax, nameAvg, NameLast}
