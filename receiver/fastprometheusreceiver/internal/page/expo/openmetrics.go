// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/prometheus/common/model"
)

// nextOpenMetrics reads OpenMetrics text: exactly one blank between tokens, no blank lines, no comments, exemplars
// after the sample, and "# EOF" at the end with nothing after it.
func (p *Parser) nextOpenMetrics(b []byte, e *Entry) (int, error) {
	if len(b) == 0 {
		return 0, ErrMore
	}
	switch c := b[0]; {
	case c == '#':
		return nextMeta(b, e)
	case c == '{':
		e.spans = append(e.spans[:0], -1, -1)
		i, err := e.labelsOpenMetrics(b, 1)
		if err != nil {
			return 0, err
		}
		return e.finishOpenMetrics(b, i)
	case isNameStart(c):
		i := name(b, 0)
		e.spans = append(e.spans[:0], 0, i)
		if i < len(b) && b[i] == '{' {
			var err error
			if i, err = e.labelsOpenMetrics(b, i+1); err != nil {
				return 0, err
			}
		}
		return e.finishOpenMetrics(b, i)
	default:
		return 0, errSyntax(b, 0, "a metric name")
	}
}

func (e *Entry) finishOpenMetrics(b []byte, i int) (int, error) {
	e.Kind, e.Text = Series, b[:i]
	return tailOpenMetrics(b, i, e)
}

func nextMeta(b []byte, e *Entry) (int, error) {
	switch {
	case len(b) >= 5 && string(b[:5]) == "# EOF":
		e.Kind = End
		if len(b) > 5 && b[5] == '\n' {
			return 6, nil
		}
		return 5, nil
	case len(b) < 7:
		if bytes.IndexByte(b, '\n') < 0 {
			return 0, ErrMore
		}
		return 0, errSyntax(b, 0, "metadata")
	}
	switch string(b[:7]) {
	case "# HELP ":
		e.Kind = Help
	case "# TYPE ":
		e.Kind = Type
	case "# UNIT ":
		e.Kind = Unit
	default:
		return 0, errSyntax(b, 2, "HELP, TYPE, UNIT or EOF")
	}
	i, err := quoted(b, 7, lineBreaks)
	if err != nil {
		return 0, err
	}
	if i > 7 {
		e.Name = b[8 : i-1]
	} else {
		i = name(b, 7)
		e.Name = b[7:i]
	}
	if i == 7 {
		return 0, errSyntax(b, i, "a metric name")
	}
	if i >= len(b) {
		return 0, ErrMore
	}
	if b[i] != ' ' {
		return 0, errSyntax(b, i, "a blank")
	}
	end := bytes.IndexByte(b[i:], '\n')
	if end < 0 {
		return 0, ErrMore
	}
	end += i
	e.Text, e.Body = b[:end], b[i+1:end]
	switch e.Kind {
	case Help:
		if !utf8.Valid(e.Body) {
			return 0, fmt.Errorf("cannot parse help text %q: not valid UTF-8", shown(e.Body))
		}
	case Type:
		switch t := model.MetricType(e.Body); t {
		case model.MetricTypeCounter, model.MetricTypeGauge, model.MetricTypeHistogram, model.MetricTypeGaugeHistogram,
			model.MetricTypeSummary, model.MetricTypeInfo, model.MetricTypeStateset, model.MetricTypeUnknown:
			e.Type = t
		default:
			return 0, fmt.Errorf("cannot parse metric type %q: unknown", shown(e.Body))
		}
	default:
		n, u := len(e.Name), len(e.Body)
		if u > 0 && (n < u+1 || !bytes.HasSuffix(e.Name, e.Body) || e.Name[n-u-1] != '_') {
			return 0, fmt.Errorf("cannot use unit %q: not a suffix of metric %q", shown(e.Body), shown(e.Name))
		}
	}
	return end + 1, nil
}

func (e *Entry) labelsOpenMetrics(b []byte, i int) (int, error) {
	for {
		if i < len(b) && b[i] == '}' {
			return i + 1, nil
		}
		end, isQuoted, err := openMetricsName(b, i, lineBreaks)
		if err != nil {
			return 0, err
		}
		if isQuoted && end < len(b) && (b[end] == ',' || b[end] == '}') {
			if e.spans[0] >= 0 {
				return 0, errSyntax(b, i, "one metric name")
			}
			e.spans[0], e.spans[1] = i+1, end-1
			if i = end; b[i] == ',' {
				i++
			}
			continue
		}
		if e.spans, i, err = openMetricsPair(e.spans, b, i, end, isQuoted, nuls); err != nil {
			return 0, err
		}
	}
}

