// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package pull lists Kubernetes objects once in an interval, starting at once. A list arrives in pages, so that no more than one
// page is held.
package pull

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/open-telemetry/opentelemetry-collector-contrib/internal/k8sinventory"
)

// Config sets what to list, and how often.
type Config struct {
	k8sinventory.Config

	// Interval is the time between two lists.
	Interval time.Duration
}

type puller struct {
	config Config
	places []k8sinventory.Place
	logger *zap.Logger
	handle func(*unstructured.UnstructuredList)
}

// New returns an observer that passes on what it lists, in pages.
func New(client dynamic.Interface, config Config, logger *zap.Logger, handle func(*unstructured.UnstructuredList)) (k8sinventory.Observer, error) {
	if config.Interval <= 0 {
		return nil, errors.New("cannot list objects without an interval")
	}
	return &puller{config: config, places: config.Places(client), logger: logger, handle: handle}, nil
}

func (o *puller) Start(ctx context.Context, running *sync.WaitGroup) chan struct{} {
	return k8sinventory.Run(ctx, running, o.places, o.run)
}

func (o *puller) run(ctx context.Context, place k8sinventory.Place) {
	ticker := time.NewTicker(o.config.Interval)
	defer ticker.Stop()
	failing := false
	for {
		_, err := place.List(ctx, &o.config.Config, o.handle)
		if ctx.Err() == nil && failing != (err != nil) {
			failing = err != nil
			o.tell(place, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// tell logs that lists begin to fail, or succeed again.
func (o *puller) tell(place k8sinventory.Place, err error) {
	logger := o.logger.With(zap.Stringer("resource", &o.config.Gvr), zap.String("namespace", place.Namespace))
	if err != nil {
		logger.Error("cannot list objects", zap.Error(err))
		return
	}
	logger.Info("objects are listed again")
}
