// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
)

// ErrLimit is what Result.Err is, in the sense of errors.Is, when a page is beyond a limit of its job's.
var ErrLimit = errors.New("limit exceeded")

// A limitError says which limit. It keeps the words Prometheus says it in.
type limitError string

func (e limitError) Error() string { return string(e) }

// Is makes the error one of ErrLimit.
func (e limitError) Is(target error) bool { return target == ErrLimit }

// The limits of a page as a whole.
const (
	ErrSampleLimit = limitError("sample limit exceeded")
	ErrBucketLimit = limitError("histogram bucket limit exceeded")
)

func limitErrorf(format string, args ...any) error { return limitError(fmt.Sprintf(format, args...)) }
