// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// comments are the comments of types and their fields in the sources.
type comments struct {
	dir string // the directory in which go list finds the packages
	// packages holds comments by import path, type and field; the field "" is the type itself.
	packages map[string]map[string]map[string]string
	err      error
}

// of returns the comment of a field, with names of keys in place of names of fields.
func (c *comments) of(t reflect.Type, f reflect.StructField) string {
	about := c.say(t.PkgPath(), t.Name(), f.Name)
	subject := f.Name
	if about == "" {
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if strings.HasPrefix(inner.PkgPath(), own) && inner.Kind() == reflect.Struct {
			about, subject = c.say(inner.PkgPath(), inner.Name(), ""), inner.Name()
		}
	}
	if about == "" {
		return c.besides(t, f)
	}
	return inWordsOfKeys(about, subject, t)
}

// besides refers a field without a comment to the field before it whose comment mentions it.
func (c *comments) besides(t reflect.Type, f reflect.StructField) string {
	for _, i := range f.Index {
		for i--; i >= 0; i-- {
			before := t.Field(i)
			name, _, _ := strings.Cut(before.Tag.Get("mapstructure"), ",")
			if name != "" && mentions(c.say(t.PkgPath(), t.Name(), before.Name), f.Name) {
				return "See `" + name + "`."
			}
		}
	}
	return ""
}

func mentions(text, word string) bool {
	return slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), word)
}

// say returns a comment. It reads a package's sources when it first needs them.
func (c *comments) say(pkg, typ, field string) string {
	if pkg == "" || typ == "" {
		return ""
	}
	if c.packages == nil {
		c.packages = map[string]map[string]map[string]string{}
	}
	if _, read := c.packages[pkg]; !read {
		types, err := readComments(c.dir, pkg)
		if err != nil && c.err == nil {
			c.err = err
		}
		c.packages[pkg] = types
	}
	return c.packages[pkg][typ][field]
}

func readComments(dir, pkg string) (map[string]map[string]string, error) {
	command := exec.Command("go", "list", "-f", "{{.Dir}}", pkg) //nolint:noctx,gosec // the packages are our own dependencies
	command.Dir = dir
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot find the sources of %s: %w", pkg, err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*.go"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the sources of %s: %w", pkg, err)
	}
	types := map[string]map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		for _, decl := range tree.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
				addTypes(types, d)
			}
		}
	}
	return types, nil
}

func addTypes(types map[string]map[string]string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		s, _ := spec.(*ast.TypeSpec)
		structure, ok := s.Type.(*ast.StructType)
		if !ok {
			continue
		}
		doc := s.Doc
		if doc == nil {
			doc = d.Doc
		}
		fields := map[string]string{"": firstSentence(joined(doc))}
		for _, f := range structure.Fields.List {
			about := joined(f.Doc)
			if about == "" {
				about = joined(f.Comment)
			}
			for _, name := range f.Names {
				fields[name.Name] = about
			}
			if len(f.Names) == 0 {
				fields[embedded(f.Type)] = about
			}
		}
		types[s.Name.Name] = fields
	}
}

// embedded returns the name of an embedded field, which is that of its type.
func embedded(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return embedded(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// joined returns a comment on one line. Text omits directives for tools.
func joined(group *ast.CommentGroup) string {
	if group == nil {
		return ""
	}
	return strings.Join(strings.Fields(group.Text()), " ")
}

var (
	sentence = regexp.MustCompile(`^.*?[.](?: |$)`)
	verb     = regexp.MustCompile(`^(?:is|are) `)
	// choice matches the beginning of a list of values.
	choice = regexp.MustCompile(`^[a-z0-9_.]*[a-rt-z0-9_.](,|:| or | \()`)
)

func firstSentence(text string) string {
	if first := sentence.FindString(text); first != "" {
		return strings.TrimSpace(first)
	}
	return text
}

// inWordsOfKeys turns "MaxSeries is the limit" into "The limit", and replaces names of fields by names of keys.
func inWordsOfKeys(about, subject string, t reflect.Type) string {
	rest, found := strings.CutPrefix(about, subject+" ")
	if f, ok := t.FieldByName(subject); ok && found && strings.HasPrefix(rest, "and ") {
		name, _, _ := strings.Cut(f.Tag.Get("mapstructure"), ",")
		about = "`" + name + "` " + rest
	} else if found {
		about = verb.ReplaceAllString(rest, "")
		if !choice.MatchString(about) {
			about = upper(about)
		}
	}
	if !strings.HasPrefix(t.PkgPath(), own) {
		return about
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("mapstructure"), ",")
		if name == "" || name == "-" {
			continue
		}
		if strings.EqualFold(f.Name, name) {
			about = regexp.MustCompile(`([^ .:] )`+f.Name+`\b`).ReplaceAllString(about, "$1`"+name+"`")
		}
		if humps(f.Name) > 1 {
			about = regexp.MustCompile(`(^|[. :(])`+f.Name+`\b`).ReplaceAllString(about, "$1`"+name+"`")
		}
	}
	return about
}

// humps counts the words in a Go name.
func humps(name string) (n int) {
	before := false
	for _, r := range name {
		now := unicode.IsUpper(r)
		if now && !before {
			n++
		}
		before = now
	}
	return n
}

func upper(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}
