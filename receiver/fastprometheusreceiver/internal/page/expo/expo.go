// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package expo reads the two text formats of Prometheus, entry by entry, as strictly as Prometheus's own
// parsers: it refuses what they refuse, and accepts what they accept with the same meaning. The only exception are NULs that
// their lexers skip by accident, which are refused.
//
// A Parser borrows its input: the slices of an Entry alias it and stay valid as long as it does. After warm-up
// only errors and escaped texts allocate.
package expo

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
)

// A Kind says what an Entry is.
type Kind uint8

// The kinds of entries.
const (
	Nothing Kind = iota // a blank line or a comment
	Series
	Type
	Help
	Unit
	End // the page is complete; what follows, if it may, is not read
)

// ErrMore means that the entry does not end within the given bytes.
var ErrMore = errors.New("the entry is not complete")

// An Entry is one line of a page: a sample, or a piece of metadata.
type Entry struct {
	Kind Kind
	// Text is a series as exposed, name and braces; for metadata it is the whole line.
	Text []byte
	// Name and Body are set for metadata: the family, unquoted but not unescaped, and what the line says about it.
	Name, Body []byte
	Type       model.MetricType

	Value float64
	TS    int64 // milliseconds
	HasTS bool

	Exemplar Exemplar
	spans    []int // offsets into Text: the name's bounds, then those of each label's name and value
}

// An Exemplar belongs to a sample; it is valid if Found.
type Exemplar struct {
	Found bool
	HasTS bool
	TS    int64
	Value float64
	text  []byte
	spans []int
}

// A Parser reads entries of one format.
type Parser struct {
	OpenMetrics bool
}

// Next reads the entry b starts with and returns its length, the line break included. Only ErrMore asks for more bytes;
// every other error is final. b ends with a line break, unless it is the page's last part and an OpenMetrics page.
func (p *Parser) Next(b []byte, e *Entry) (int, error) {
	e.Kind, e.HasTS, e.Exemplar.Found = Nothing, false, false
	if p.OpenMetrics {
		return p.nextOpenMetrics(b, e)
	}
	return p.nextText(b, e)
}

// Tail reads what follows the text of a series that is already known: value, timestamp and exemplar.
func (p *Parser) Tail(b []byte, e *Entry) (int, error) {
	e.HasTS, e.Exemplar.Found = false, false
	if p.OpenMetrics {
		return tailOpenMetrics(b, 0, e)
	}
	return tailText(b, 0, e)
}

// AppendLabels adds the labels of a series to b, not sorted. t is the type the page last announced: it decides which
// label is a number to be normalised.
func (e *Entry) AppendLabels(b *labels.ScratchBuilder, t model.MetricType) {
	s := string(e.Text)
	b.Add(model.MetricNameLabel, unescape(s[e.spans[0]:e.spans[1]]))
	for i := 2; i < len(e.spans); i += 4 {
		name := unescape(s[e.spans[i]:e.spans[i+1]])
		b.Add(name, normalise(t, name, unescape(s[e.spans[i+2]:e.spans[i+3]])))
	}
}

// AppendLabels adds the labels of an exemplar to b, as exposed: escapes stay.
func (x *Exemplar) AppendLabels(b *labels.ScratchBuilder) {
	s := string(x.text)
	for i := 0; i < len(x.spans); i += 4 {
		b.Add(s[x.spans[i]:x.spans[i+1]], s[x.spans[i+2]:x.spans[i+3]])
	}
}

// Each visits the labels of an exemplar, as exposed.
func (x *Exemplar) Each(yield func(name, value []byte) bool) {
	for i := 0; i < len(x.spans); i += 4 {
		if !yield(x.text[x.spans[i]:x.spans[i+1]], x.text[x.spans[i+2]:x.spans[i+3]]) {
			return
		}
	}
}

// Metric returns the name of a series, unquoted but not unescaped.
func (e *Entry) Metric() []byte { return e.Text[e.spans[0]:e.spans[1]] }

// Labels returns how many labels a series has.
func (e *Entry) Labels() int { return (len(e.spans) - 2) / 4 }

// Label returns a label of a series, not unescaped.
func (e *Entry) Label(i int) (name, value []byte) {
	at, end := e.Span(i)
	i = 4*i + 2
	return e.Text[e.spans[i]:e.spans[i+1]], e.Text[at:end]
}

// Span returns where in the text the value of a label is.
func (e *Entry) Span(i int) (at, end int) { return e.spans[4*i+4], e.spans[4*i+5] }

