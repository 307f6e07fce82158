// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// vmagentActions are those that Prometheus does not have.
var vmagentActions = map[string]bool{
	"replace_all": true, "labelmap_all": true, "keep_if_equal": true, "drop_if_equal": true, "keep_if_contains": true,
	"drop_if_contains": true, "keep_metrics": true, "drop_metrics": true, "graphite": true,
}

// A ruler makes vmagent's relabelling rules those of Prometheus, where there are some that do the same.
type ruler struct {
	in   *input
	file string
}

// A rule is one that is being converted.
type rule struct {
	*section

	ruler  *ruler
	source []string
	// regex is its expression, where it has one.
	regex string
}

// relabelFile converts a file of rules, for the exporter.
func relabelFile(in *input, f *flags, name, path string) []*yaml.Node {
	if path == "" {
		return nil
	}
	text, at, err := in.open(path)
	if err == nil {
		var root *yaml.Node
		if root, err = parse(text); err == nil {
			r := &ruler{in: in, file: at}
			carry := in.carrier(at)
			carry.templates = true
			var made []*yaml.Node
			for _, n := range r.convert(contents(root), "") {
				made = append(made, carry.take(n, typeRelabel, ""))
			}
			return made
		}
	}
	f.say(Lost, name, "cannot read it: "+err.Error()+"; give it beside the flags, under any directory")
	return nil
}

// convert makes the rules of a chain, in order.
func (r *ruler) convert(chain []*yaml.Node, path string) []*yaml.Node {
	var made []*yaml.Node
	for i, n := range chain {
		made = append(made, r.rule(n, path+"["+strconv.Itoa(i)+"]")...)
	}
	return made
}

// rule makes the rules of Prometheus that do what one of vmagent does. There are none for what cannot be done.
func (r *ruler) rule(n *yaml.Node, path string) []*yaml.Node {
	s := r.in.section(r.file, path, n)
	for _, key := range []string{"action", "if", "match", "labels", "regex", "source_labels", "separator", "target_label", "modulus", "replacement"} {
		s.get(key)
	}
	rule := &rule{section: s, ruler: r, regex: regexText(s.get("regex"))}
	for _, label := range contents(s.get("source_labels")) {
		rule.source = append(rule.source, label.Value)
	}
	action := strings.ToLower(s.text("action"))
	if action == "" {
		action = "replace"
	}
	if strings.Contains(s.text("replacement"), "{{") {
		return rule.lost("replacement", "labels cannot be named in a replacement: put them under `source_labels`, and write `$1`")
	}
	condition := s.get("if")
	switch action {
	case "graphite":
		if condition != nil {
			return rule.lost("if", "a rule of Graphite names has no condition")
		}
		return rule.graphite()
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

// lost leaves the rule out, because of what one of its keys says.
func (r *rule) lost(key, text string) []*yaml.Node {
	r.say(Lost, r.section.node, "", "the rule is left out, for its `"+key+"`: "+text)
	return nil
}

// node writes a rule with what else the one that it is made of has.
func (r *rule) node(action string, source []string, regex string) *yaml.Node {
	made := newTable()
	if action != "replace" {
		made.set("action", action)
	}
	if len(source) > 0 {
		made.set("source_labels", source)
	}
	for _, key := range []string{"separator", "target_label", "modulus", "replacement"} {
		if value := r.get(key); value != nil {
			made.set(key, value)
		}
	}
	if regex != "" {
		made.set("regex", regex)
	}
	made.node.HeadComment, made.node.FootComment = r.section.node.HeadComment, r.section.node.FootComment
	return made.node
}

// regexText is an expression, which vmagent takes as a list, too.
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

// equal makes rules of keep_if_equal and drop_if_equal, which compare any number of labels.
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
		made = append(made, newTable().set("action", verb).set("source_labels", r.source[:1]).set("target_label", other).node)
	}
	return made
}

// graphite makes a rule for each label that a Graphite name gives.
func (r *rule) graphite() []*yaml.Node {
	match, labels := r.text("match"), r.get("labels")
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
		made = append(made, newTable().set("source_labels", []string{"__name__"}).set("regex", expression.String()).
			set("target_label", label).set("replacement", graphiteGroup().ReplaceAllString(value, "$${$1}")).node)
	}
	name := ""
	for i := 0; i+1 < len(labels.Content); i += 2 {
		if labels.Content[i].Value == "__name__" { // the others read what it was
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

var graphiteGroup = expression(`\$\{?(\d+)\}?`)

// conditional puts a condition in front of what a rule reads.
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
		matchers, ok := parseSelector(text)
		if !ok {
			return r.lost("if", "cannot read "+strconv.Quote(text)+" as a selector of series")
		}
		all = append(all, matchers)
	}
	filter := action == "keep" || action == "drop"
	bare := filter && len(r.source) == 0 && r.regex == ""
	switch {
	case len(all) == 0 || !filter && action != "replace":
		return r.lost("if", noCondition)
	case !bare && len(r.source) == 0 && (r.regex != "" || strings.Contains(r.text("replacement"), "$") || r.get("replacement") == nil):
		return r.lost("if", noCondition) // it reads nothing, and writes what it has not read
	case bare && action == "drop":
		var made []*yaml.Node
		for _, matchers := range all { // one after the other
			made = append(made, r.guarded(action, [][]matcher{matchers}, bare)...)
		}
		return made
	}
	return r.guarded(action, all, bare)
}

