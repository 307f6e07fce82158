// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/report"
	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// A container is a container of a Kubernetes manifest that runs vmagent.
type container struct {
	node *yaml.Node
	args []*yaml.Node
}

// ContainerFlags returns the arguments of vmagent's container in a Kubernetes manifest.
func ContainerFlags(n *yaml.Node) []*yaml.Node {
	if all := containersOf(n); len(all) > 0 {
		return all[0].args
	}
	return nil
}

// containersOf finds the containers that run vmagent: the main ones first, then the sidecars of a pod. Containers that
// end before the pod starts, such as one that checks the configuration, are returned only if there are no others.
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

// container reads the flags of the first container, and reports that the others are not converted. It returns the
// container's variables.
func (f *flags) container(all []container) (variables []envVariable, elsewhere string) {
	for _, other := range all[1:] {
		f.in.Report.Add(report.Finding{
			Kind: report.Lost, File: f.file, Line: other.node.Line, Path: "containers." + document.TextOf(other.node, "name"),
			Text: "it has flags of vmagent, too, and the first container that has is converted: convert a manifest with this one alone",
		})
	}
	variables, elsewhere = containerVariables(all[0].node)
	f.variables = variables // arguments may refer to them
	args, lines := document.ValuesOf(all[0].args), linesOf(all[0].args)
	for i, arg := range args { // $(NAME) is Kubernetes' own
		args[i] = manifestVariable().ReplaceAllString(arg, "%{$1}")
	}
	f.command(args, lines)
	return variables, elsewhere
}

// manifestVariable matches a variable of Kubernetes. Variables of the environment become %{NAME}, which is vmagent's
// form.
var manifestVariable = lazyregexp.New(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// containerVariables returns the variables of a container. A variable with a value from elsewhere has itself as its
// value.
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