// Cut appends the offsets at which the text of a series may be cut into pieces of the given number of labels: before
// the first label, and after each label that completes a piece, except the last.
func (e *Entry) Cut(dst []int, every int) []int {
	for i := 2; i < len(e.spans); i += 4 * every {
		if i == 2 {
			dst = append(dst, e.spans[i])
		} else {
			dst = append(dst, e.spans[i-1]+1)
		}
	}
	return dst
}

// BeforeBound returns the offset of a series' last label, if that is the bound of a bucket or a quantile and others
// come before it, else 0.
func (e *Entry) BeforeBound() int {
	i := len(e.spans) - 4
	if i < 6 {
		return 0
	}
	switch string(e.Text[e.spans[i]:e.spans[i+1]]) {
	case model.BucketLabel, model.QuantileLabel:
		return e.spans[i-1] + 1
	default:
		return 0
	}
}

// BehindLabels returns where the last label of a series with labels ends in its text.
func (e *Entry) BehindLabels() int { return e.spans[len(e.spans)-1] + 1 }

// Normalises reports whether the labels of a series depend on the announced type.
func (e *Entry) Normalises() bool {
	for i := 2; i < len(e.spans); i += 4 {
		switch string(e.Text[e.spans[i]:e.spans[i+1]]) {
		case model.BucketLabel, model.QuantileLabel:
			return true
		}
	}
	return false
}

func normalise(t model.MetricType, name, v string) string {
	if t == model.MetricTypeHistogram && name == model.BucketLabel ||
		t == model.MetricTypeSummary && name == model.QuantileLabel {
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return labels.FormatOpenMetricsFloat(f)
		}
	}
	return v
}

var unescaper = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, "\n")

func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	return unescaper.Replace(s)
}

// HelpText is the body of a HELP entry, unescaped.
func (p *Parser) HelpText(e *Entry) string {
	s := string(e.Body)
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	if p.OpenMetrics {
		return unescaper.Replace(s)
	}
	return helpUnescaper.Replace(s)
}

var helpUnescaper = strings.NewReplacer(`\\`, `\`, `\n`, "\n")

// number parses a float as Prometheus does: hexadecimal, underscores and out-of-range values are refused, and there is
// one NaN.
func number(b []byte) (float64, error) {
	for _, c := range b {
		if c == 'p' || c == 'P' || c == '_' {
			return 0, fmt.Errorf("cannot parse number %q: unsupported character", shown(b))
		}
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return 0, fmt.Errorf("cannot parse number %q", shown(b))
	}
	if math.IsNaN(v) {
		v = math.Float64frombits(value.NormalNaN)
	}
	return v, nil
}

// shown returns the part of the input that an error quotes.
func shown(b []byte) []byte {
	const most = 120
	return b[:min(len(b), most)]
}

func errSyntax(b []byte, i int, want string) error {
	return fmt.Errorf("cannot parse line: expected %s at byte %d of %q", want, i, shown(b[:lineEnd(b)]))
}

func lineEnd(b []byte) int {
	for i, c := range b {
		if c == '\n' {
			return i
		}
	}
	return len(b)
}

func isNameStart(c byte) bool { return isLabelStart(c) || c == ':' }

func isLabelStart(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

func isDigit(c byte) bool { return c-'0' < 10 }

// name returns the end of the metric name at i, or i.
func name(b []byte, i int) int {
	if i >= len(b) || !isNameStart(b[i]) {
		return i
	}
	for i++; i < len(b) && (isNameStart(b[i]) || isDigit(b[i])); i++ {
	}
	return i
}

// labelName returns the end of the label name at i, or i.
func labelName(b []byte, i int) int {
	if i >= len(b) || !isLabelStart(b[i]) {
		return i
	}
	for i++; i < len(b) && (isLabelStart(b[i]) || isDigit(b[i])); i++ {
	}
	return i
}

// Bytes that may occur in a quoted string in addition to those that always may.
const (
	lineBreaks = 1 << iota
	nuls
)

// quoted returns the end of the string whose opening quote is at i, or i when there is none. A backslash escapes any
// byte except a line break; NULs, where they are allowed, are ignored.
func quoted(b []byte, i, allowed int) (int, error) {
	if i >= len(b) || b[i] != '"' {
		return i, nil
	}
	for j := i + 1; j < len(b); j++ {
		switch b[j] {
		case '"':
			return j + 1, nil
		case '\\':
			for j++; j < len(b) && b[j] == 0 && allowed&nuls != 0; {
				j++
			}
			if j < len(b) && (b[j] == '\n' || b[j] == 0) {
				return i, nil
			}
		case '\n':
			if allowed&lineBreaks == 0 {
				return i, nil
			}
		case 0:
			if allowed&nuls == 0 {
				return i, nil
			}
		}
	}
	return i, ErrMore
}
