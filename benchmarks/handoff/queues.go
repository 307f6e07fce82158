// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const (
	// capacity is the size of each queue, and batch the number of items that the consumer writes at a time if it can
	// wait for more: the numbers of the article that the ring is taken from.
	capacity = 2048
	batch    = 512
	// patience is how long the consumer waits for a full batch.
	patience = 5 * time.Millisecond
)

// Item is what is handed over: a pointer to a request.
type Item = *int

// Queue is one way to hand items over. Run is the consumer: it calls take with the number of items that have come,
// until the queue is closed.
type Queue interface {
	Put(item Item)
	Run(take func(n int))
	// Close makes Run return once everything is taken. Put must not be called afterwards.
	Close()
}

// Way is a way to hand items over.
type Way struct {
	Name, Title string
	New         func() Queue
}

// Ways returns the ways to compare.
func Ways() []Way {
	return []Way{
		{"channel", "channel", func() Queue { return &channel{c: make(chan Item, capacity)} }},
		{"mutex", "queue under a mutex", newLocked},
		{"exporterhelper", "exporterhelper's queue", newHelper},
		{"ring", "ring, woken for each item", func() Queue { return newRinged(1) }},
		{"ring-batched", "ring, woken for a batch", func() Queue { return newRinged(batch) }},
	}
}

type channel struct{ c chan Item }

func (q *channel) Put(item Item) { q.c <- item }

func (q *channel) Close() { close(q.c) }

func (q *channel) Run(take func(int)) {
	for range q.c {
		take(1)
	}
}

// locked is the simplest queue, with a mutex.
type locked struct {
	mu     sync.Mutex
	filled *sync.Cond
	room   *sync.Cond
	items  []Item
	closed bool
}

func newLocked() Queue {
	q := &locked{items: make([]Item, 0, capacity)}
	q.filled, q.room = sync.NewCond(&q.mu), sync.NewCond(&q.mu)
	return q
}

func (q *locked) Put(item Item) {
	q.mu.Lock()
	for len(q.items) == capacity {
		q.room.Wait()
	}
	q.items = append(q.items, item)
	q.mu.Unlock()
	q.filled.Signal()
}

func (q *locked) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.filled.Signal()
}

func (q *locked) Run(take func(int)) {
	mine := make([]Item, 0, capacity)
	for {
		q.mu.Lock()
		for len(q.items) == 0 && !q.closed {
			q.filled.Wait()
		}
		q.items, mine = mine[:0], q.items
		q.mu.Unlock()
		q.room.Broadcast()
		if len(mine) == 0 {
			return
		}
		take(len(mine))
		clear(mine)
	}
}

// ringed is the ring with a consumer that waits for a number of items.
type ringed struct {
	*Ring[Item]

	need   int
	closed chan struct{}
}

func newRinged(need int) *ringed {
	return &ringed{Ring: NewRing[Item](capacity), need: need, closed: make(chan struct{})}
}

func (q *ringed) Close() { close(q.closed) }

func (q *ringed) Run(take func(int)) {
	buf := make([]Item, batch)
	t := time.NewTimer(patience)
	for {
		t.Reset(patience)
		n := q.Take(buf, q.need, t)
		if n > 0 {
			take(n)
			continue
		}
		select {
		case <-q.closed:
			return
		default:
		}
	}
}

// helper is exporterhelper's queue with one consumer, with requests of one item.
type helper struct {
	exporter exporter.Traces
	take     func(int)
	begin    chan struct{}
	done     chan struct{}
}

type request struct{ item Item }

func (request) ItemsCount() int { return 1 }

func (request) BytesSize() int { return 1 }

func (request) MergeSplit(context.Context, int, exporterhelper.RequestSizerType, xexporterhelper.Request) ([]xexporterhelper.Request, error) {
	return nil, errors.New("cannot merge requests: the queue does not batch")
}

type itemKey struct{}

func newHelper() Queue {
	q := &helper{begin: make(chan struct{}), done: make(chan struct{})}
	id := component.MustNewType("handoff")
	var err error
	q.exporter, err = xexporterhelper.NewTracesRequest(context.Background(),
		exporter.Settings{ID: component.NewID(id), TelemetrySettings: componenttest.NewNopTelemetrySettings()},
		func(ctx context.Context, _ ptrace.Traces) (xexporterhelper.Request, error) {
			item, _ := ctx.Value(itemKey{}).(Item)
			return request{item}, nil
		},
		func(context.Context, xexporterhelper.Request) error {
			<-q.begin
			q.take(1)
			return nil
		},
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}),
		xexporterhelper.WithQueueBatch(configoptional.Some(exporterhelper.QueueBatchConfig{
			Sizer: exporterhelper.RequestSizerTypeRequests, QueueSize: capacity, NumConsumers: 1, BlockOnOverflow: true,
		}), xexporterhelper.QueueBatchSettings{}))
	if err == nil {
		err = q.exporter.Start(context.Background(), componenttest.NewNopHost())
	}
	if err != nil {
		panic(fmt.Errorf("cannot make a queue: %w", err)) // all settings are constants
	}
	return q
}

var noTraces = ptrace.NewTraces()

func (q *helper) Put(item Item) {
	_ = q.exporter.ConsumeTraces(context.WithValue(context.Background(), itemKey{}, item), noTraces)
}

// Run only waits: the consumer is a goroutine of exporterhelper.
func (q *helper) Run(take func(int)) {
	q.take = take
	close(q.begin)
	<-q.done
}

func (q *helper) Close() {
	_ = q.exporter.Shutdown(context.Background())
	close(q.done)
}
