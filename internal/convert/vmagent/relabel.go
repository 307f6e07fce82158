// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// ownActions are actions that only vmagent has.
var ownActions = map[string]bool{
	"replace_all": true, "labelmap_all": true, "keep_if_equal": true, "drop_if_equal": true, "keep_if_contains": true,
	"drop_if_contains": true, "keep_metrics": true, "drop_metrics": true, "graphite": true,
}

// A ruler converts vmagent's relabelling rules to rules of Prometheus with the same effect, if there are any.
type ruler struct {
	in   *input.Input
	file string
}

// emptyOnly stands for the expression "", which only an empty text matches. A rule without an expression matches any.
const emptyOnly = "(?:)"

// A rule is a relabelling rule that is being converted.
type rule struct {
	*input.Section

	ruler  *ruler
	source []string
	// regex is empty if the rule has none.
	regex string
	// instead overrides values of the section; nil removes a key.
	instead map[string]*yaml.Node
}

// value returns the value to write for a key.
func (r *rule) value(key string) *yaml.Node {
	if value, ok := r.instead[key]; ok {
		return value
	}
	return r.Get(key)
}

// relabelFile converts a file of relabelling rules for the exporter.
func relabelFile(in *input.Input, f *flags, name, path string) []*yaml.Node {
	if path == "" {
		return nil
	}
	text, at, err := in.Open(path)
	if err == nil {
		var root *yaml.Node
		if root, err = document.Parse(text); err == nil && !document.IsNull(root) && root.Kind != yaml.SequenceNode {
			err = errors.New("it must be a list of rules")
		}
		if err == nil {
			r := &ruler{in: in, file: at}
			carry := promconfig.NewCarrier(in, at)
			carry.Templates = true
			var made []*yaml.Node
			for _, n := range withoutOwn(r.convert(document.Contents(root), "")) {
				made = append(made, carry.Take(n, promconfig.TypeRelabel, ""))
			}
			return made
		}
	}
	f.say(report.Lost, name, "cannot read it: "+err.Error()+"; give it beside the flags, under any directory")
	return nil
}

// convert converts a chain of rules, in order.
func (r *ruler) convert(chain []*yaml.Node, path string) []*yaml.Node {
	var made []*yaml.Node
	for i, n := range chain {
		made = append(made, r.rule(n, path+"["+strconv.Itoa(i)+"]")...)
	}
	return made
}

// rule converts a rule. It returns none if Prometheus has no equivalent.
func (r *ruler) rule(n *yaml.Node, path string) []*yaml.Node {
	s := r.in.Section(r.file, path, n)
	r.settings(s)
	for _, key := range []string{"action", "if", "match", "labels", "regex", "source_labels", "separator", "target_label", "modulus", "replacement"} {
		s.Get(key)
	}
	rule := &rule{Section: s, ruler: r}
	if regex := s.Get("regex"); regex != nil {
		rule.regex = cmp.Or(regexText(regex), emptyOnly)
	}
	for _, label := range s.Items("source_labels") {
		rule.source = append(rule.source, label.Value)
	}
	action := strings.ToLower(s.Text("action"))
	if action == "" {
		action = "replace"
	}
	condition := s.Get("if")
	switch action {
	case "replace":
		if strings.Contains(s.Text("replacement"), "{{") {
			return rule.filled(condition)
		}
	case "hashmod", "lowercase", "uppercase":
		made := []*yaml.Node{rule.node(action, rule.source, rule.regex)}
		if condition != nil {
			made = rule.inSteps(action, condition)
		}
		if action == "hashmod" && made != nil {
			s.Say(report.Changed, n, "action", "Prometheus computes another hash: change all that divide by it at once")
		}
		return made
	case "graphite":
		if condition != nil {
			return rule.lost("if", "a rule of Graphite names has no condition")
		}
		return rule.graphite()
	case "keepequal", "dropequal":
		if condition == nil && len(rule.source) > 1 && rule.separator() != ";" {
			return rule.joined(action)
		}
	case "keep_if_equal", "drop_if_equal":
		if condition != nil {
			return rule.lost("if", noCondition)
		}
		return rule.equal(action)
	case "keep_metrics", "drop_metrics":
		action = strings.TrimSuffix(action, "_metrics")
		if rule.regex != "" {
			rule.source = []string{"__name__"}
		}
	case "replace_all":
		return rule.lost("action", "Prometheus replaces what a whole value matches: write a rule for each part that is there, or change the value where it comes from")
	case "labelmap_all":
		return rule.lost("action", "Prometheus maps names that match as a whole: write an `action: labelmap` for each form of name")
	case "keep_if_contains", "drop_if_contains":
		return rule.lost("action", "Prometheus compares labels as a whole only (`keepequal`, `dropequal`)")
	}
	if condition != nil {
		return rule.conditional(action, condition)
	}
	return []*yaml.Node{rule.node(action, rule.source, rule.regex)}
}

