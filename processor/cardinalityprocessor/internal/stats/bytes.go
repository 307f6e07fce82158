// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

// MaxBytes is an upper bound on a Book's memory.
const MaxBytes = 3 << 20

// Bytes returns the memory taken, including names.
func (b *Book) Bytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.names.bytes() + b.sample.bytes + b.refused.bytes() + b.metrics.bytes() + b.labels.bytes()
	of := func(all ...*distinct) {
		for _, d := range all {
			n += d.bytes()
		}
	}
	metrics := []*metric{&b.rest}
	for _, r := range b.metrics.rows {
		metrics = append(metrics, &r.of)
	}
	for _, m := range metrics {
		of(&m.series, &m.rejected, &m.observed)
		n += cap(m.labels) * countedBytes
		for i := range m.labels {
			l := &m.labels[i]
			of(&l.series, &l.values, &l.without)
		}
	}
	for _, r := range b.labels.rows {
		of(&r.of.series, &r.of.values, &r.of.without)
	}
	return n
}

const countedBytes = 24 + 2*8 + 3*24
