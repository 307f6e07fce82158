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

// A Service is told by the Collector. It knows nothing until it is.
type Service struct {
	mu       sync.Mutex
	host     component.Host
	conf     *confmap.Conf                                                    // the effective one
	statuses map[string]map[componentstatus.InstanceID]*componentstatus.Event // by node
}

// Started learns the host.
func (s *Service) Started(host component.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = host
}

// Configured learns the effective configuration.
func (s *Service) Configured(conf *confmap.Conf) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conf = conf
}

// Configuration is the effective one, nil until it is told.
func (s *Service) Configuration() *confmap.Conf {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conf
}

// Graph reads the effective configuration.
func (s *Service) Graph() *Graph { return NewGraph(s.Configuration()) }

// Factory is that of a type of components, nil if it is not known.
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
