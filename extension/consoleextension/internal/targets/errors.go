// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"cmp"
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/advice"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/internal/inorder"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/redact"
)

const maxExamples = 20 // of kinds of errors

// Errors are the errors with one reason.
type Errors struct {
	Reason  string   `json:"reason"`
	Text    string   `json:"reason_text"`
	Count   int      `json:"count"`
	Example string   `json:"example"`
	Jobs    []string `json:"jobs"`
	Next    string   `json:"next"`

	codes []string // of HTTP
}

// ErrorsOf groups failing targets of jobs by reason, the most frequent first.
func ErrorsOf(jobs ...inspect.Job) []Errors {
	kinds := map[string]*Errors{}
	for i := range jobs {
		j := &jobs[i]
		for k := range j.Targets {
			t := &j.Targets[k]
			if t.State != inspect.Failing {
				continue
			}
			e := kinds[t.Reason]
			if e == nil {
				e = &Errors{Reason: t.Reason, Text: advice.Failure(t.Reason), Example: redact.Text(prose.Cut(example(t), 1000)), Jobs: []string{}, Next: advice.ForReason(t.Reason)}
				kinds[t.Reason] = e
			}
			e.Count++
			e.Jobs = include(e.Jobs, j.Name)
			if code := statusOf(t); code != "" {
				e.codes = include(e.codes, code)
			}
		}
	}
	out := make([]Errors, 0, len(kinds))
	for _, e := range kinds {
		if len(e.codes) > 0 {
			slices.Sort(e.codes)
			e.Text += ": " + strings.Join(e.codes, ", ")
			e.Next = advice.ForStatus(e.codes...)
		}
		out = append(out, *e)
	}
	inorder.Sort(out, func(a, b Errors) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Reason, b.Reason)) })
	return out[:min(len(out), maxExamples)]
}

// statusOf returns the HTTP status of a target that fails because of it.
func statusOf(t *inspect.Target) (code string) {
	if _, said, ok := strings.Cut(t.LastError, "HTTP status "); ok && t.Reason == advice.ReasonStatus {
		code, _, _ = strings.Cut(said, " ")
	}
	return code
}

// include adds a text that is not in the list, unless the list is full.
func include(all []string, text string) []string {
	if len(all) >= maxExamples || slices.Contains(all, text) {
		return all
	}
	return append(all, text)
}

// example returns the error of a target, with the target's URL.
func example(t *inspect.Target) string {
	if strings.Contains(t.LastError, t.URL) {
		return t.LastError
	}
	return t.URL + ": " + t.LastError
}