const noCondition = "Prometheus' rules have no conditions, and this one cannot be put into `source_labels` and `regex`"

// lost leaves out the rule, and reports the key that is the reason.
func (r *rule) lost(key, text string) []*yaml.Node {
	r.Say(report.Lost, r.Node, "", "the rule is left out, for its `"+key+"`: "+text)
	return nil
}

// node makes a rule with these parts and the other keys of the original.
func (r *rule) node(action string, source []string, regex string) *yaml.Node {
	made := document.NewTable()
	if action != "replace" {
		made.Set("action", action)
	}
	if len(source) > 0 && action != "labeldrop" && action != "labelkeep" {
		made.Set("source_labels", source)
	}
	for _, key := range ruleKeysOf(action) {
		if value := r.value(key); value != nil {
			made.Set(key, value)
		}
	}
	switch regex {
	case "":
	case emptyOnly:
		made.Set("regex", "")
	default:
		made.Set("regex", regex)
	}
	made.Node.HeadComment, made.Node.FootComment = r.Node.HeadComment, r.Node.FootComment
	return made.Node
}

// ruleKeysOf returns the keys that a rule may have besides its source labels and expression. Prometheus refuses other
// keys; vmagent ignores them.
func ruleKeysOf(action string) []string {
	switch action {
	case "labeldrop", "labelkeep":
		return nil
	case "lowercase", "uppercase":
		return []string{"separator", "target_label"}
	case "keepequal", "dropequal":
		return []string{"target_label"}
	}
	return []string{"separator", "target_label", "modulus", "replacement"}
}

// regexText returns an expression, which is a list of alternatives in vmagent, too.
func regexText(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.SequenceNode {
		return n.Value
	}
	var parts []string
	for _, item := range n.Content {
		parts = append(parts, regexText(item))
	}
	return strings.Join(parts, "|")
}

// equal converts keep_if_equal and drop_if_equal, which compare any number of labels.
func (r *rule) equal(action string) []*yaml.Node {
	if len(r.source) < 2 {
		return r.lost("source_labels", "it compares at least two labels")
	}
	verb := strings.TrimSuffix(action, "_if_equal") + "equal"
	if verb == "dropequal" && len(r.source) > 2 {
		return r.lost("source_labels", "Prometheus compares two labels, and drops if these are equal")
	}
	var made []*yaml.Node
	for _, other := range r.source[1:] {
		made = append(made, document.NewTable().Set("action", verb).Set("source_labels", r.source[:1]).Set("target_label", other).Node)
	}
	return made
}

// joined makes rules that compare a label with others that a separator joins, which Prometheus does only with its own.
func (r *rule) joined(action string) []*yaml.Node {
	join := document.NewTable().Set("source_labels", r.source).Set("separator", r.separator()).Set("target_label", madeUp)
	return []*yaml.Node{join.Node, r.node(action, []string{madeUp}, ""), forget(madeUp)}
}

// graphite makes a rule for each label that is taken from a Graphite name.
func (r *rule) graphite() []*yaml.Node {
	match, labels := r.Text("match"), r.Get("labels")
	if match == "" || labels == nil {
		return r.lost("match", "it needs `match` and `labels`")
	}
	var expression strings.Builder
	for i, part := range strings.Split(match, "*") {
		if i > 0 {
			expression.WriteString(`([^.]*)`)
		}
		expression.WriteString(regexp.QuoteMeta(part))
	}
	var made []*yaml.Node
	write := func(label, value string) {
		made = append(made, document.NewTable().Set("source_labels", []string{"__name__"}).Set("regex", expression.String()).
			Set("target_label", label).Set("replacement", graphiteGroup().ReplaceAllStringFunc(value, func(group string) string {
			number, err := strconv.Atoi(strings.Trim(group, "${}"))
			if err != nil || number > strings.Count(match, "*") {
				return "$" + group // vmagent takes it for text
			}
			return "${" + strconv.Itoa(number) + "}"
		})).Node)
	}
	name := ""
	for i := 0; i+1 < len(labels.Content); i += 2 {
		if labels.Content[i].Value == "__name__" { // the other labels are read from the original name
			name = labels.Content[i+1].Value
			continue
		}
		write(labels.Content[i].Value, labels.Content[i+1].Value)
	}
	if name != "" {
		write("__name__", name)
	}
	return made
}

