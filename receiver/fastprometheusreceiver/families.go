// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/godwit-otel/godwit/internal/inorder"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/api"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
)

// said is what a page says about its metrics: name, type, help text and unit of each, all quoted. Targets whose pages
// say the same share it.
type said = unique.Handle[string]

// describe records what a page says about its metrics.
func describe(t *page.Target, result page.Result) said {
	var text []byte
	t.Families(result, func(f page.Family) {
		for _, part := range [...]string{f.Name, f.Type, f.Help, f.Unit} {
			text = append(text, strconv.Quote(part)...) // AppendQuote would first copy what is in text
		}
	})
	return unique.Make(string(text))
}

// families returns what the target's last pages said about their metrics, each metric once.
func (t *target) families() []api.Family {
	t.mu.Lock()
	said := t.said
	t.mu.Unlock()
	if said == (unique.Handle[string]{}) {
		return nil
	}
	rest := said.Value()
	part := func() string {
		quoted, _ := strconv.QuotedPrefix(rest) // describe wrote it
		rest = rest[len(quoted):]
		text, _ := strconv.Unquote(quoted)
		return text
	}
	var out []api.Family
	for rest != "" {
		out = append(out, api.Family{Name: part(), Type: part(), Help: part(), Unit: part()})
	}
	inorder.Sort(out, func(a, b api.Family) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b api.Family) bool { return a.Name == b.Name })
}
