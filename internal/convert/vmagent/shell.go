// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// shellValue converts the variables of a command to vmagent's form. Those in single quotes or after a backslash are
// plain text.
func shellValue(command string) string {
	var out strings.Builder
	begin := 0 // of the text that is not written yet
	keep := func(from, to int) {
		out.WriteString(composeValue(command[begin:from]) + command[from:to])
		begin = to
	}
	quoted := false
	for i := 0; i < len(command); i++ {
		switch command[i] {
		case '\\':
			from := i
			i = min(i+1, len(command)-1)
			keep(from, i+1)
		case '"':
			quoted = !quoted
		case '\'':
			if quoted {
				continue
			}
			from := i
			if more := strings.IndexByte(command[i+1:], '\''); more >= 0 {
				i += 1 + more
				keep(from, i+1)
			}
		}
	}
	keep(len(command), len(command))
	return out.String()
}

// shellOperator matches the beginning of what ends a command's arguments: a redirection, another command, or a comment.
var shellOperator = lazyregexp.New(`^(?:\d*[<>]|[|;&#])`)

func untilOperator(args []string) []string {
	if end := slices.IndexFunc(args, shellOperator().MatchString); end >= 0 {
		return args[:end]
	}
	return args
}

// startsVMAgent reports whether a command has flags of vmagent, as arguments or in a shell script.
func startsVMAgent(args []string) bool {
	return scriptOf(args) >= 0 || slices.ContainsFunc(args, func(arg string) bool {
		name := strings.TrimLeft(arg, "-")
		return name != arg && (strings.HasPrefix(name, "remoteWrite.") || strings.HasPrefix(name, "promscrape."))
	})
}

// shellOption matches the option that makes a shell run the next argument.
var shellOption = lazyregexp.New(`^-[a-z]*c$`)

// scriptOf returns the index of a shell script with flags of vmagent in a command, -1 if there is none.
func scriptOf(args []string) int {
	for i := 1; i < len(args); i++ {
		if shellOption().MatchString(args[i-1]) && ScriptFlag().MatchString(args[i]) {
			return i
		}
	}
	return -1
}

// command reads the flags of a command, which may be a shell.
func (f *flags) command(args []string, lines []int) {
	if i := scriptOf(args); i >= 0 {
		f.readText(args[i], lines[i])
		return
	}
	f.add(args, lines)
}