var graphiteGroup = lazyregexp.New(`\$\{?(\d+)\}?`)

// conditional makes the rule apply only where a condition holds.
func (r *rule) conditional(action string, condition *yaml.Node) []*yaml.Node {
	selectors := []string{condition.Value}
	if condition.Kind == yaml.SequenceNode {
		selectors = nil
		for _, item := range condition.Content {
			selectors = append(selectors, item.Value)
		}
	}
	var all [][]matcher
	for _, text := range selectors {
		sides, ok := parseSelector(text)
		if !ok {
			return r.lost("if", "cannot read "+strconv.Quote(text)+" as a selector of series")
		}
		all = append(all, sides...)
	}
	if names := strings.Split(r.regex, "|"); action == "labeldrop" && !slices.ContainsFunc(names, isNoName) {
		return r.cleared(all, names)
	}
	filter := action == "keep" || action == "drop"
	bare := filter && len(r.source) == 0 && r.regex == ""
	switch {
	case len(all) == 0 || !filter && action != "replace":
		return r.lost("if", noCondition)
	case !bare && len(r.source) == 0 && (r.regex != "" || strings.Contains(r.Text("replacement"), "$") || r.value("replacement") == nil):
		return r.lost("if", noCondition) // without a source there is nothing to put the condition in front of
	case bare && action == "drop":
		var made []*yaml.Node
		for _, matchers := range all { // one rule for each alternative
			made = append(made, r.guarded(action, [][]matcher{matchers}, bare)...)
		}
		return made
	}
	return r.guarded(action, all, bare)
}

// guarded makes rules that apply the action where one of several conditions holds.
func (r *rule) guarded(action string, all [][]matcher, bare bool) []*yaml.Node {
	if one := single(all); bare && one != nil {
		if one.not {
			action = map[string]string{"keep": "drop", "drop": "keep"}[action]
		}
		return []*yaml.Node{r.node(action, []string{one.label}, one.regex)}
	}
	if labels, parts := literals(all); labels != nil && r.separator() != "" {
		return []*yaml.Node{r.prefixed(action, labels, parts)}
	}
	made := remember(all)
	made = append(made, r.prefixed(action, []string{held}, []string{met}))
	return append(made, forget(held))
}

// cleared makes rules that empty labels where one of several conditions holds, which removes them.
func (r *rule) cleared(all [][]matcher, names []string) []*yaml.Node {
	made := remember(all)
	for _, name := range names {
		made = append(made, document.NewTable().Set("source_labels", []string{held}).Set("regex", met).Set("target_label", name).Set("replacement", "").Node)
	}
	return append(made, forget(held))
}

