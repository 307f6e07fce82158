// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/textparse"
)

// nextText reads the text format, 0.0.4 and 1.0.0: blanks and tabs may separate any two tokens, a label value may
// contain a line break, and of lines that start with '#' only HELP and TYPE have a meaning.
func (p *Parser) nextText(b []byte, e *Entry) (int, error) {
	i := blanks(b, 0)
	if i >= len(b) {
		return 0, ErrMore
	}
	switch c := b[i]; {
	case c == '\n':
		return i + 1, nil
	case c == 0:
		e.Kind = End // a NUL where an entry may start ends the page, without an error
		return i, nil
	case c == '#':
		return p.commentText(b, i, e)
	case c == '{':
		e.spans = append(e.spans[:0], -1, -1)
		j, err := e.labelsText(b, i+1)
		return p.finishText(b, j, e, err)
	case isNameStart(c):
		i = name(b, i)
		e.spans = append(e.spans[:0], 0, i) // blanks before a name are part of it
		end := i
		if i = blanks(b, i); i < len(b) && b[i] == '{' {
			j, err := e.labelsText(b, i+1)
			return p.finishText(b, j, e, err)
		}
		return p.finishText(b, end, e, nil)
	default:
		return 0, errSyntax(b, i, "a metric name")
	}
}

func (p *Parser) finishText(b []byte, i int, e *Entry, err error) (int, error) {
	if err == nil {
		var n int
		e.Kind, e.Text = Series, b[:i]
		if n, err = tailText(b, i, e); err == nil {
			return n, nil
		}
	}
	return p.odd(b, e, err)
}

func blanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return i
}

func (p *Parser) commentText(b []byte, i int, e *Entry) (int, error) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return 0, ErrMore
	}
	if bytes.IndexByte(b[:end], 0) >= 0 {
		return p.odd(b, e, errSyntax(b, i, "a comment"))
	}
	start := i
	j := blanks(b, i+1)
	if j == i+1 || end-j < 5 || b[j+4] != ' ' && b[j+4] != '\t' {
		return end + 1, nil
	}
	switch string(b[j : j+4]) {
	case "HELP":
		e.Kind = Help
	case "TYPE":
		e.Kind = Type
	default:
		return end + 1, nil
	}
	i = blanks(b, j+4)
	j, err := quoted(b, i, lineBreaks)
	if err != nil {
		return 0, err
	}
	if j > i {
		e.Name = b[i+1 : j-1]
		if j > end { // a line break in the name
			if end = bytes.IndexByte(b[j:], '\n'); end < 0 {
				return 0, ErrMore
			}
			end += j
		}
	} else {
		j = name(b, i)
		e.Name = b[i:j]
	}
	if j == i {
		return 0, errSyntax(b, i, "a metric name")
	}
	e.Text, e.Body = b[start:end], nil
	if blanks(b, j) != end {
		e.Body = b[j+1 : end] // one byte, whatever it is, separates it from the name
	}
	if e.Kind == Help {
		if !utf8.Valid(e.Body) {
			return 0, fmt.Errorf("cannot parse help text %q: not valid UTF-8", shown(e.Body))
		}
		return end + 1, nil
	}
	switch string(e.Body) {
	case "counter":
		e.Type = model.MetricTypeCounter
	case "gauge":
		e.Type = model.MetricTypeGauge
	case "histogram":
		e.Type = model.MetricTypeHistogram
	case "summary":
		e.Type = model.MetricTypeSummary
	case "untyped":
		e.Type = model.MetricTypeUnknown
	default:
		return 0, fmt.Errorf("cannot parse metric type %q: unknown", shown(e.Body))
	}
	return end + 1, nil
}

