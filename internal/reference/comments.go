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

// comments are what the sources say about types and their fields.
type comments struct {
	dir string // in which go list knows the packages
	// packages are by import path; in each are types, and in these fields, of which "" is the type itself.
	packages map[string]map[string]map[string]string
	err      error
}

// of is what the source says about a field, in the words of the configuration.
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

// besides is for a field whose comment is that of one before it.
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

// say reads the package's sources when it is first asked about.
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

// embedded is the name of a field that is its type.
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

// joined is a comment on one line. What is for tools or deprecated upstream stays as it is.
func joined(group *ast.CommentGroup) string {
	if group == nil {
		return ""
	}
	return strings.Join(strings.Fields(group.Text()), " ")
}

var (
	sentence = regexp.MustCompile(`^.*?[.](?: |$)`)
	verb     = regexp.MustCompile(`^(?:is|are) `)
	// choice is the beginning of a list of values.
	choice = regexp.MustCompile(`^[a-z0-9_.]*[a-rt-z0-9_.](,|:| or | \()`)
)

func firstSentence(text string) string {
	if first := sentence.FindString(text); first != "" {
		return strings.TrimSpace(first)
	}
	return text
}

// inWordsOfKeys makes of "MaxSeries is the limit" the sentence "The limit", and of names of fields names of keys.
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
