// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// readAhead is how much is read at once.
const readAhead = 8 << 10

// A reader reads JSON from a stream, and keeps the parts that a shape has: most of an object is never decoded. What it
// skips must have matching brackets, and is not checked otherwise. Whoever decodes the kept text checks that.
type reader struct {
	from io.Reader
	room []byte // room[at:end] is not read yet
	at   int
	end  int

	kept    []byte // the kept text
	keeping bool   // room[mark:at] is to be kept as well
	mark    int
}

func newReader(from io.Reader) *reader {
	return &reader{from: from, room: make([]byte, readAhead)}
}

// A shape is the fields of a type by their names in lower case, or the shape of its elements. A nil one keeps
// everything.
type shape struct {
	fields  map[string]*shape
	element *shape
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// shapeOf returns the shape of a type, which must not be recursive.
func shapeOf(t reflect.Type) *shape {
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem())
	case reflect.Slice:
		return &shape{element: shapeOf(t.Elem())}
	case reflect.Struct:
		return shapeOfStruct(t)
	}
	return nil
}

func shapeOfStruct(t reflect.Type) *shape {
	s := &shape{fields: make(map[string]*shape, t.NumField())}
	for n := range t.NumField() {
		field := t.Field(n)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		of := shapeOf(field.Type)
		switch {
		case name != "":
			s.add(name, of)
		case !field.Anonymous:
			s.add(field.Name, of)
		case of == nil:
			return nil // its fields are not known
		default:
			for name, of := range of.fields { // they belong to the struct
				s.add(name, of)
			}
		}
	}
	return s
}

// add adds a field. If two names differ in case only, everything is kept for them.
func (s *shape) add(name string, of *shape) {
	name = strings.ToLower(name)
	if _, twice := s.fields[name]; twice {
		of = nil
	}
	s.fields[name] = of
}

// field reports whether an object may have a field with a name, and returns its shape. The decoder ignores case, and
// decodes escapes: names that need a closer look are kept for it.
func (s *shape) field(name []byte) (of *shape, known bool) {
	var room [32]byte
	folded := room[:0]
	for _, c := range name {
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case c == '\\' || c >= utf8.RuneSelf:
			return nil, true
		}
		folded = append(folded, c)
	}
	of, known = s.fields[string(folded)]
	return of, known
}

// fill reads more input, after all of room has been read.
func (r *reader) fill() error {
	if r.keeping {
		r.kept = append(r.kept, r.room[r.mark:r.at]...)
	}
	r.at, r.end, r.mark = 0, 0, 0
	for range 100 {
		n, err := r.from.Read(r.room)
		if n > 0 {
			r.end = n
			return nil // an error will be returned again
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// peek returns the next byte that is not white space, without reading it.
func (r *reader) peek() (byte, error) {
	for {
		for ; r.at < r.end; r.at++ {
			switch c := r.room[r.at]; c {
			case ' ', '\t', '\r', '\n':
			default:
				return c, nil
			}
		}
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
}

// expect reads the byte want.
func (r *reader) expect(want byte) error {
	got, err := r.peek()
	if err != nil {
		return unexpected(err)
	}
	if got != want {
		return fmt.Errorf("expected %q, found %q", want, got)
	}
	r.at++
	return nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// elements reads the elements between brackets, each by a function.
func (r *reader) elements(begin, end byte, each func() error) error {
	if err := r.expect(begin); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := r.peek()
		switch {
		case err != nil:
			return unexpected(err)
		case c == end:
			r.at++
			return nil
		case first:
		default:
			if err := r.expect(','); err != nil {
				return err
			}
		}
		if err := each(); err != nil {
			return err
		}
	}
}

// object reads an object, each value by a function. The name is in the kept text from a position on.
func (r *reader) object(each func(from int) error) error {
	return r.elements('{', '}', func() error {
		from := len(r.kept)
		if c, err := r.peek(); err == nil && c != '"' {
			return fmt.Errorf("expected a name, found %q", c)
		}
		if err := r.pass(true); err != nil {
			return err
		}
		if err := r.expect(':'); err != nil {
			return err
		}
		return each(from)
	})
}

// name returns the name that was kept from a position on.
func (r *reader) name(from int) []byte { return r.kept[from+1 : len(r.kept)-1] }

// keep reads a value, and keeps what a shape has.
func (r *reader) keep(s *shape) error {
	c, err := r.peek()
	if err != nil {
		return unexpected(err)
	}
	switch {
	case s != nil && c == '{' && s.fields != nil:
		return r.keepObject(s)
	case s != nil && c == '[' && s.element != nil:
		return r.keepArray(s)
	}
	return r.pass(true)
}

func (r *reader) keepObject(s *shape) error {
	r.kept = append(r.kept, '{')
	some := false
	err := r.object(func(from int) error {
		of, known := s.field(r.name(from))
		if !known {
			r.kept = r.kept[:from]
			return r.pass(false)
		}
		some = true
		r.kept = append(r.kept, ':')
		if err := r.keep(of); err != nil {
			return err
		}
		r.kept = append(r.kept, ',')
		return nil
	})
	r.closing(some, '}')
	return err
}

func (r *reader) keepArray(s *shape) error {
	r.kept = append(r.kept, '[')
	some := false
	err := r.elements('[', ']', func() error {
		some = true
		if err := r.keep(s.element); err != nil {
			return err
		}
		r.kept = append(r.kept, ',')
		return nil
	})
	r.closing(some, ']')
	return err
}

// closing appends a bracket to the kept text, in place of the last comma.
func (r *reader) closing(some bool, bracket byte) {
	if some {
		r.kept = r.kept[:len(r.kept)-1]
	}
	r.kept = append(r.kept, bracket)
}

// pass reads a value, and keeps all of it or nothing.
func (r *reader) pass(keep bool) error {
	c, err := r.peek()
	if err != nil {
		return unexpected(err)
	}
	r.mark, r.keeping = r.at, keep
	switch c {
	case '"':
		r.at++
		err = r.text()
	case '{', '[':
		err = r.nested()
	case '}', ']', ',', ':':
		err = fmt.Errorf("expected a value, found %q", c)
	default:
		err = r.word()
	}
	if r.keeping {
		r.kept = append(r.kept, r.room[r.mark:r.at]...)
		r.keeping = false
	}
	return unexpected(err)
}

// text reads until a string ends.
func (r *reader) text() error {
	for {
		room, at := r.room[:r.end], r.at
		for at < len(room) && room[at] != '"' && room[at] != '\\' {
			at++
		}
		r.at = at
		if at == len(room) {
			if err := r.fill(); err != nil {
				return err
			}
			continue
		}
		r.at++
		if room[at] == '"' {
			return nil
		}
		if r.at == r.end {
			if err := r.fill(); err != nil {
				return err
			}
		}
		r.at++ // the escaped character
	}
}

// nested reads until all brackets are closed.
func (r *reader) nested() error {
	for depth := 0; ; {
		room, at := r.room[:r.end], r.at
		for at < len(room) {
			c := room[at]
			at++
			switch c {
			case '"':
				r.at = at
				if err := r.text(); err != nil {
					return err
				}
				room, at = r.room[:r.end], r.at
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					r.at = at
					return nil
				}
			}
		}
		r.at = at
		if err := r.fill(); err != nil {
			return err
		}
	}
}

// word reads a number, true, false or null.
func (r *reader) word() error {
	for {
		for ; r.at < r.end; r.at++ {
			switch r.room[r.at] {
			case '}', ']', ',', ':', ' ', '\t', '\r', '\n', '"', '{', '[':
				return nil
			}
		}
		if err := r.fill(); err != nil {
			return err
		}
	}
}
