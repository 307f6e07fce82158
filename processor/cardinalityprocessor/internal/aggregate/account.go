// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"sync/atomic"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/fair"
)

// account is what a tenant has of the memory. What is made is one tenant's, and what feeds it is accounted with it.
type account struct {
	used       atomic.Int64
	aggregates int         // under the aggregator's lock; without any it is forgotten
	short      atomic.Bool // there was no room for it since feeders were last looked over
	hurried    bool        // there had not been, when that began: a flush's
}

// reserve takes memory for a tenant, if there is so much. Where there are tenants, none may have so much that others find none.
func (a *Aggregator) reserve(of *account, n int64) bool {
	left, has := a.Budget-a.Used.Add(n), of.used.Add(n)
	if left >= 0 && (!a.Tenants || has <= fair.Most(left)) {
		return true
	}
	a.release(of, n)
	of.short.Store(true)
	return false
}

// take takes memory for what was saved.
func (a *Aggregator) take(of *account, n int64) {
	a.Used.Add(n)
	of.used.Add(n)
}

// release gives memory back.
func (a *Aggregator) release(of *account, n int64) { a.take(of, -n) }

// accountOf returns a tenant's. The aggregator's lock is held, here and below.
func (a *Aggregator) accountOf(tenant string) *account {
	if of := a.accounts[tenant]; of != nil {
		return of
	}
	return new(account)
}

// open notes whose an aggregate is.
func (a *Aggregator) open(g *Aggregate) {
	g.account.aggregates++
	a.accounts[g.Tenant.Name] = g.account
}

// close forgets that, and an account that has nothing left.
func (a *Aggregator) close(g *Aggregate) {
	if g.account.aggregates--; g.account.aggregates == 0 {
		delete(a.accounts, g.Tenant.Name)
	}
}

// hurry notes whose feeders are to be forgotten early: who finds no room has nobody else's given up for it.
func (a *Aggregator) hurry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, of := range a.accounts {
		of.hurried = of.short.Swap(false)
	}
}

// Fullest is the most that one tenant has of the memory.
func (a *Aggregator) Fullest() (most int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, of := range a.accounts {
		most = max(most, of.used.Load())
	}
	return most
}
