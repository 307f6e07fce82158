// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// A vmRule is a rule of vmagent, implemented as its documentation says, to compare converted rules with.
type vmRule struct {
	If                                           [][]vmMatch
	Action, Regex, TargetLabel, Replacement, Sep string
	SourceLabels                                 []string
	hasRegex, hasReplacement, hasSep             bool
}

type vmMatch struct{ label, op, value string }

func (m vmMatch) holds(ls map[string]string) bool {
	switch m.op {
	case "=":
		return ls[m.label] == m.value
	case "!=":
		return ls[m.label] != m.value
	case "=~":
		return regexp.MustCompile("^(?:" + m.value + ")$").MatchString(ls[m.label])
	default:
		return !regexp.MustCompile("^(?:" + m.value + ")$").MatchString(ls[m.label])
	}
}

// apply returns nil if the series is dropped.
func (r vmRule) apply(ls map[string]string) map[string]string {
	matched := len(r.If) == 0
	for _, all := range r.If {
		matched = matched || !slices.ContainsFunc(all, func(m vmMatch) bool { return !m.holds(ls) })
	}
	if !matched {
		if r.Action == "keep" {
			return nil
		}
		return ls
	}
	var values []string
	for _, name := range r.SourceLabels {
		values = append(values, ls[name])
	}
	sep := ";"
	if r.hasSep {
		sep = r.Sep
	}
	text := strings.Join(values, sep)
	expression := "(.*)"
	if r.hasRegex {
		expression = r.Regex
	}
	re := regexp.MustCompile("^(?s:" + expression + ")$")
	switch r.Action {
	case "keep":
		if len(r.SourceLabels) > 0 && !re.MatchString(text) {
			return nil
		}
	case "drop":
		if len(r.SourceLabels) == 0 || re.MatchString(text) {
			return nil
		}
	case "keep_if_equal", "drop_if_equal":
		equal := !slices.ContainsFunc(values, func(v string) bool { return v != values[0] })
		if equal == (r.Action == "drop_if_equal") {
			return nil
		}
	case "keepequal", "dropequal":
		if (text == ls[r.TargetLabel]) == (r.Action == "dropequal") {
			return nil
		}
	case "labeldrop":
		maps.DeleteFunc(ls, func(name, _ string) bool { return re.MatchString(name) })
	case "lowercase":
		ls[r.TargetLabel] = strings.ToLower(text)
		if ls[r.TargetLabel] == "" {
			delete(ls, r.TargetLabel)
		}
	case "replace":
		match := re.FindStringSubmatchIndex(text)
		if match == nil {
			return ls
		}
		replacement := "$1"
		if r.hasReplacement {
			replacement = labelReference.ReplaceAllStringFunc(r.Replacement, func(name string) string { return ls[strings.Trim(name, "{}")] })
		}
		ls[r.TargetLabel] = string(re.ExpandString(nil, replacement, text, match))
		if ls[r.TargetLabel] == "" {
			delete(ls, r.TargetLabel)
		}
	}
	return ls
}

// labelReference matches vmagent's reference to a label in a replacement.
var labelReference = regexp.MustCompile(`\{\{[a-z_]+\}\}`)

