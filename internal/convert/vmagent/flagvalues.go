// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// text claims a flag with a single value, and returns the last one given.
func (f *flags) text(name string) string {
	f.claimed[name] = true
	value := ""
	for _, given := range f.all {
		if given.name == name {
			value = given.value
		}
	}
	return value
}

func (f *flags) has(name string) bool {
	return slices.ContainsFunc(f.all, func(given flagValue) bool { return given.name == name })
}

func (f *flags) yes(name string) bool {
	value := f.text(name)
	return !f.isElsewhere(name, value) && document.Truth(value)
}

// on is yes for a flag with a value for each destination.
func (f *flags) on(name string, i int) bool {
	value := f.of(name, i)
	return !f.isElsewhere(name, value) && document.Truth(value)
}

// isElsewhere reports a flag whose value is in an environment variable, where the result depends on what the value is.
func (f *flags) isElsewhere(name, value string) bool {
	is := document.Variable().MatchString(value)
	if is {
		f.say(report.Lost, name, "its value is in an environment variable, and the result depends on it: convert with the value itself in its place")
	}
	return is
}

// list claims a flag with several values, and returns those of all its uses.
func (f *flags) list(name string) []string {
	f.claimed[name] = true
	var values []string
	for _, given := range f.all {
		if given.name == name {
			values = append(values, arrayValues(given.value)...)
		}
	}
	return values
}

// of claims a flag with a value for each destination, and returns that of destination i. A single value applies to all.
func (f *flags) of(name string, i int) string {
	values := f.list(name)
	switch {
	case i < len(values):
		return values[i]
	case len(values) == 1:
		return values[0]
	}
	return ""
}

// arrayValues splits a value at commas outside quotes and brackets, as vmagent does.
func arrayValues(text string) []string {
	closing := map[byte]byte{'"': '"', '\'': '\'', '[': ']', '{': '}', '(': ')'}
	var values []string
	var until []byte
	begin := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case len(until) > 0 && c == '\\':
			i++
		case len(until) > 0 && c == until[len(until)-1]:
			until = until[:len(until)-1]
		case len(until) > 0 && (until[len(until)-1] == '"' || until[len(until)-1] == '\''):
		case closing[c] != 0:
			until = append(until, closing[c])
		case c == ',' && len(until) == 0:
			values = append(values, unquote(text[begin:i]))
			begin = i + 1
		}
	}
	return append(values, unquote(text[begin:]))
}

func unquote(text string) string {
	if len(text) > 1 && text[0] == '"' {
		if plain, err := strconv.Unquote(text); err == nil {
			return plain
		}
	}
	if len(text) > 1 && text[0] == '\'' && text[len(text)-1] == '\'' {
		return strings.ReplaceAll(text[1:len(text)-1], `\'`, "'")
	}
	return text
}

// duration converts the duration that a flag has for a destination, if it is set.
func (f *flags) duration(name string, i int, to document.Table, key string) {
	text := f.of(name, i)
	if text == "" || f.isElsewhere(name, text) {
		return
	}
	d, err := promconfig.Duration(text)
	if err != nil {
		if seconds, number := strconv.ParseFloat(text, 64); number == nil {
			d, err = time.Duration(seconds*float64(time.Second)), nil
		}
	}
	if err != nil {
		f.say(report.Lost, name, err.Error())
		return
	}
	to.Set(key, promconfig.GoDuration(d))
}

// number returns a flag's number or size in bytes for a destination, 0 if it is not set.
func (f *flags) number(name string, i int) int64 {
	text := f.of(name, i)
	if text == "" || f.isElsewhere(name, text) {
		return 0
	}
	n, err := bytesOf(text)
	if err != nil {
		f.say(report.Lost, name, err.Error())
	}
	return n
}

var byteUnits = []struct {
	suffix string
	factor float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
}

// bytesOf parses a size in vmagent's units.
func bytesOf(text string) (int64, error) {
	factor, number := 1.0, text
	for _, u := range byteUnits {
		if before, ok := strings.CutSuffix(strings.ToLower(text), strings.ToLower(u.suffix)); ok {
			factor, number = u.factor, before
			break
		}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number or size, such as 16MiB", text)
	}
	if n *= factor; math.IsNaN(n) || math.Abs(n) >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is too large", text)
	}
	return int64(n), nil
}
