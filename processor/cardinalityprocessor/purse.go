// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import "sync/atomic"

// purse is memory that somebody has, or all together.
type purse struct {
	used   atomic.Int64
	staged atomic.Int64 // for members that there will be when their batches are accepted
	rested atomic.Int64 // of what is used, that of members that are silent: others may have it
}

// active is what is not to be had for others.
func (p *purse) active() int64 { return p.used.Load() + p.staged.Load() - p.rested.Load() }

// payer is who pays for an output and its members: a rule, for one tenant.
type payer struct{ rule, tenant string }

// accountOf returns the purse of a rule and a tenant. The overflow's lock is held.
func (o *overflow) accountOf(rule, tenant string) *purse {
	key := payer{rule, tenant}
	if o.accounts[key] == nil {
		o.accounts[key] = &purse{}
	}
	return o.accounts[key]
}

// closeAccounts forgets those that have nothing. The overflow's lock is held, without which nobody opens one.
func (o *overflow) closeAccounts() {
	for key, p := range o.accounts {
		if p.empty() {
			delete(o.accounts, key)
		}
	}
}

func (p *purse) empty() bool { return p.used.Load() == 0 && p.staged.Load() == 0 }

// reserve promises memory to a batch, as far as there is some that nobody uses or that is of those who are silent: they are
// forgotten for it, but not before the batch is accepted. Nobody may have so much that others find none.
func (o *overflow) reserve(of *purse, n int64) bool {
	o.all.staged.Add(n)
	of.staged.Add(n)
	left := o.budget - o.all.active()
	if left >= 0 && of.active() <= int64(leftToOthers-1)*left {
		return true
	}
	o.unreserve(of, n)
	return false
}

func (o *overflow) unreserve(of *purse, n int64) {
	o.all.staged.Add(-n)
	of.staged.Add(-n)
}

// grow takes memory that nobody uses, or gives it back.
func (o *overflow) grow(of *purse, n int64) bool {
	if o.all.used.Add(n) > o.budget && n > 0 {
		o.all.used.Add(-n)
		return false
	}
	of.used.Add(n)
	return true
}

// shrink gives memory back.
func (o *overflow) shrink(of *purse, n int64) {
	o.all.used.Add(-n)
	of.used.Add(-n)
}

func (o *overflow) rests(of *purse, n int64) {
	o.all.rested.Add(n)
	of.rested.Add(n)
}
