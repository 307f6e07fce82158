// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package service keeps what the Collector reports: its effective configuration, the status of its components, and
// their modules.
package service

import (
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/confmap"
)

// A Service stores what the Collector reports, and is empty until it does.
type Service struct {
	mu       sync.Mutex
	host     component.Host
	conf     *confmap.Conf                                                    // the effective one
	statuses map[string]map[componentstatus.InstanceID]*componentstatus.Event // by node
}

// Started sets the host.
func (s *Service) Started(host component.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = host
}

// Configured sets the effective configuration.
func (s *Service) Configured(conf *confmap.Conf) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conf = conf
}

// Configuration returns the effective configuration, nil until it is set.
func (s *Service) Configuration() *confmap.Conf {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conf
}

// Graph returns the graph of the effective configuration.
func (s *Service) Graph() *Graph { return NewGraph(s.Configuration()) }

// Factory returns the factory of a type of components, nil if it is not known.
func (s *Service) Factory(kind component.Kind, of component.Type) component.Factory {
	s.mu.Lock()
	host, ok := s.host.(interface {
		GetFactory(kind component.Kind, componentType component.Type) component.Factory
	})
	s.mu.Unlock()
	if !ok {
		return nil
	}
	return host.GetFactory(kind, of)
}
