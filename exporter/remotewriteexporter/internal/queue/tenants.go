// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"time"
)

// unknown is the number of tenants that have queued nothing yet.
const unknown = math.MaxUint32

// minTenants is how many names are kept before unused ones are looked for.
const minTenants = 1024

// tenants are the numbers of tenants by name. The maker of blocks limits how many exist at a time, not how many there
// ever were.
type tenants struct {
	numbers map[string]uint32
	next    uint32
	most    int       // names kept before unused ones are looked for
	forgot  time.Time // when that was last done
}

func newTenants() tenants { return tenants{numbers: map[string]uint32{}, most: minTenants} }

// number returns a tenant's number, after assigning one if needed.
func (t *tenants) number(name string) uint32 {
	n, ok := t.numbers[name]
	if !ok {
		n = t.next
		t.next = (n + 1) % unknown
		t.numbers[name] = n
	}
	return n
}

func (t *tenants) numberIfKnown(name string) uint32 {
	if n, ok := t.numbers[name]; ok {
		return n
	}
	return unknown
}

// areMany reports whether it is time to forget some.
func (t *tenants) areMany() bool { return len(t.numbers) >= t.most }

// forget forgets those for which may returns true: before is when this was last done.
func (t *tenants) forget(may func(number uint32, before time.Time) bool) {
	for name, n := range t.numbers {
		if may(n, t.forgot) {
			delete(t.numbers, name)
		}
	}
	t.forgot = time.Now()
	t.most = max(minTenants, 2*len(t.numbers))
}
