// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

// A question is what a rule asks when it reads a label that each target has a value of its own for: what does the rule make
// of a line? It names the rule and the values that the rule reads, with marks in place of the targets'.
type question struct {
	id      int
	rule    *relabel.Config // nil asks for the value itself
	names   []string        // of the labels that are read
	values  []string
	answers []string // that were given
	number  int      // of the target's value, should an answer be one; -1 before the first
}

// What an answer begins with. A line does not change when the answer is empty.
const (
	answerDrop   = "-" // the line is dropped
	answerDelete = "0" // the rule's target label is deleted
	answerValue  = "v" // it gets a value that each target has for itself
	answerSet    = "=" // it gets the value that follows
)

const (
	// MostQuestions bounds what the targets of a cohort are asked. A rule that reads labels of the target together with many
	// values of a line's own would ask for each of these.
	MostQuestions = 1 << 9
	// mostAnswers bounds what a question may split targets into.
	mostAnswers = 1 << 10
)

// errPinned ends a reading that asks too much: the target is to have lines of its own.
var errPinned = errors.New("cannot share lines between targets: rules ask too much of their labels")

// A Condition is the answers that make a line what it is. Targets that answer otherwise have another line of the same text.
type Condition struct {
	answers []givenAnswer
	// Of a target whose lines are its own there are no answers but the values of all its labels, and a number that tells its
	// lines from others'.
	values []string
	pin    uint64
	Epoch  uint32
}

type givenAnswer struct {
	question *question
	answer   int
}

// pinned returns the number that tells the lines of one target from those of others; 0 is that of shared ones.
func (cond *Condition) pinned() uint64 {
	if cond == nil {
		return 0
	}
	return cond.pin
}

const absent = "\x01" // no label has this value

// ask has a rule say what it makes of the target's values.
func (q *question) ask(t *Identity) (answer, value string) {
	if q.rule == nil {
		return answerSet + t.resolve(q.values[0]), ""
	}
	b := labels.NewBuilder(labels.EmptyLabels())
	before := absent
	for i, n := range q.names {
		v := t.resolve(q.values[i])
		b.Set(n, v)
		if n == q.rule.TargetLabel {
			before = v
		}
	}
	if before == absent && !comparesLabels(q.rule) {
		b.Set(q.rule.TargetLabel, absent)
	}
	if !relabel.ProcessBuilder(b, q.rule) {
		return answerDrop, ""
	}
	if !sets(q.rule) {
		return "", ""
	}
	switch v := b.Get(q.rule.TargetLabel); {
	case v == before:
		return "", ""
	case v == "":
		return answerDelete, ""
	case IsStructural(q.rule.TargetLabel) || isConstant(q.rule) || t.Catalog.Rules.IsTooLong(v):
		return answerSet + v, ""
	default:
		return answerValue, strings.Clone(v)
	}
}

// comparesLabels tells whether a rule reads its target label.
func comparesLabels(r *relabel.Config) bool {
	return r.Action == relabel.DropEqual || r.Action == relabel.KeepEqual
}

// sets tells whether a rule sets its target label.
func sets(r *relabel.Config) bool {
	switch r.Action {
	case relabel.Replace, relabel.Lowercase, relabel.Uppercase, relabel.HashMod:
		return true
	default:
		return false
	}
}

// isConstant tells whether a rule sets its label, where it does, to the same value.
func isConstant(r *relabel.Config) bool {
	return r.Action == relabel.Replace && !strings.Contains(r.Replacement, "$")
}

// IsStructural tells whether more than an attribute depends on the value of a label.
func IsStructural(name string) bool {
	return name == model.MetricNameLabel || name == model.BucketLabel || name == model.QuantileLabel ||
		strings.HasPrefix(name, scopePrefix)
}

// asked is what the targets of a cohort are asked, and what they answered.
type asked struct {
	variables  int                   // labels that may differ
	derived    int                   // values that rules make of them
	questions  map[string]*question  // by the rule and what it reads
	conditions map[string]*Condition // by their answers
	asking     inquiry               // used again

	heldByConditions int64 // bytes, about
}

func newAsked(variables int) asked {
	return asked{variables: variables, questions: map[string]*question{}, conditions: map[string]*Condition{}}
}

// sweepConditions forgets conditions without a mark.
func (a *asked) sweepConditions(mark uint32) {
	a.heldByConditions = 0
	a.conditions = kept(a.conditions, func(cond *Condition) bool { return cond.Epoch == mark })
	for _, cond := range a.conditions {
		a.heldByConditions += cond.bytes()
	}
}

// An inquiry applies rules to the labels of a line, and notes the answers on which the outcome depends.
type inquiry struct {
	*Catalog

	target *Identity  // who answers, or else
	known  *Condition // what was answered before
	given  []givenAnswer

	key        []byte
	readNames  []string
	readValues []string
}

