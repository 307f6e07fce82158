// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

const (
	modulePath = "github.com/godwit-otel/godwit/"
	// each stands in a path for the elements of a list and the values of a map.
	each = "*"
)

// Key is a key of a component's configuration; :: separates the parts of its path.
type Key struct {
	Path string
	// Squashed is set if keys of another module's type are under Path, beside our own.
	Squashed bool
}

// Keys returns the keys of the type Config in the sources of a component's package. folder is relative to root, the
// repository.
func Keys(root, folder string) ([]Key, error) {
	r := reader{root: root, packages: map[string]map[string]definition{}}
	pkg, err := r.open(folder)
	if err != nil {
		return nil, err
	}
	config, ok := pkg["Config"]
	if !ok {
		return nil, fmt.Errorf("cannot find a type Config in %s", folder)
	}
	r.walk(config, "")
	return r.keys, r.err
}

// definition is a type and the imports of its file.
type definition struct {
	folder  string
	of      ast.Expr
	imports map[string]string // package paths by name
}

type reader struct {
	root     string
	packages map[string]map[string]definition // by directory and type name
	keys     []Key
	err      error
}

// open parses a package.
func (r *reader) open(folder string) (map[string]definition, error) {
	if known, ok := r.packages[folder]; ok {
		return known, nil
	}
	types := map[string]definition{}
	files, err := filepath.Glob(filepath.Join(r.root, folder, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("cannot find sources in %s: %w", folder, fs.ErrNotExist)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("cannot parse %s: %w", name, err)
		}
		imports := map[string]string{}
		for _, spec := range file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value) // it has been parsed already
			name := path[strings.LastIndexByte(path, '/')+1:]
			if spec.Name != nil {
				name = spec.Name.Name
			}
			imports[name] = path
		}
		for _, decl := range file.Decls {
			if general, ok := decl.(*ast.GenDecl); ok {
				for _, spec := range general.Specs {
					if t, ok := spec.(*ast.TypeSpec); ok {
						types[t.Name.Name] = definition{folder, t.Type, imports}
					}
				}
			}
		}
	}
	r.packages[folder] = types
	return types, nil
}

// walk adds the keys of a type under path.
func (r *reader) walk(d definition, path string) {
	switch of := d.of.(type) {
	case *ast.StarExpr:
		r.walk(d.with(of.X), path)
	case *ast.ArrayType:
		r.elements(d.with(of.Elt), path)
	case *ast.MapType:
		r.elements(d.with(of.Value), path)
	case *ast.IndexExpr: // an optional value
		r.walk(d.with(of.Index), path)
	case *ast.Ident:
		if own, ok := r.packages[d.folder][of.Name]; ok {
			r.walk(own, path)
			return
		}
		r.keys = append(r.keys, Key{Path: path})
	case *ast.SelectorExpr:
		r.foreign(d, of, path)
	case *ast.StructType:
		r.fields(d, of, path)
	default:
		r.keys = append(r.keys, Key{Path: path})
	}
}

func (d definition) with(of ast.Expr) definition { return definition{d.folder, of, d.imports} }

// elements adds the keys in a list or a map. For plain values that is only the key itself.
func (r *reader) elements(d definition, path string) {
	before := len(r.keys)
	r.walk(d, path+"::"+each)
	if len(r.keys) == before+1 && r.keys[before].Path == path+"::"+each {
		r.keys[before].Path = path
	}
}

// foreign follows a type into another package of ours, and stops at other modules.
func (r *reader) foreign(d definition, of *ast.SelectorExpr, path string) {
	from := d.imports[of.X.(*ast.Ident).Name]
	folder, ours := strings.CutPrefix(from, modulePath)
	if !ours {
		r.keys = append(r.keys, Key{Path: path})
		return
	}
	pkg, err := r.open(folder)
	if err != nil {
		r.err = err
		return
	}
	r.walk(pkg[of.Sel.Name], path)
}

func (r *reader) fields(d definition, of *ast.StructType, path string) {
	before := len(r.keys)
	for _, field := range of.Fields.List {
		if field.Tag == nil {
			continue
		}
		text, _ := strconv.Unquote(field.Tag.Value) // it has been parsed already
		name, rest, _ := strings.Cut(reflect.StructTag(text).Get("mapstructure"), ",")
		switch {
		case strings.Contains(rest, "squash"):
			first := len(r.keys)
			r.walk(d.with(field.Type), path)
			if len(r.keys) == first+1 && r.keys[first].Path == path {
				r.keys[first].Squashed = true
			}
		case name != "" && name != "-":
			r.walk(d.with(field.Type), join(path, name))
		}
	}
	if len(r.keys) == before { // it unmarshals itself
		r.keys = append(r.keys, Key{Path: path})
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "::" + name
}
