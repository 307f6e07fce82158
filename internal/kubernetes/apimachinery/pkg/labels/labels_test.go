// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package labels

import (
	"strings"
	"testing"
)

// Which selectors are valid was determined with the original.
func TestParse(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, valid := range []string{
		"", " ", "a", "!a", "a,b", "a=b", "a==b", "a!=b", "a=", "a=,b", "a in (b)", "a in (b,c)", "a in (b,,c)", "a in ()", "a in (,)", "a notin (b)",
		"a>1", "a<1,b", " a = b , !c ", "in in (in)", "notin=in", "!in", "example.com/a=b", "a.b_c-d=E.f_g-h", long + "=" + long, "a,a", "a in(b)", "a\t=\nb",
	} {
		if got, err := Parse(valid); err != nil || string(got) != valid {
			t.Errorf("%q: %v", valid, err)
		}
	}
	for _, invalid := range []string{
		",", "a,", ",a", "a,,b", "!", "!!a", "=b", "a=b=c", "a b", "a in b", "a in (b", "a in (b c)", "a in", "a>b", "a>", "a<-1", "a=>1", "a (b)", "(a)", "a)", "a in ((b))",
		"-a", "a-=b", "a=-b", "/a", "a/", "a/b/c", "EXAMPLE.com/a", "a=b/c", long + "a", "a=" + long + "a", "a=ü", "a===b", "a ! b", "!a=b", "!a in (b)",
	} {
		if _, err := Parse(invalid); err == nil {
			t.Errorf("%q is no selector", invalid)
		}
	}
}