// guarded makes rules that do something where one of several conditions holds.
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
	// Labels of the rule's own must not be seen by those that follow.
	return append(made, newTable().set("action", "labeldrop").set("regex", held).node)
}

// single is the one matcher that says the same as conditions of which one is enough, or nil.
func single(all [][]matcher) *matcher {
	var parts []string
	for _, matchers := range all {
		m := matchers[0]
		if len(matchers) > 1 || m.label != all[0][0].label || m.not && len(all) > 1 {
			return nil
		}
		parts = append(parts, m.regex)
	}
	return &matcher{label: all[0][0].label, regex: strings.Join(parts, "|"), not: all[0][0].not}
}

// literals are labels and the expressions for their values, if a condition compares labels with plain values only.
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

// prefixed makes the rule itself, which looks at some labels before its own.
func (r *rule) prefixed(action string, labels, parts []string) *yaml.Node {
	if len(r.source) > 0 {
		own := r.regex
		if own == "" {
			own = "(.*)"
		}
		labels, parts = append(labels, r.source...), append(parts, group(own))
	}
	return r.node(action, labels, strings.Join(parts, regexp.QuoteMeta(r.separator())))
}

func (r *rule) separator() string {
	if given := find(r.section.node, "separator"); given != nil {
		return given.Value
	}
	return ";"
}

// What remembers that a condition holds, until the rule that has it is through.
const (
	held = "__tmp_if"
	met  = "met"
)

// remember makes rules that set a label where one of several conditions holds. Each step looks at one label, behind what is
// known so far: no value can be taken for another.
func remember(all [][]matcher) []*yaml.Node {
	const step = "__tmp_if_step"
	set := func(label, value string, source []string, regex string) *yaml.Node {
		t := newTable()
		if len(source) > 0 {
			t.set("source_labels", source).set("regex", regex)
		}
		return t.set("target_label", label).set("replacement", value).node
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
	return append(made, newTable().set("action", "labeldrop").set("regex", step).node)
}

// group keeps alternatives of an expression together, without a group that counts.
func group(regex string) string {
	if strings.Contains(regex, "|") {
		return "(?:" + regex + ")"
	}
	return regex
}

// A matcher is a condition on a label.
type matcher struct {
	label, regex string
	// not: it must not match. literal: it matches one value.
	not, literal bool
}

var (
	selectorName = expression(`^\s*([a-zA-Z_:][a-zA-Z0-9_:.]*)?\s*`)
	selectorPart = expression(`^\s*([a-zA-Z_][a-zA-Z0-9_.]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" + `)\s*(,|$)`)
)

// parseSelector reads a selector of series such as name{label="value"}. One with `or` in it is not read.
func parseSelector(text string) ([]matcher, bool) {
	head := selectorName().FindStringSubmatch(text)
	var matchers []matcher
	if head[1] != "" {
		matchers = append(matchers, matcher{label: "__name__", regex: regexp.QuoteMeta(head[1]), literal: true})
	}
	rest := strings.TrimSpace(text[len(head[0]):])
	if rest == "" {
		return matchers, len(matchers) > 0
	}
	if !strings.HasPrefix(rest, "{") || !strings.HasSuffix(rest, "}") {
		return nil, false
	}
	for rest = strings.TrimSpace(rest[1 : len(rest)-1]); rest != ""; {
		part := selectorPart().FindStringSubmatch(rest)
		if part == nil {
			return nil, false
		}
		value := part[3]
		if value[0] == '\'' {
			value = `"` + strings.ReplaceAll(strings.ReplaceAll(value[1:len(value)-1], `\'`, "'"), `"`, `\"`) + `"`
		}
		plain, err := strconv.Unquote(value)
		if err != nil {
			return nil, false
		}
		m := matcher{label: part[1], regex: plain, not: strings.HasPrefix(part[2], "!")}
		if !strings.HasSuffix(part[2], "~") {
			m.regex, m.literal = regexp.QuoteMeta(plain), true
		}
		matchers = append(matchers, m)
		rest = rest[len(part[0]):]
	}
	return matchers, len(matchers) > 0
}
