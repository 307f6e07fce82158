// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package watch has the events of a watch.
package watch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An EventType is what happened to an object.
type EventType string

// The API's types of events. A bookmark is not a change: it carries the version up to which the watcher has seen
// everything. Errors are no events here.
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

// Interface is an open watch. One goroutine reads it.
type Interface interface {
	// Next waits for an event. It returns io.EOF if the API has ended the watch, as it does with each after a time.
	Next() (Event, error)
	Stop()
}
