// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
)

// One receiver serves the pipelines of all signals, since they share its ports. The Collector makes one component for
// each signal, with the same configuration object, by which they find the receiver.
var (
	receiversMu sync.Mutex
	receivers   = map[*Config]*sharedReceiver{}
)

type sharedReceiver struct {
	*otlpReceiver

	start, stop sync.Once
	startErr    error
	stopErr     error
}

func shared(cfg *Config, set receiver.Settings, attach func(*otlpReceiver)) (*sharedReceiver, error) {
	receiversMu.Lock()
	defer receiversMu.Unlock()
	s := receivers[cfg]
	if s == nil {
		r, err := newReceiver(cfg, set)
		if err != nil {
			return nil, err
		}
		s = &sharedReceiver{otlpReceiver: r}
		receivers[cfg] = s
	}
	attach(s.otlpReceiver)
	return s, nil
}

// Start starts the receiver on the first call, when all signals are attached.
func (s *sharedReceiver) Start(ctx context.Context, host component.Host) error {
	s.start.Do(func() { s.startErr = s.otlpReceiver.Start(ctx, host) })
	return s.startErr
}

// Shutdown stops the receiver on the first call, before any of its pipelines stop.
func (s *sharedReceiver) Shutdown(ctx context.Context) error {
	s.stop.Do(func() {
		receiversMu.Lock()
		delete(receivers, s.cfg)
		receiversMu.Unlock()
		s.stopErr = s.otlpReceiver.Shutdown(ctx)
	})
	return s.stopErr
}