// ask returns the answer to a rule's question about the values of labels. With no rule it is about the value of the first.
func (q *inquiry) ask(rule int, names, values []string) (*question, string, error) {
	key := strconv.AppendInt(q.key[:0], int64(rule), 10)
	for _, v := range values {
		key = append(append(key, 0xff), v...)
	}
	q.key = key
	qu := q.questions[string(key)]
	if qu == nil {
		if len(q.questions) >= q.Rules.MostQuestions || q.target == nil {
			return nil, "", errPinned
		}
		qu = &question{id: len(q.questions), names: slices.Clone(names), number: -1}
		for _, v := range values {
			qu.values = append(qu.values, strings.Clone(v))
		}
		if rule >= 0 {
			qu.rule = q.Rules.Scrape.MetricRelabelConfigs[rule]
		}
		q.questions[string(key)] = qu
	}
	n := -1
	if q.target != nil {
		var err error
		if n, err = q.target.answer(qu); err != nil {
			return nil, "", err
		}
	} else {
		for _, g := range q.known.answers {
			if g.question == qu {
				n = g.answer
			}
		}
		if n < 0 {
			return nil, "", errPinned
		}
	}
	if g := (givenAnswer{qu, n}); !slices.Contains(q.given, g) {
		q.given = append(q.given, g)
	}
	return qu, qu.answers[n], nil
}

// apply applies the rules to labels of about some number, and tells whether they are kept.
func (q *inquiry) apply(b *labels.Builder, about int) (isKept bool, err error) {
	rules := q.Rules.Scrape.MetricRelabelConfigs
	if q.variables == 0 || q.pin() != nil {
		return applyRules(b, about, rules), nil
	}
	for i, r := range rules {
		names, values := q.reads(b, r)
		if names == nil {
			if !applyRules(b, about, rules[i:i+1]) {
				return false, nil
			}
			continue
		}
		if strings.Contains(r.TargetLabel, "$") {
			for j, n := range names {
				if err := q.spell(b, n, values[j]); err != nil {
					return false, err
				}
			}
			if !applyRules(b, about, rules[i:i+1]) {
				return false, nil
			}
			continue
		}
		qu, answer, err := q.ask(i, names, values)
		switch {
		case err != nil:
			return false, err
		case answer == answerDrop:
			return false, nil
		case answer == answerDelete:
			b.Del(r.TargetLabel)
		case answer == answerValue:
			b.Set(r.TargetLabel, OfTarget.Of(qu.number))
		case answer != "":
			b.Set(r.TargetLabel, answer[len(answerSet):])
		default:
		}
	}
	return true, nil
}

// reads returns the labels that a rule reads, if one of them is a target's.
func (q *inquiry) reads(b *labels.Builder, r *relabel.Config) (names, values []string) {
	isMarked := false
	add := func(n string) {
		v := b.Get(n)
		isMarked = isMarked || marked(v) >= 0
		names, values = append(names, n), append(values, v)
	}
	names, values = q.readNames[:0], q.readValues[:0]
	for _, n := range r.SourceLabels {
		add(string(n))
	}
	if comparesLabels(r) {
		add(r.TargetLabel)
	}
	if q.readNames, q.readValues = names, values; !isMarked {
		return nil, nil
	}
	return names, values
}

// spell puts the value of a label that is a target's in the place of its mark.
func (q *inquiry) spell(b *labels.Builder, name, value string) error {
	if marked(value) < 0 {
		return nil
	}
	_, answer, err := q.ask(-1, []string{name}, []string{value})
	if err == nil {
		b.Set(name, answer[len(answerSet):])
	}
	return err
}

// pin returns the condition of a line that is of one target only.
func (q *inquiry) pin() *Condition {
	switch {
	case q.known != nil && q.known.pin != 0:
		return q.known
	case q.target != nil:
		return q.target.Pin
	default:
		return nil
	}
}

// condition returns what the outcome depends on.
func (q *inquiry) condition() *Condition {
	switch pin := q.pin(); {
	case pin != nil:
		return pin
	case q.target == nil:
		return q.known
	case len(q.given) == 0:
		return nil
	default:
	}
	key := q.key[:0]
	for _, g := range q.given {
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(g.question.id)), uint64(g.answer))
	}
	q.key = key
	cond := q.conditions[string(key)]
	if cond == nil {
		cond = &Condition{answers: slices.Clone(q.given)}
		q.conditions[string(key)] = cond
		q.heldByConditions += cond.bytes()
	}
	return cond
}

// spelled returns the labels that rules have left, none that is more than an attribute with a mark.
func (q *inquiry) spelled(b *labels.Builder) (labels.Labels, error) {
	set := b.Labels()
	var err error
	isSpelled := false
	set.Range(func(l labels.Label) {
		if IsStructural(l.Name) && marked(l.Value) >= 0 {
			isSpelled = true
			err = errors.Join(err, q.spell(b, l.Name, l.Value))
		}
	})
	if isSpelled {
		set = b.Labels()
	}
	return set, err
}
