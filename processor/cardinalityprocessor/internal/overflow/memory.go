// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package overflow

import (
	"sync/atomic"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/fair"
)

// usage is the memory that one account uses, or all together.
type usage struct {
	Used   atomic.Int64
	Staged atomic.Int64 // for members that will exist when their batches are accepted
	Rested atomic.Int64 // the part of Used that silent members take: others may have it
}

// active returns the memory that others cannot have.
func (p *usage) active() int64 { return p.Used.Load() + p.Staged.Load() - p.Rested.Load() }

// accountKey names the account that an output and its members belong to: a rule, for one tenant.
type accountKey struct{ rule, tenant string }

// memory is what all series made here, and their inputs, may take together. It is divided into accounts.
type memory struct {
	Budget   int64
	All      usage                 // of all accounts
	Accounts map[accountKey]*usage // guarded by the overflow's lock
}

// accountOf returns the usage of the account of a rule and a tenant. The overflow's lock is held.
func (b *memory) accountOf(rule, tenant string) *usage {
	key := accountKey{rule, tenant}
	if b.Accounts[key] == nil {
		b.Accounts[key] = &usage{}
	}
	return b.Accounts[key]
}

// closeAccounts forgets accounts that have nothing. The overflow's lock is held, without which none is opened.
func (b *memory) closeAccounts() {
	for key, p := range b.Accounts {
		if p.empty() {
			delete(b.Accounts, key)
		}
	}
}

func (p *usage) empty() bool { return p.Used.Load() == 0 && p.Staged.Load() == 0 }

// reserve promises memory to a batch, if there is some that is unused or held by silent members: they are forgotten for
// it, but not before the batch is accepted. No account may take so much that others find none.
func (b *memory) reserve(of *usage, n int64) bool {
	b.All.Staged.Add(n)
	of.Staged.Add(n)
	left := b.Budget - b.All.active()
	if left >= 0 && of.active() <= fair.Most(left) {
		return true
	}
	b.unreserve(of, n)
	return false
}

func (b *memory) unreserve(of *usage, n int64) {
	if n == 0 { // the usual case, in which all cores would otherwise contend here
		return
	}
	b.All.Staged.Add(-n)
	of.Staged.Add(-n)
}

// grow takes memory that is unused, or gives it back.
func (b *memory) grow(of *usage, n int64) bool {
	if b.All.Used.Add(n) > b.Budget && n > 0 {
		b.All.Used.Add(-n)
		return false
	}
	of.Used.Add(n)
	return true
}

// shrink gives memory back.
func (b *memory) shrink(of *usage, n int64) {
	if n == 0 { // as above
		return
	}
	b.All.Used.Add(-n)
	of.Used.Add(-n)
}

func (b *memory) rests(of *usage, n int64) {
	b.All.Rested.Add(n)
	of.Rested.Add(n)
}
