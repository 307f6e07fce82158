// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/request"
)

// Cut closes what was added so far: the next Flush of each shard and tenant takes only that, however late it comes. It
// appends the tenants to flush to dst.
func (e *Encoder) Cut(dst []string) []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	e.tenantsMu.Lock()
	defer e.tenantsMu.Unlock()
	e.cache.Cut()
	for name, t := range e.tenants {
		dst = append(dst, name)
		for i := range t.columns {
			t.columns[i].CutOff()
		}
	}
	return dst
}

// Flush encodes what a shard of a tenant holds, or held at the last Cut, and appends the requests to dst. Within one
// series earlier samples come first, over all blocks in order.
func (e *Encoder) Flush(shard int, tenant string, f block.Format, dst []block.Block) (blocks []block.Block) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t := e.find(tenant)
	if t == nil {
		return dst
	}
	c := &t.columns[shard]
	c.Flushing.Lock()
	defer c.Flushing.Unlock()
	b := c.Swap()
	if b == nil {
		return dst
	}
	w := e.writer()
	w.Blocks = dst
	defer e.losses.Survive(func(any) int {
		lost := b.Samples.Len()
		for _, made := range w.Blocks[len(dst):] {
			lost -= made.Samples + made.Histograms
		}
		blocks = w.Blocks // finished blocks are valid
		return max(lost, 0)
	})
	w.Write(b, f, shard, tenant)
	blocks = w.Blocks
	w.Release()
	select {
	case e.writers <- w:
	default: // enough writers are idle
	}
	c.GiveBack(b)
	return blocks
}

func (e *Encoder) writer() *request.Writer {
	select {
	case w := <-e.writers:
		return w
	default:
		return request.NewWriter(e.cache, e.Limits, e.losses, &e.bodies, e.cfg.MetadataInterval)
	}
}
