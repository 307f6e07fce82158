// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package watch has what the API tells a watcher.
package watch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An EventType says what has happened to an object.
type EventType string

// The API sends these. A bookmark is no change: it carries the version that a watcher has seen all of. Errors are no events here.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	Bookmark EventType = "BOOKMARK"
)

// An Event is a change of one object.
type Event struct {
	Type   EventType
	Object metav1.Object
}

// Interface is a watch that is open. One goroutine reads it.
type Interface interface {
	// Next waits for an event. io.EOF is the end of a watch that the API has ended as it ends each.
	Next() (Event, error)
	Stop()
}
