// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"sync/atomic"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/fair"
)

// account is a tenant's share of the memory. Each series made belongs to one tenant, and what feeds it is accounted
// with it.
type account struct {
	used       atomic.Int64
	aggregates int         // how many the tenant has; under the aggregator's lock. An account without any is forgotten
	short      atomic.Bool // memory has run short since feeders were last looked over
	wasShort   bool        // the value of short when that began; belongs to the flush
}

// reserve takes memory for a tenant, if there is enough. Where there are several tenants, none may take so much that
// others find none.
func (a *Aggregator) reserve(of *account, n int64) bool {
	left, has := a.Budget-a.Used.Add(n), of.used.Add(n)
	if left >= 0 && (!a.Tenants || has <= fair.Most(left)) {
		return true
	}
	a.release(of, n)
	of.short.Store(true)
	return false
}

// take takes memory for state that was restored.
func (a *Aggregator) take(of *account, n int64) {
	a.Used.Add(n)
	of.used.Add(n)
}

// release gives memory back.
func (a *Aggregator) release(of *account, n int64) { a.take(of, -n) }

// accountOf returns a tenant's account. The aggregator's lock is held, here and below.
func (a *Aggregator) accountOf(tenant string) *account {
	if of := a.accounts[tenant]; of != nil {
		return of
	}
	return new(account)
}

// open counts an aggregate in its tenant's account.
func (a *Aggregator) open(g *Aggregate) {
	g.account.aggregates++
	a.accounts[g.Tenant.Name] = g.account
}

// close takes an aggregate out of its account, and forgets the account if it has nothing left.
func (a *Aggregator) close(g *Aggregate) {
	if g.account.aggregates--; g.account.aggregates == 0 {
		delete(a.accounts, g.Tenant.Name)
	}
}

// noteShortages records for which tenants feeders are to be forgotten early: a tenant whose memory is short gets none of the
// others'.
func (a *Aggregator) noteShortages() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, of := range a.accounts {
		of.wasShort = of.short.Swap(false)
	}
}

// Fullest returns the most memory that any one tenant takes.
func (a *Aggregator) Fullest() (most int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, of := range a.accounts {
		most = max(most, of.used.Load())
	}
	return most
}
