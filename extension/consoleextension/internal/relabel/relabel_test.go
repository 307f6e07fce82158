// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package relabel

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/internal/inspect"
)

func relabelled(t *testing.T, rules string, labels ...inspect.Label) (out relabelledJSON) {
	t.Helper()
	status, _, text := consoletest.Ask(t, Answer, "", body(rules, labels...))
	require.Equal(t, http.StatusOK, status, text)
	require.NoError(t, json.Unmarshal([]byte(text), &out))
	return out
}

func word(s string) *string { return &s }

func body(rules string, labels ...inspect.Label) string {
	data, err := json.Marshal(relabelRequest{Labels: labels, Rules: rules})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestRelabelShowsEachStep(t *testing.T) {
	got := relabelled(t, `
- source_labels: [__address__]
  regex: (.*):\d+
  target_label: host
- {action: labeldrop, regex: secret}
- {source_labels: [env], regex: prod, action: keep}
- {target_label: never, replacement: seen}
`, inspect.Label{Name: "__address__", Value: "a:1"}, inspect.Label{Name: "env", Value: "test"}, inspect.Label{Name: "secret", Value: "x"})
	require.Len(t, got.Steps, 3)
	require.Equal(t, []changeJSON{{Name: "host", After: word("a")}}, got.Steps[0].Changes)
	require.Equal(t, []changeJSON{{Name: "secret", Before: word("x")}}, got.Steps[1].Changes)
	require.Len(t, got.Steps[1].Labels, 3)
	require.True(t, got.Steps[2].Dropped)
	require.Equal(t, "keep", got.Steps[2].Action)
	require.True(t, got.Dropped)
	require.Equal(t, 1, got.Skipped)
	require.Empty(t, got.Labels)
}

func TestRelabelTakesRulesUnderTheirKey(t *testing.T) {
	for _, key := range []string{"relabel_configs", "metric_relabel_configs", "write_relabel_configs"} {
		got := relabelled(t, key+":\n- {source_labels: [a], target_label: a, replacement: c}\n", inspect.Label{Name: "a", Value: "b"})
		require.Equal(t, []inspect.Label{{Name: "a", Value: "c"}}, got.Labels)
		require.Equal(t, []changeJSON{{Name: "a", Before: word("b"), After: word("c")}}, got.Steps[0].Changes)
	}
	require.Equal(t, []inspect.Label{{Name: "a", Value: "b"}}, relabelled(t, "", inspect.Label{Name: "a", Value: "b"}).Labels)
}

func TestRelabelSaysWhatIsWrong(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		status, code, message := consoletest.Fault(t, Answer, "", body)
		require.Equal(t, http.StatusBadRequest, status)
		require.Equal(t, "bad_request", code)
		require.Contains(t, message, want)
	}
	f(body("- {action: explode}"), "unknown relabel action")
	f(body("- {action: hashmod}"), "rule 0")
	f(body("- {regex: '('}"), "missing closing")
	f(body("- null"), "rule 0 of `rules` is empty")
	f(body("a: b"), "`rules` cannot be read")
	f(`{"labels":{},"rules":""}`, "the body")
	f(`{"rules":"","url":"x"}`, "the body")
	f(body(strings.Repeat("- {action: drop}\n", maxRules+1)), "more than 1000")
	f(body("", make([]inspect.Label, maxLabels+1)...), "more than 1000")
	f(body("", inspect.Label{Name: "a", Value: strings.Repeat("x", maxSize+1)}), "more than 65536 bytes")
}

// Each step may double the size of a value.
func TestRelabelIsBounded(t *testing.T) {
	double := "- {source_labels: [a], target_label: a, replacement: $1$1$1$1}\n"
	status, _, message := consoletest.Fault(t, Answer, "", body(strings.Repeat(double, 500), inspect.Label{Name: "a", Value: "x"}))
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, message, "too large")
	for _, rule := range []string{
		"- {target_label: a, replacement: " + strings.Repeat("$1", 100) + "}",
		"- {target_label: a, replacement: " + strings.Repeat("x", 5000) + "}",
		"- {target_label: a, source_labels: [" + strings.Repeat("a,", 100) + "]}",
		"- {target_label: a, source_labels: [a, a], separator: " + strings.Repeat("x", 5000) + "}",
	} {
		status, _, message = consoletest.Fault(t, Answer, "", body(rule))
		require.Equal(t, http.StatusBadRequest, status)
		require.Contains(t, message, "too large")
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c]\n" +
		"e: &e [*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f]\n"
	status, _, _ = consoletest.Fault(t, Answer, "", body(bomb))
	require.Equal(t, http.StatusBadRequest, status)
}
