// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"time"
)

// unknown is the number of tenants that have queued nothing so far.
const unknown = math.MaxUint32

// minTenants is how many names are kept without a look at who still has something queued.
const minTenants = 1024

// tenants are the numbers of tenants by name. Whoever makes blocks bounds the tenants there are, not those there have been.
type tenants struct {
	numbers map[string]uint32
	next    uint32
	most    int       // so many names are kept before those are looked for that are of no more use
	forgot  time.Time // when that was
}

func newTenants() tenants { return tenants{numbers: map[string]uint32{}, most: minTenants} }

// number is a tenant's, which is found or given.
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

// areMany says whether it is time to forget some.
func (t *tenants) areMany() bool { return len(t.numbers) >= t.most }

// forget forgets those of no more use, as for which may says so: it is told when this was done before.
func (t *tenants) forget(may func(number uint32, before time.Time) bool) {
	for name, n := range t.numbers {
		if may(n, t.forgot) {
			delete(t.numbers, name)
		}
	}
	t.forgot = time.Now()
	t.most = max(minTenants, 2*len(t.numbers))
}
