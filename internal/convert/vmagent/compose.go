// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"cmp"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// Composed finds the service of a Docker Compose file that runs vmagent, and returns its arguments and their lines.
// Compose's own variables become %{NAME}.
func Composed(root *yaml.Node) (service *yaml.Node, args []string, lines []int) {
	services := document.Find(root, "services")
	if services == nil || services.Kind != yaml.MappingNode {
		return nil, nil, nil
	}
	for i := 1; i < len(services.Content); i += 2 {
		if args, lines := composedArgs(services.Content[i]); len(args) > 0 {
			return services.Content[i], args, lines
		}
	}
	return nil, nil, nil
}

// composedBeside returns the names of the other services that run vmagent.
func composedBeside(root, converted *yaml.Node) (names []*yaml.Node) {
	services := document.Find(root, "services")
	for i := 1; i < len(services.Content); i += 2 {
		if args, _ := composedArgs(services.Content[i]); services.Content[i] != converted && len(args) > 0 {
			names = append(names, services.Content[i-1])
		}
	}
	return names
}

// composedArgs returns the arguments of a service, none if it does not run vmagent.
func composedArgs(service *yaml.Node) (args []string, lines []int) {
	for _, key := range []string{"entrypoint", "command"} {
		switch command := document.Find(service, key); {
		case document.IsNull(command):
		case command.Kind == yaml.SequenceNode:
			lines = append(lines, linesOf(command.Content)...)
			for _, arg := range command.Content {
				args = append(args, composeValue(arg.Value))
			}
		default:
			all, at := words(composeValue(command.Value))
			first := command.Line
			if command.Style&(yaml.FoldedStyle|yaml.LiteralStyle) != 0 {
				first++
			}
			for k, arg := range all {
				args, lines = append(args, arg), append(lines, first+at[k])
			}
		}
	}
	if startsVMAgent(args) {
		return args, lines
	}
	return nil, nil
}

var composeVariable = lazyregexp.New(`^([A-Za-z_][A-Za-z0-9_]*)(?:(:?-)|:?\?|$)`)

// composeValue converts the variables of a value of Compose to vmagent's form, with their default, which may be another
// variable. Two dollar signs become one. Other substitutions, such as ${NAME:+text}, stay as they are.
func composeValue(value string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(value, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		end := strings.IndexFunc(rest, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		})
		if end < 0 {
			end = len(rest)
		}
		switch {
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			end = 1
		case strings.HasPrefix(rest, "{"):
			end = closing(rest)
			out.WriteString(bracedVariable(rest[:end]))
		case end > 0 && (rest[0] < '0' || rest[0] > '9'):
			out.WriteString("%{" + rest[:end] + "}")
		default:
			out.WriteByte('$')
			end = 0
		}
		value = rest[end:]
	}
}

// closing returns the position after the brace that closes the first one, or 1 if there is none.
func closing(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 1
}

// bracedVariable converts a variable of Compose in braces, without its dollar sign, to vmagent's form.
func bracedVariable(braced string) string {
	inner := strings.TrimSuffix(braced[1:], "}")
	parts := composeVariable().FindStringSubmatch(inner)
	switch {
	case len(braced) < 2 || parts == nil:
		return "$" + braced
	case parts[2] == "":
		return "%{" + parts[1] + "}"
	}
	otherwise := composeValue(inner[len(parts[0]):])
	if made := "%{" + parts[1] + ":-" + otherwise + "}"; document.IsVariable(made) {
		return made
	}
	return "$" + braced // it contains characters that a variable of vmagent's must not contain
}

// composeVariables returns the variables of a service's environment.
func composeVariables(service *yaml.Node) (variables []envVariable, elsewhere string) {
	if !document.IsNull(document.Find(service, "env_file")) {
		elsewhere = "`env_file`"
	}
	add := func(name string, value *string, line int) {
		v := envVariable{name, "%{" + name + "}", line} // its value comes from the environment of Compose
		if value != nil {
			v.value = composeValue(*value)
		}
		variables = append(variables, v)
	}
	switch environment := document.Find(service, "environment"); {
	case document.IsNull(environment):
	case environment.Kind == yaml.SequenceNode:
		for _, item := range environment.Content {
			name, value, given := strings.Cut(item.Value, "=")
			if given {
				add(name, &value, item.Line)
			} else {
				add(name, nil, item.Line)
			}
		}
	default:
		for i := 0; i+1 < len(environment.Content); i += 2 {
			if value := environment.Content[i+1]; document.IsNull(value) {
				add(environment.Content[i].Value, nil, value.Line)
			} else {
				add(environment.Content[i].Value, &value.Value, value.Line)
			}
		}
	}
	return variables, elsewhere
}

// composeMounts returns the mounts of a service, except named volumes, and the files of its configs and secrets.
func composeMounts(root, service *yaml.Node) (mounts []input.Mount) {
	for _, volume := range document.Contents(document.Find(service, "volumes")) {
		if volume.Kind != yaml.MappingNode {
			mounts = append(mounts, volumeMount(composeValue(volume.Value))...)
		} else if source, target := document.Find(volume, "source"), document.Find(volume, "target"); source != nil && target != nil {
			mounts = append(mounts, volumeMount(composeValue(source.Value)+":"+target.Value)...)
		}
	}
	for _, kind := range [][2]string{{"configs", "/"}, {"secrets", "/run/secrets/"}} {
		key, folder := kind[0], kind[1]
		for _, used := range document.Contents(document.Find(service, key)) {
			source, inside := used, ""
			if used.Kind == yaml.MappingNode {
				if source = document.Find(used, "source"); source == nil {
					continue
				}
				if target := document.Find(used, "target"); target != nil {
					inside = target.Value
				}
			}
			file := document.Find(document.Find(document.Find(root, key), source.Value), "file")
			if file == nil {
				continue
			}
			if inside = cmp.Or(inside, source.Value); !path.IsAbs(inside) {
				inside = folder + inside
			}
			mounts = append(mounts, input.Mount{Inside: path.Clean(inside), Outside: composeValue(file.Value)})
		}
	}
	return mounts
}

// volumeMount returns the mount that host:container stands for, none for a named volume.
func volumeMount(volume string) []input.Mount {
	at := strings.LastIndex(volume, ":/") // the host's path may contain a default after a colon
	if at < 0 {
		return nil
	}
	outside, inside := volume[:at], volume[at+1:]
	inside, _, _ = strings.Cut(inside, ":") // :ro
	for _, here := range []string{"%{PWD}/", "$(pwd)/"} {
		if rest, found := strings.CutPrefix(outside, here); found {
			outside = "./" + rest
		}
	}
	if !strings.ContainsAny(outside, "./~") {
		return nil
	}
	return []input.Mount{{Inside: path.Clean(inside), Outside: outside}}
}

// commandMounts returns the mounts of a command that runs a container.
func commandMounts(args []string) (mounts []input.Mount) {
	for i, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		if !given && i+1 < len(args) {
			value = args[i+1]
		}
		switch name {
		case "-v", "--volume":
			mounts = append(mounts, volumeMount(value)...)
		case "--mount":
			var outside, inside string
			for part := range strings.SplitSeq(value, ",") {
				switch key, said, _ := strings.Cut(part, "="); key {
				case "source", "src":
					outside = said
				case "target", "dst", "destination":
					inside = said
				}
			}
			mounts = append(mounts, volumeMount(outside+":"+inside)...)
		}
	}
	return mounts
}
