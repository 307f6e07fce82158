// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/queue"
)

// A queue on disk is identified by the exporter's ID and, with `endpoints`, by the name of one of them. If these
// change, a queue with data would never be opened again. So the names are stored, and what is left under one that no
// longer exists is delivered to the destination with the same endpoint, or else to the first.

// stored identifies a destination that has a queue on disk. Without a name, it is the only one.
type stored struct {
	Name     string `json:"name"`
	Endpoint string `json:"endpoint"`
}

// storedKey is stored beside the queue of an exporter with one destination, which does not use that key.
const storedKey = "godwit.destinations"

// left finds what former destinations have left on disk. It must be called before any queue is opened, because a
// storage may have one client at a time.
func (e *streamExporter) left(ctx context.Context, host component.Host) []stored {
	configured := e.cfg.queue()
	if configured == nil || configured.Storage == nil {
		return nil
	}
	disk, ok := host.GetExtensions()[*configured.Storage].(storage.Extension)
	if !ok {
		return nil // the queue reports it
	}
	left, err := e.leftOn(ctx, disk)
	if err != nil {
		e.set.Logger.Warn("Cannot look for queues of other destinations that were configured before", zap.Error(err))
	}
	return left
}

// ofNow returns the current destinations, as they are stored.
func (e *streamExporter) ofNow() (now []stored) {
	for _, d := range e.dests {
		one := stored{Endpoint: d.client.Endpoint}
		if len(e.cfg.Endpoints) > 0 {
			one.Name = d.name
		}
		now = append(now, one)
	}
	return now
}

// queueOf returns the ID of a destination's queue.
func (e *streamExporter) queueOf(d stored) component.ID {
	if d.Name == "" {
		return e.set.ID
	}
	return component.NewIDWithName(e.set.ID.Type(), e.set.ID.Name()+"@"+d.Name)
}

// leftOn finds former destinations with data on disk, and stores these together with the current ones.
func (e *streamExporter) leftOn(ctx context.Context, disk storage.Extension) (left []stored, err error) {
	own, err := disk.GetClient(ctx, component.KindExporter, e.set.ID, e.signal.String())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, own.Close(ctx)) }()
	text, err := own.Get(ctx, storedKey)
	if err != nil {
		return nil, err
	}
	var before []stored
	if len(text) > 0 {
		if err := json.Unmarshal(text, &before); err != nil {
			return nil, fmt.Errorf("cannot read which destinations there were: %w", err)
		}
	}
	now := e.ofNow()
	has := func(all []stored, name string) bool {
		return slices.ContainsFunc(all, func(d stored) bool { return d.Name == name })
	}
	if !has(before, "") {
		before = append(before, stored{}) // from a version that did not store it
	}
	for _, d := range before {
		if has(now, d.Name) {
			continue
		}
		client := own
		if d.Name != "" {
			if client, err = disk.GetClient(ctx, component.KindExporter, e.queueOf(d), e.signal.String()); err != nil {
				return left, err
			}
		}
		waiting, err := hasRequests(ctx, client)
		if client != own {
			err = errors.Join(err, client.Close(ctx))
		}
		if err != nil {
			return left, err
		}
		if waiting {
			left = append(left, d)
		}
	}
	now = append(now, left...)
	after, err := json.Marshal(now)
	if err != nil || string(after) == string(text) {
		return left, err
	}
	return left, own.Set(ctx, storedKey, after)
}

// hasRequests reports whether the helper's queue in a storage contains requests, or was not closed properly. See
// persistent_queue.go there.
func hasRequests(ctx context.Context, client storage.Client) (bool, error) {
	const key, fieldRead, fieldWrite, fieldDispatched = "qmv0", 3, 4, 5
	metadata, err := client.Get(ctx, key)
	if err != nil {
		return false, err
	}
	var read, write uint64
	for rest := metadata; len(rest) > 0; {
		number, kind, tag := protowire.ConsumeTag(rest)
		if tag < 0 {
			return true, nil // the queue will report the error
		}
		size := protowire.ConsumeFieldValue(number, kind, rest[tag:])
		if size < 0 {
			return true, nil
		}
		value := rest[tag : tag+size]
		rest = rest[tag+size:]
		switch {
		case number == fieldRead && kind == protowire.Fixed64Type:
			read, _ = protowire.ConsumeFixed64(value)
		case number == fieldWrite && kind == protowire.Fixed64Type:
			write, _ = protowire.ConsumeFixed64(value)
		case number == fieldDispatched:
			return true, nil
		}
	}
	return read != write, nil
}

// deliverFrom makes a destination deliver the content of a former destination's queue.
func (e *streamExporter) deliverFrom(ctx context.Context, host component.Host, from stored) error {
	to := e.dests[0]
	for _, d := range e.dests {
		if d.client.Endpoint == from.Endpoint {
			to = d
		}
	}
	settings := to.queueSettings()
	settings.Exporter.ID = e.queueOf(from)
	settings.Start, settings.Close = nil, nil
	q, err := queue.New(ctx, settings)
	if err == nil {
		err = q.Start(ctx, host)
	}
	if err != nil {
		return fmt.Errorf("cannot open the queue on disk of a destination that was configured before, %q: %w", from.Name, err)
	}
	to.adopted = append(to.adopted, q)
	to.set.Logger.Warn("The queue on disk of a destination that is not configured any more has data: it is sent to this one",
		zap.String("of", settings.Exporter.ID.String()), zap.String("endpoint", to.client.Endpoint))
	return nil
}