// labelsText reads what is in the braces and returns where they end. A comma between two labels is optional.
func (e *Entry) labelsText(b []byte, i int) (int, error) {
	for i = blanks(b, i); ; i = blanks(b, i) {
		if i < len(b) && b[i] == '}' {
			return i + 1, nil
		}
		end, err := quoted(b, i, lineBreaks)
		if err != nil {
			return 0, err
		}
		isQuoted := end > i
		if !isQuoted {
			end = labelName(b, i)
		}
		if end == i {
			return 0, errSyntax(b, i, "a label name")
		}
		from := i
		i = blanks(b, end)
		if i >= len(b) {
			return 0, ErrMore
		}
		if isQuoted && (b[i] == ',' || b[i] == '}') {
			if e.spans[0] >= 0 {
				return 0, errSyntax(b, i, "one metric name")
			}
			e.spans[0], e.spans[1] = from+1, end-1
			if b[i] == ',' {
				i++
			}
			continue
		}
		if b[i] != '=' {
			return 0, errSyntax(b, i, "'='")
		}
		i = blanks(b, i+1)
		vEnd, err := quoted(b, i, lineBreaks|nuls)
		if err != nil {
			return 0, err
		}
		if vEnd == i {
			return 0, errSyntax(b, i, "a label value")
		}
		if !utf8.Valid(b[i:vEnd]) {
			return 0, fmt.Errorf("cannot parse label value %q: not valid UTF-8", shown(b[i:vEnd]))
		}
		if isQuoted {
			from, end = from+1, end-1
		}
		e.spans = append(e.spans, from, end, i+1, vEnd-1)
		if i = blanks(b, vEnd); i < len(b) && b[i] == ',' {
			i++
		}
	}
}

// tailText reads the value and the timestamp that end a sample's line.
func tailText(b []byte, i int, e *Entry) (int, error) {
	if len(e.spans) > 0 && e.spans[0] < 0 {
		return 0, errSyntax(b, i, "a metric name in the braces")
	}
	i = blanks(b, i)
	v, end, ok := fastNumber(b, i)
	if !ok {
		for end = i; end < len(b) && b[end] != ' ' && b[end] != '\t' && b[end] != '\n' && b[end] != '{' && b[end] != 0; {
			end++
		}
		if end == i {
			return 0, errSyntax(b, i, "a value")
		}
		var err error
		if v, err = number(b[i:end]); err != nil {
			return 0, err
		}
	}
	e.Value = v
	i = blanks(b, end)
	if i < len(b) && isDigit(b[i]) {
		end = i
		for end < len(b) && isDigit(b[end]) {
			end++
		}
		ts, err := strconv.ParseInt(string(b[i:end]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("cannot parse timestamp %q: out of range", shown(b[i:end]))
		}
		e.TS, e.HasTS = ts, true
		i = blanks(b, end)
	}
	if i >= len(b) {
		return 0, ErrMore
	}
	if b[i] != '\n' {
		return 0, errSyntax(b, i, "a timestamp or the end of the line")
	}
	return i + 1, nil
}

// odd gives a line with NUL bytes to Prometheus' parser, the only reference for them: it skips some and takes others as
// the end of the page, by no written grammar. Any other line that failed stays failed.
func (p *Parser) odd(b []byte, e *Entry, err error) (int, error) {
	if errors.Is(err, ErrMore) || bytes.IndexByte(b[:lineEnd(b)], 0) < 0 {
		return 0, err
	}
	line := b[:min(lineEnd(b)+1, len(b))]
	ref := textparse.NewPromParser(bytes.Clone(line), nil, false)
	kind, err := ref.Next()
	switch {
	case errors.Is(err, io.EOF):
		e.Kind = End
		return len(line), nil
	case err != nil:
		return 0, err
	}
	switch kind {
	case textparse.EntryComment:
		e.Kind = Nothing
		return len(line), nil
	case textparse.EntryHelp:
		e.Kind = Help
		e.Name, e.Body = ref.Help()
	case textparse.EntryType:
		e.Kind = Type
		e.Name, e.Type = ref.Type()
		e.Body = []byte(e.Type)
	default:
		return 0, errSyntax(b, 0, "no NUL outside of label values")
	}
	e.Text = line[:len(line)-1]
	return len(line), nil
}
