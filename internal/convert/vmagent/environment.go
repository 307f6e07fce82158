// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// A envVariable is one that vmagent's manifest or unit gives it.
type envVariable struct {
	name, value string
	line        int
}

// environment adds the flags that vmagent takes from variables, with -envflag.enable. What is given as a flag counts more. Where there are variables that are not
// seen, elsewhere says where; it is empty where all are, and nil where none is.
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

// variable takes up the flags in a variable that is an argument of its own, or several, and says so where they are not seen. It reports whether it is one.
func (f *flags) variable(arg string, line int) bool {
	if arg != "$@" && !document.IsVariable(arg) {
		return false
	}
	name, _, _ := strings.Cut(strings.Trim(arg, "%{}"), ":-")
	for _, v := range slices.Backward(f.variables) {
		if v.name == name {
			seen := f.variables
			f.variables = nil // one may name another, or itself
			args, _ := words(v.value)
			f.add(args, slices.Repeat([]int{v.line}, len(args)))
			f.variables = seen
			return true
		}
	}
	f.in.Report.Add(report.Finding{Kind: report.Lost, File: f.file, Line: line, Path: name, Text: "flags in this variable are not seen here: write them in its place"})
	return true
}

// isFlag tells flags from other variables, as far as a name tells.
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

// unitVariables are those of a unit of systemd.
func unitVariables(text string) (variables []envVariable, elsewhere string) {
	for began, line := range joinedLines(text) {
		switch key, value := setting(line); {
		case key == "EnvironmentFile" && value == "": // what is above holds no more
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

// setting is what a line of a unit sets, and to what.
func setting(line string) (key, value string) {
	key, value, _ = strings.Cut(line, "=")
	return strings.TrimSpace(key), strings.Trim(value, " \t")
}
