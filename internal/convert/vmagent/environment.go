// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// An envVariable is an environment variable that vmagent's manifest or unit sets.
type envVariable struct {
	name, value string
	line        int
}

// environment adds the flags that vmagent reads from variables if -envflag.enable is set. Flags on the command line
// take precedence. elsewhere names the place of variables that cannot be read here: it is empty if there are none, and
// nil if no variables are known at all.
func (f *flags) environment(elsewhere *string) {
	const enable = "envflag.enable"
	prefix := f.text("envflag.prefix")
	if !f.yes(enable) {
		return
	}
	switch {
	case elsewhere == nil:
		f.say(report.Lost, enable, "flags in the environment are not seen here: give them as arguments")
		return
	case *elsewhere != "":
		f.say(report.Lost, enable, "flags in "+*elsewhere+" are not seen here: give them as arguments")
	}
	given := slices.Clone(f.all)
	for _, v := range f.variables {
		name, ok := strings.CutPrefix(v.name, prefix)
		name = strings.ReplaceAll(name, "_", ".")
		if !ok || !isFlag(name) || slices.ContainsFunc(given, func(g flagValue) bool { return g.name == name }) {
			continue
		}
		f.all = append(f.all, flagValue{name, v.value, v.line})
	}
}

// variable reports whether an argument is a variable, and adds the flags in its value. It reports a variable whose
// value is unknown.
func (f *flags) variable(arg string, line int) bool {
	if arg != "$@" && !document.IsVariable(arg) {
		return false
	}
	name, _, _ := strings.Cut(strings.Trim(arg, "%{}"), ":-")
	for _, v := range slices.Backward(f.variables) {
		if v.name == name {
			seen := f.variables
			f.variables = nil // a value may refer to another variable, or to itself
			args, _ := words(v.value)
			f.add(args, slices.Repeat([]int{v.line}, len(args)))
			f.variables = seen
			return true
		}
	}
	f.in.Report.Add(report.Finding{Kind: report.Lost, File: f.file, Line: line, Path: name, Text: "flags in this variable are not seen here: write them in its place"})
	return true
}

// isFlag guesses from its name whether a variable is a flag.
func isFlag(name string) bool {
	switch name {
	case "http.proxy", "https.proxy", "no.proxy":
		return false
	}
	for _, begins := range []string{"remoteWrite.", "promscrape.", "streamAggr.", "enableMetadata"} {
		if strings.HasPrefix(name, begins) {
			return true
		}
	}
	return slices.Contains(switches, name) || slices.ContainsFunc(knownFlags, func(known flagText) bool { return strings.HasPrefix(name, known.prefix) })
}

// unitVariables returns the variables of a systemd unit.
func unitVariables(text string) (variables []envVariable, elsewhere string) {
	for began, line := range joinedLines(text) {
		switch key, value := setting(line); {
		case key == "EnvironmentFile" && value == "": // an empty value resets the list
			elsewhere = ""
		case key == "EnvironmentFile":
			elsewhere = "an `EnvironmentFile`"
		case key == "Environment" && value == "":
			variables = nil
		case key == "Environment":
			all, lines := words(value)
			for i, assignment := range all {
				if name, value, ok := strings.Cut(assignment, "="); ok {
					variables = append(variables, envVariable{name, value, began + lines[i]})
				}
			}
		}
	}
	return variables, elsewhere
}

// setting splits a line of a unit.
func setting(line string) (key, value string) {
	key, value, _ = strings.Cut(line, "=")
	return strings.TrimSpace(key), strings.Trim(value, " \t")
}