var labelName = lazyregexp.New(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func isNoName(text string) bool { return !labelName().MatchString(text) }

// madeUp is a label that holds a value until its condition is checked.
const madeUp = "__tmp_value"

// inSteps makes rules for an action that sets a label where a condition holds: the value is computed first.
func (r *rule) inSteps(action string, condition *yaml.Node) []*yaml.Node {
	first := *r
	first.instead = map[string]*yaml.Node{"target_label": document.StringNode(madeUp), "replacement": nil}
	return r.taken([]*yaml.Node{first.node(action, r.source, r.regex)}, condition)
}

// filled makes rules for a replacement that refers to labels.
func (r *rule) filled(condition *yaml.Node) []*yaml.Node {
	text := r.Text("replacement")
	switch {
	case len(r.source) > 0 || r.regex != "" || strings.Contains(text, "$"):
		return r.lost("replacement", "it names labels, and reads `source_labels` or `regex` beside them")
	case strings.Count(text, "{{") != strings.Count(text, "}}"):
		return r.lost("replacement", "a label in it ends nowhere")
	case r.Get("target_label") == nil:
		return r.lost("target_label", "there is none")
	}
	var made []*yaml.Node
	before, rest, _ := strings.Cut(text, "{{")
	source := []string{}
	for more := true; more; {
		var label, after string
		label, rest, _ = strings.Cut(rest, "}}")
		after, rest, more = strings.Cut(rest, "{{")
		made = append(made, document.NewTable().Set("source_labels", append(source, label)).Set("separator", "").
			Set("target_label", madeUp).Set("replacement", before+"${1}"+after).Node)
		before, source = "", []string{madeUp} // the text so far
	}
	if condition == nil {
		last := document.TableOf(made[len(made)-1])
		last.Node.Content[slices.IndexFunc(last.Node.Content, func(n *yaml.Node) bool { return n.Value == "target_label" })+1] = r.Get("target_label")
		if len(made) == 1 {
			return made
		}
		return append(made, forget(madeUp))
	}
	return r.taken(made, condition)
}

// taken appends rules that copy the value in madeUp to the target where a condition holds.
func (r *rule) taken(made []*yaml.Node, condition *yaml.Node) []*yaml.Node {
	last := *r
	last.source, last.regex = []string{madeUp}, ""
	last.instead = map[string]*yaml.Node{"replacement": nil, "modulus": nil}
	rules := last.conditional("replace", condition)
	if rules == nil {
		return nil
	}
	return append(append(made, rules...), forget(madeUp))
}

// forget makes a rule that drops a label of the converter's own before later rules can see it.
func forget(label string) *yaml.Node {
	return document.NewTable().Set("action", "labeldrop").Set("regex", label).Node
}

// single returns one matcher that is equivalent to alternative conditions, or nil.
func single(all [][]matcher) *matcher {
	var parts []string
	for _, matchers := range all {
		m := matchers[0]
		if len(matchers) > 1 || m.label != all[0][0].label || m.not && len(all) > 1 {
			return nil
		}
		parts = append(parts, m.regex)
	}
	if len(parts) > 1 {
		for i, part := range parts {
			parts[i] = group(part)
		}
	}
	return &matcher{label: all[0][0].label, regex: cmp.Or(strings.Join(parts, "|"), emptyOnly), not: all[0][0].not}
}

// literals returns labels and the expressions for their values if a condition compares labels only with plain values.
func literals(all [][]matcher) (labels, parts []string) {
	if len(all) > 1 {
		return nil, nil
	}
	for _, m := range all[0] {
		if m.not || !m.literal {
			return nil, nil
		}
		labels, parts = append(labels, m.label), append(parts, m.regex)
	}
	return labels, parts
}

// prefixed makes the rule itself, with some labels to check before its own.
func (r *rule) prefixed(action string, labels, parts []string) *yaml.Node {
	if len(r.source) > 0 {
		own := r.regex
		if own == "" {
			own = "(.*)"
		}
		labels, parts = append(labels, r.source...), append(parts, group(own))
	}
	return r.node(action, labels, cmp.Or(strings.Join(parts, regexp.QuoteMeta(r.separator())), emptyOnly))
}

func (r *rule) separator() string {
	if given := document.Find(r.Node, "separator"); given != nil {
		return given.Value
	}
	return ";"
}

// held is the label that remembers that a condition holds, with the value met.
const (
	held = "__tmp_if"
	met  = "met"
)

// remember makes rules that set a label where one of several conditions holds. Each step checks one label, prefixed by
// the number of conditions met so far, so that no value can be mistaken for another.
func remember(all [][]matcher) []*yaml.Node {
	const step = "__tmp_if_step"
	set := func(label, value string, source []string, regex string) *yaml.Node {
		t := document.NewTable()
		if len(source) > 0 {
			t.Set("source_labels", source).Set("regex", regex)
		}
		return t.Set("target_label", label).Set("replacement", value).Node
	}
	var made []*yaml.Node
	for _, matchers := range all {
		made = append(made, set(step, "0", nil, ""))
		for i, m := range matchers {
			now, next := strconv.Itoa(i), strconv.Itoa(i+1)
			matches := now + ";" + group(m.regex)
			if !m.not {
				made = append(made, set(step, next, []string{step, m.label}, matches))
				continue
			}
			made = append(made, set(step, "unmet", []string{step, m.label}, matches), set(step, next, []string{step}, now))
		}
		made = append(made, set(held, met, []string{step}, strconv.Itoa(len(matchers))))
	}
	return append(made, forget(step))
}
