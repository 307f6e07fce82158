// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/lazyregexp"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// A container of a manifest of Kubernetes that runs vmagent, and its arguments.
type container struct {
	node *yaml.Node
	args []*yaml.Node
}

// ContainerFlags finds the arguments of vmagent's container in a manifest of Kubernetes.
func ContainerFlags(n *yaml.Node) []*yaml.Node {
	if all := containersOf(n); len(all) > 0 {
		return all[0].args
	}
	return nil
}

// containersOf finds the containers that run vmagent, before those that are sidecars of a pod. Those that end before the pod starts, such as one that
// looks at the configuration, count where there are no others.
func containersOf(n *yaml.Node) []container {
	var all startedContainers
	all.find(n, false)
	if running := slices.Concat(all.main, all.sidecars); len(running) > 0 {
		return running
	}
	return all.ended
}

type startedContainers struct{ main, sidecars, ended []container }

func (s *startedContainers) find(n *yaml.Node, before bool) {
	if n == nil {
		return
	}
	list := slices.Concat(document.Contents(document.Find(n, "command")), document.Contents(document.Find(n, "args")))
	if startsVMAgent(document.ValuesOf(list)) {
		of := &s.main
		switch {
		case before && document.TextOf(n, "restartPolicy") == "Always":
			of = &s.sidecars
		case before:
			of = &s.ended
		}
		*of = append(*of, container{n, list})
		return
	}
	for i, child := range n.Content {
		s.find(child, before || n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "initContainers")
	}
}

// container takes up the flags of the first container, and says what others are not converted. It returns the container's variables.
func (f *flags) container(all []container) (variables []envVariable, elsewhere string) {
	for _, other := range all[1:] {
		f.in.Report.Add(report.Finding{
			Kind: report.Lost, File: f.file, Line: other.node.Line, Path: "containers." + document.TextOf(other.node, "name"),
			Text: "it has flags of vmagent, too, and the first container that has is converted: convert a manifest with this one alone",
		})
	}
	variables, elsewhere = containerVariables(all[0].node)
	f.variables = variables // arguments may name them
	args, lines := document.ValuesOf(all[0].args), linesOf(all[0].args)
	for i, arg := range args { // $(NAME) is Kubernetes' own
		args[i] = manifestVariable().ReplaceAllString(arg, "%{$1}")
	}
	f.command(args, lines)
	return variables, elsewhere
}

// manifestVariable is one of Kubernetes. Variables of those who start vmagent become %{NAME}, which is vmagent's own.
var manifestVariable = lazyregexp.New(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// containerVariables are those of a container. The value of one that comes from elsewhere is the variable itself.
func containerVariables(container *yaml.Node) (variables []envVariable, elsewhere string) {
	if from := document.Find(container, "envFrom"); !document.IsNull(from) {
		elsewhere = "what `envFrom` names"
	}
	for _, item := range document.Contents(document.Find(container, "env")) {
		name, value := document.Find(item, "name"), document.Find(item, "value")
		switch {
		case name == nil:
		case value != nil:
			variables = append(variables, envVariable{name.Value, manifestVariable().ReplaceAllString(value.Value, "%{$1}"), item.Line})
		default:
			variables = append(variables, envVariable{name.Value, "%{" + name.Value + "}", item.Line})
		}
	}
	return variables, elsewhere
}
