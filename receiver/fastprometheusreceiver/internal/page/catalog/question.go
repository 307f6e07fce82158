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

// A question is what a rule asks when it reads a label whose value each target has for itself: what does the rule do to
// a line? It consists of the rule and the values that the rule reads, with marks in place of the targets' values.
type question struct {
	id      int
	rule    *relabel.Config // nil asks for the value itself
	names   []string        // of the labels that are read
	values  []string
	answers []string // given so far
	number  int      // of the derived value, if an answer is one; -1 before the first
}

// First bytes of an answer. An empty answer leaves the line unchanged.
const (
	answerDrop   = "-" // the line is dropped
	answerDelete = "0" // the rule's target label is deleted
	answerValue  = "v" // it gets a value derived from each target's
	answerSet    = "=" // it gets the value that follows
)

const (
	// MostQuestions limits the questions to the targets of a cohort. A rule that reads labels of the target together
	// with a line's own label would ask one for each value of the latter.
	MostQuestions = 1 << 9
	// mostAnswers limits the groups into which a question may divide targets.
	mostAnswers = 1 << 10
)

// errPinned means that rules ask too much: the target needs lines of its own.
var errPinned = errors.New("cannot share lines between targets: rules ask too much of their labels")

// A Condition is the set of answers on which a line depends. Targets with other answers have another line of the same
// text.
type Condition struct {
	answers []givenAnswer
	// A target with lines of its own has no answers, but the values of all its labels, and a number that tells its
	// lines from others'.
	values []string
	pin    uint64
	Epoch  uint32
}

type givenAnswer struct {
	question *question
	answer   int
}

// pinned returns the number of the target whose lines these are, 0 for shared lines.
func (cond *Condition) pinned() uint64 {
	if cond == nil {
		return 0
	}
	return cond.pin
}

const absent = "\x01" // no label has this value

// ask returns what the rule does, given the target's values.
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

// comparesLabels reports whether a rule reads its target label.
func comparesLabels(r *relabel.Config) bool {
	return r.Action == relabel.DropEqual || r.Action == relabel.KeepEqual
}

// sets reports whether a rule sets its target label.
func sets(r *relabel.Config) bool {
	switch r.Action {
	case relabel.Replace, relabel.Lowercase, relabel.Uppercase, relabel.HashMod:
		return true
	default:
		return false
	}
}

// isConstant reports whether a rule always sets its label to the same value.
func isConstant(r *relabel.Config) bool {
	return r.Action == relabel.Replace && !strings.Contains(r.Replacement, "$")
}

// IsStructural reports whether a label decides more than an attribute.
func IsStructural(name string) bool {
	return name == model.MetricNameLabel || name == model.BucketLabel || name == model.QuantileLabel ||
		strings.HasPrefix(name, scopePrefix)
}

// asked has the questions to the targets of a cohort, and their answers.
type asked struct {
	variables  int                   // number of labels that may differ
	derived    int                   // number of values that rules derive from them
	questions  map[string]*question  // by the rule and what it reads
	conditions map[string]*Condition // by their answers
	asking     inquiry               // memory for later calls

	heldByConditions int64 // in bytes; an estimate
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

// An inquiry applies rules to the labels of a line, and records the answers on which the outcome depends.
type inquiry struct {
	*Catalog

	target *Identity  // whose answers are asked for, or nil
	known  *Condition // whose answers are already given
	given  []givenAnswer

	key        []byte
	readNames  []string
	readValues []string
}

// ask returns the answer to a rule's question about the values of labels. Without a rule, the question is about the
// value of the first.
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

// apply applies the rules to labels, about as many as given, and reports whether these are kept.
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

// reads returns the labels that a rule reads, if one of them has a target's value.
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

// spell replaces the mark of a label by the target's value.
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

// pin returns the condition of lines that are one target's alone.
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

// condition returns the answers on which the outcome depends.
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

// spelled returns the labels that rules have left, with the values of structural labels in place of their marks.
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