// openMetricsName returns the end of the label name at i; allowed is for a quoted one.
func openMetricsName(b []byte, i, allowed int) (end int, isQuoted bool, err error) {
	if end, err = quoted(b, i, allowed); err != nil {
		return 0, false, err
	}
	if isQuoted = end > i; !isQuoted {
		end = labelName(b, i)
	}
	if end == i {
		return 0, false, errSyntax(b, i, "a label name")
	}
	return end, isQuoted, nil
}

// openMetricsPair reads the value of the label name that starts at from, and the comma after it.
func openMetricsPair(spans []int, b []byte, from, end int, isQuoted bool, allowed int) ([]int, int, error) {
	if end >= len(b) || b[end] != '=' {
		return spans, 0, errSyntax(b, end, "'='")
	}
	i := end + 1
	vEnd, err := quoted(b, i, allowed)
	if err != nil {
		return spans, 0, err
	}
	if vEnd == i {
		return spans, 0, errSyntax(b, i, "a label value")
	}
	if !utf8.Valid(b[i:vEnd]) {
		return spans, 0, fmt.Errorf("cannot parse label value %q: not valid UTF-8", shown(b[i:vEnd]))
	}
	if isQuoted {
		from, end = from+1, end-1
	}
	spans = append(spans, from, end, i+1, vEnd-1)
	switch i = vEnd; {
	case i < len(b) && b[i] == ',':
		return spans, i + 1, nil
	case i < len(b) && b[i] == '}':
		return spans, i, nil
	default:
		return spans, 0, errSyntax(b, i, "',' or '}'")
	}
}

// word returns the end of the token that follows one blank at i, or i.
func word(b []byte, i int) int {
	if i >= len(b) || b[i] != ' ' {
		return i
	}
	end := i + 1
	for end < len(b) && b[end] != ' ' && b[end] != '\n' && b[end] != 0 {
		end++
	}
	if end == i+1 {
		return i
	}
	return end
}

// tailOpenMetrics reads the value, the timestamp and the exemplar that end a sample's line.
func tailOpenMetrics(b []byte, i int, e *Entry) (int, error) {
	if len(e.spans) > 0 && e.spans[0] < 0 {
		return 0, errSyntax(b, i, "a metric name in the braces")
	}
	var err error
	if i, e.Value, err = wordNumber(b, i, "a value"); err != nil {
		return 0, err
	}
	if i < len(b) && b[i] == ' ' && !bytes.HasPrefix(b[i:], []byte(" # {")) {
		if i, e.TS, err = wordTime(b, i); err != nil {
			return 0, err
		}
		e.HasTS = true
	}
	if bytes.HasPrefix(b[min(i, len(b)):], []byte(" # {")) {
		if i, err = e.Exemplar.read(b, i+4); err != nil {
			return 0, err
		}
	}
	if i >= len(b) {
		return 0, ErrMore
	}
	if b[i] != '\n' {
		return 0, errSyntax(b, i, "the end of the line")
	}
	return i + 1, nil
}

func wordNumber(b []byte, i int, want string) (int, float64, error) {
	if i < len(b) && b[i] == ' ' {
		if v, end, ok := fastNumber(b, i+1); ok && b[end] != '\t' {
			return end, v, nil
		}
	}
	end := word(b, i)
	if end == i {
		return 0, 0, errSyntax(b, i, want)
	}
	v, err := number(b[i+1 : end])
	return end, v, err
}

// wordTime reads seconds and returns milliseconds.
func wordTime(b []byte, i int) (int, int64, error) {
	end, v, err := wordNumber(b, i, "a timestamp")
	if err != nil {
		return 0, 0, err
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, 0, errors.New("cannot use timestamp: not finite")
	}
	return end, int64(v * 1000), nil
}

func (x *Exemplar) read(b []byte, i int) (int, error) {
	start := i
	x.spans = x.spans[:0]
	for i >= len(b) || b[i] != '}' {
		end, isQuoted, err := openMetricsName(b, i, 0)
		if err != nil {
			return 0, err
		}
		if x.spans, i, err = openMetricsPair(x.spans, b, i, end, isQuoted, 0); err != nil {
			return 0, err
		}
	}
	x.text = b[start:i]
	for j := range x.spans {
		x.spans[j] -= start
	}
	i, v, err := wordNumber(b, i+1, "an exemplar's value")
	if err != nil {
		return 0, err
	}
	x.Found, x.Value, x.HasTS = true, v, false
	if i < len(b) && b[i] == ' ' {
		if i, x.TS, err = wordTime(b, i); err != nil {
			return 0, err
		}
		x.HasTS = true
	}
	return i, nil
}
