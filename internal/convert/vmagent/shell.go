// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/internal/convert/lazyregexp"
)

// shellValue has the variables of a command as vmagent's own. Those in single quotes, or behind a backslash, are text.
func shellValue(command string) string {
	var out strings.Builder
	begin := 0 // of what is not written yet
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

// shellOperator begins what is no argument of a command: where its output goes, another command, or a comment.
var shellOperator = lazyregexp.New(`^(?:\d*[<>]|[|;&#])`)

func untilOperator(args []string) []string {
	if end := slices.IndexFunc(args, shellOperator().MatchString); end >= 0 {
		return args[:end]
	}
	return args
}

// startsVMAgent reports whether a command has flags of vmagent, as its arguments or in the script of a shell.
func startsVMAgent(args []string) bool {
	return scriptOf(args) >= 0 || slices.ContainsFunc(args, func(arg string) bool {
		name := strings.TrimLeft(arg, "-")
		return name != arg && (strings.HasPrefix(name, "remoteWrite.") || strings.HasPrefix(name, "promscrape."))
	})
}

// shellOption has a shell run the next argument.
var shellOption = lazyregexp.New(`^-[a-z]*c$`)

// scriptOf is where in a command a shell's script is that has flags of vmagent in it, negative where there is none.
func scriptOf(args []string) int {
	for i := 1; i < len(args); i++ {
		if shellOption().MatchString(args[i-1]) && ScriptFlag().MatchString(args[i]) {
			return i
		}
	}
	return -1
}

// command takes up the flags of one, which may be a shell's.
func (f *flags) command(args []string, lines []int) {
	if i := scriptOf(args); i >= 0 {
		f.readText(args[i], lines[i])
		return
	}
	f.add(args, lines)
}