// Converted rules change labels like vmagent's; whether a rule can be converted is not tested here.
func TestConvertedRulesDoTheSame(t *testing.T) {
	racetest.Sequential(t)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	names := []string{"__name__", "a", "b", "c"}
	values := []string{"x", "y", "xy", "x.y", "Z-1"}
	converted := 0
	for range 6000 {
		r := vmRule{Action: pick("keep", "drop", "replace", "replace", "keep_if_equal", "drop_if_equal", "keepequal", "dropequal", "labeldrop", "lowercase")}
		var text strings.Builder
		fmt.Fprintf(&text, "- action: %s\n", r.Action)
		equal, joins := strings.HasSuffix(r.Action, "_equal"), r.Action == "keepequal" || r.Action == "dropequal"
		for range random.IntN(3) {
			if r.Action == "labeldrop" {
				break
			}
			r.SourceLabels = append(r.SourceLabels, pick(names...))
		}
		if equal && len(r.SourceLabels) < 2 || (joins || r.Action == "lowercase") && len(r.SourceLabels) == 0 {
			continue
		}
		var selectors []string
		for range random.IntN(3) {
			var all []vmMatch
			var parts []string
			for range 1 + random.IntN(2) {
				m := vmMatch{pick(names...), pick("=", "=", "!=", "=~", "!~"), pick(append(values, "")...)}
				if strings.HasSuffix(m.op, "~") {
					m.value = pick("x|y", "x.*", ".+", ".*", "x", "[xy]+", "", "^x", "^x$|y$", "(?i)X.*")
				}
				all = append(all, m)
				parts = append(parts, fmt.Sprintf("%s%s%q", m.label, m.op, m.value))
			}
			r.If = append(r.If, all)
			selectors = append(selectors, strings.Join(parts, ","))
		}
		if len(r.SourceLabels) == 0 && len(r.If) == 0 && r.Action != "replace" && r.Action != "labeldrop" {
			continue // refused by vmagent
		}
		if len(selectors) > 0 {
			between := pick("}', '{", " or ")
			fmt.Fprintf(&text, "  if: ['{%s}']\n", strings.Join(selectors, between))
		}
		if len(r.SourceLabels) > 0 {
			fmt.Fprintf(&text, "  source_labels: [%s]\n", strings.Join(r.SourceLabels, ", "))
		}
		if r.Action == "labeldrop" {
			r.Regex, r.hasRegex = pick("a", "b|c", "a|b|x", "b.*"), true
			fmt.Fprintf(&text, "  regex: %q\n", r.Regex)
		}
		if !equal && !joins && r.Action != "lowercase" && len(r.SourceLabels) > 0 && random.IntN(2) == 0 {
			r.Regex, r.hasRegex = pick("x|y", "(.*)", "x(.*)", "(x|y);(.*)", "(x)y|(z).*", "", "^x(.*)$", "^x|y$", "(?i)X"), true
			fmt.Fprintf(&text, "  regex: %q\n", r.Regex)
		}
		if random.IntN(4) == 0 {
			r.Sep, r.hasSep = pick("", "-", ";"), true
			fmt.Fprintf(&text, "  separator: %q\n", r.Sep)
		}
		if r.Action == "replace" || r.Action == "lowercase" || joins {
			r.TargetLabel = pick(append(names, "__tmp_a")...)
			fmt.Fprintf(&text, "  target_label: %s\n", r.TargetLabel)
			if r.Action == "replace" && random.IntN(2) == 0 {
				r.Replacement, r.hasReplacement = pick("const", "$1-end", "${2}", "{{a}}-{{b}}/{{a}}", "x{{c}}", "{{b}}"), true
				fmt.Fprintf(&text, "  replacement: %q\n", r.Replacement)
			}
		}
		in := input.New(input.Given{})
		root, err := document.Parse([]byte(text.String()))
		require.NoError(t, err, text.String())
		rules := withoutOwn((&ruler{in: in}).convert(root.Content, ""))
		if len(rules) == 0 {
			require.NotEmpty(t, in.Report.Findings, "left out without a word:\n%s", text.String())
			continue
		}
		converted++
		made, err := yaml.Marshal(document.SequenceNode(rules...))
		require.NoError(t, err)
		var configs []*relabel.Config
		require.NoError(t, yaml.Unmarshal(made, &configs))
		for _, c := range configs {
			require.NoError(t, c.Validate(model.UTF8Validation), "%s", made)
		}
		for range 4 {
			ls := map[string]string{}
			for _, name := range names {
				if random.IntN(4) > 0 {
					ls[name] = pick(values...)
				}
			}
			builder := labels.NewBuilder(labels.FromMap(ls))
			kept := relabel.ProcessBuilder(builder, configs...)
			want := r.apply(ls)
			for name := range want {
				if strings.HasPrefix(name, "__") && name != "__name__" {
					delete(want, name)
				}
			}
			if want == nil {
				assert.False(t, kept, "kept %v by\n%s\nof\n%s", ls, made, text.String())
			} else if assert.True(t, kept, "dropped %v by\n%s\nof\n%s", want, made, text.String()) {
				assert.Equal(t, labels.FromMap(want).String(), builder.Labels().String(), "by\n%s\nof\n%s", made, text.String())
			}
		}
		if t.Failed() {
			return
		}
	}
	assert.Greater(t, converted, 3000)
}
