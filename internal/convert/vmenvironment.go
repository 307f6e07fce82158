// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A vmVariable is one that vmagent's manifest or unit gives it.
type vmVariable struct {
	name, value string
	line        int
}

// environment adds the flags that vmagent takes from variables, with -envflag.enable. What is given as a flag counts more. Where there are variables that are not
// seen, elsewhere says where; it is empty where all are, and nil where none is.
func (f *flags) environment(variables []vmVariable, elsewhere *string) {
	const enable = "envflag.enable"
	prefix := f.text("envflag.prefix")
	if !f.yes(enable) {
		return
	}
	switch {
	case elsewhere == nil:
		f.say(Lost, enable, "flags in the environment are not seen here: give them as arguments")
		return
	case *elsewhere != "":
		f.say(Lost, enable, "flags in "+*elsewhere+" are not seen here: give them as arguments")
	}
	given := slices.Clone(f.all)
	for _, v := range variables {
		name, ok := strings.CutPrefix(v.name, prefix)
		name = strings.ReplaceAll(name, "_", ".")
		if !ok || !isFlagOfVMAgent(name) || slices.ContainsFunc(given, func(g vmFlag) bool { return g.name == name }) {
			continue
		}
		f.all = append(f.all, vmFlag{name, v.value, v.line})
	}
}

// isFlagOfVMAgent tells flags from other variables, as far as a name tells.
func isFlagOfVMAgent(name string) bool {
	switch name {
	case "http.proxy", "https.proxy", "no.proxy":
		return false
	}
	for _, begins := range []string{"remoteWrite.", "promscrape.", "streamAggr.", "enableMetadata"} {
		if strings.HasPrefix(name, begins) {
			return true
		}
	}
	return slices.Contains(vmagentSwitches, name) || slices.ContainsFunc(vmagentFlags, func(known flagText) bool { return strings.HasPrefix(name, known.prefix) })
}

// containerVariables are those of a container. The value of one that comes from elsewhere is the variable itself.
func containerVariables(container *yaml.Node) (variables []vmVariable, elsewhere string) {
	if from := find(container, "envFrom"); !isNull(from) {
		elsewhere = "what `envFrom` names"
	}
	for _, item := range contents(find(container, "env")) {
		name, value := find(item, "name"), find(item, "value")
		switch {
		case name == nil:
		case value != nil:
			variables = append(variables, vmVariable{name.Value, manifestVariable().ReplaceAllString(value.Value, "%{$1}"), item.Line})
		default:
			variables = append(variables, vmVariable{name.Value, "%{" + name.Value + "}", item.Line})
		}
	}
	return variables, elsewhere
}

// unitVariables are those of a unit of systemd.
func unitVariables(text string) (variables []vmVariable, elsewhere string) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "EnvironmentFile=") {
			elsewhere = "an `EnvironmentFile`"
		}
		assignments, ok := strings.CutPrefix(line, "Environment=")
		if !ok {
			continue
		}
		all, _ := words(assignments)
		for _, assignment := range all {
			if name, value, ok := strings.Cut(assignment, "="); ok {
				variables = append(variables, vmVariable{name, value, number})
			}
		}
	}
	return variables, elsewhere
}
