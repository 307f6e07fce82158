// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/component/componentstatus"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/redact"
)

// Status is the last status that a component reported: the worst of its instances.
type Status struct {
	Name, Error string
	Since       *time.Time
}

// Recoverable is the status of a component that retries by itself.
const Recoverable = "recoverable_error"

// Faulty reports whether the status is an error.
func (s Status) Faulty() bool { return strings.HasSuffix(s.Name, "_error") }

const statusNone = "none"

var statusNames = map[componentstatus.Status]string{
	componentstatus.StatusNone:             statusNone,
	componentstatus.StatusStarting:         "starting",
	componentstatus.StatusOK:               "ok",
	componentstatus.StatusRecoverableError: Recoverable,
	componentstatus.StatusPermanentError:   "permanent_error",
	componentstatus.StatusFatalError:       "fatal_error",
	componentstatus.StatusStopping:         "stopping",
	componentstatus.StatusStopped:          "stopped",
}

// Changed stores the status of a component.
func (s *Service) Changed(of *componentstatus.InstanceID, event *componentstatus.Event) {
	id := sources.NodeID(of.Kind(), of.ComponentID())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.statuses == nil {
		s.statuses = map[string]map[componentstatus.InstanceID]*componentstatus.Event{}
	}
	if s.statuses[id] == nil {
		s.statuses[id] = map[componentstatus.InstanceID]*componentstatus.Event{}
	}
	s.statuses[id][*of] = event
}

// Status returns the status of a node.
func (s *Service) Status(node string) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var worst *componentstatus.Event
	for _, event := range s.statuses[node] {
		if worst == nil || badness(event) > badness(worst) {
			worst = event
		}
	}
	if worst == nil {
		return Status{Name: statusNone}
	}
	at := worst.Timestamp()
	out := Status{Name: statusNames[worst.Status()], Since: &at}
	if err := worst.Err(); err != nil {
		out.Error = redact.Text(prose.Cut(err.Error(), 1000))
	}
	return out
}

func badness(event *componentstatus.Event) int {
	if componentstatus.StatusIsError(event.Status()) {
		return 100 + int(event.Status())
	}
	return int(event.Status())
}
