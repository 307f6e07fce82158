// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1api "k8s.io/api/apps/v1"
	batchv1api "k8s.io/api/batch/v1"
	corev1api "k8s.io/api/core/v1"
	discoveryv1api "k8s.io/api/discovery/v1"
	networkingv1api "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/client-go/rest"
)

// A scribe writes random JSON for a type: with unknown fields, duplicates, names in other cases and with escapes,
// nulls, and values of other kinds.
type scribe struct {
	*rand.Rand
	strings.Builder

	wrong bool // values may be of another kind
}

func (s *scribe) one(in int) bool { return s.IntN(in) == 0 }

func (s *scribe) space() {
	for s.one(8) {
		s.WriteByte(" \t\r\n"[s.IntN(4)])
	}
}

func (s *scribe) mark(c byte) {
	s.space()
	s.WriteByte(c)
	s.space()
}

// list writes items between brackets.
func (s *scribe) list(begin, end byte, items []func()) {
	s.mark(begin)
	for n, item := range items {
		if n > 0 {
			s.mark(',')
		}
		item()
	}
	s.mark(end)
}

var pieces = []string{"a", "Z", "0", "-", "/", "é", "\u212a", "😀", `\"`, `\\`, `\/`, `\n`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, "{", "}", "[", "]", ",", ":", "<", "\xff"}

func (s *scribe) text() {
	s.WriteByte('"')
	for range s.IntN(6) {
		s.WriteString(pieces[s.IntN(len(pieces))])
	}
	s.WriteByte('"')
}

// name writes a field's name in a form that encoding/json accepts.
func (s *scribe) name(of string) {
	at := s.IntN(len(of))
	switch s.IntN(10) {
	case 0:
		of = of[:at] + strings.ToUpper(of[at:])
	case 1:
		of = strings.ToLower(of)
	case 2:
		of = of[:at] + fmt.Sprintf(`\u%04x`, of[at]) + of[at+1:]
	case 3:
		of = strings.NewReplacer("s", "\u017f", "k", "\u212a").Replace(of)
	case 4:
		of += "s"
	}
	s.WriteString(`"` + of + `"`)
}

// anything writes a value of any kind.
func (s *scribe) anything(depth int) {
	kinds := 7
	if depth > 3 {
		kinds = 5
	}
	var items []func()
	switch kind := s.IntN(kinds); kind {
	case 0:
		s.text()
	case 1:
		s.WriteString([]string{"0", "-1.5e9", "1E+400", "12345678901234567890"}[s.IntN(4)])
	case 2, 3, 4:
		s.WriteString([]string{"null", "true", "false"}[kind-2])
	case 5:
		for range s.IntN(4) {
			items = append(items, func() { s.anything(depth + 1) })
		}
		s.list('[', ']', items)
	case 6:
		for range s.IntN(4) {
			items = append(items, func() {
				s.text()
				s.mark(':')
				s.anything(depth + 1)
			})
		}
		s.list('{', '}', items)
	}
}

func (s *scribe) value(t reflect.Type) {
	switch {
	case s.one(16):
		s.WriteString("null")
		return
	case s.wrong && s.one(16):
		s.anything(0)
		return
	}
	var items []func()
	switch t.Kind() {
	case reflect.Pointer:
		s.value(t.Elem())
	case reflect.Struct:
		s.object(t)
	case reflect.Slice:
		for range s.IntN(4) {
			items = append(items, func() { s.value(t.Elem()) })
		}
		s.list('[', ']', items)
	case reflect.Map:
		for range s.IntN(4) {
			items = append(items, func() {
				s.text()
				s.mark(':')
				s.value(t.Elem())
			})
		}
		s.list('{', '}', items)
	case reflect.String:
		s.text()
	case reflect.Bool:
		s.WriteString([]string{"true", "false"}[s.IntN(2)])
	case reflect.Int32:
		fmt.Fprint(s, s.Int32())
	default:
		panic(t)
	}
}

// object writes fields of a struct, including those of embedded ones, whether these are inlined in JSON or not.
func (s *scribe) object(t reflect.Type) {
	var items []func()
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			name = field.Name
		}
		for range []int{0, 1, 1, 1, 1, 1, 1, 2}[s.IntN(8)] {
			items = append(items, func() {
				s.name(name)
				s.mark(':')
				s.value(field.Type)
			})
		}
	}
	for range s.IntN(3) {
		items = append(items, func() {
			s.text()
			s.mark(':')
			s.anything(0)
		})
	}
	s.Shuffle(len(items), func(a, b int) { items[a], items[b] = items[b], items[a] })
	s.list('{', '}', items)
}

// All kinds are decoded like encoding/json does, whatever unused fields they have, and wherever the stream is divided.
func TestDecodesAllKindsAsEncodingJSONDoes(t *testing.T) {
	for name, kind := range map[string]struct {
		collection func(c *Clientset) rest.Collection
		object     metav1.Object
	}{
		"namespace":     {func(c *Clientset) rest.Collection { return c.CoreV1().Namespaces() }, new(corev1api.Namespace)},
		"node":          {func(c *Clientset) rest.Collection { return c.CoreV1().Nodes() }, new(corev1api.Node)},
		"pod":           {func(c *Clientset) rest.Collection { return c.CoreV1().Pods("") }, new(corev1api.Pod)},
		"service":       {func(c *Clientset) rest.Collection { return c.CoreV1().Services("") }, new(corev1api.Service)},
		"endpoints":     {func(c *Clientset) rest.Collection { return c.CoreV1().Endpoints("") }, new(corev1api.Endpoints)},
		"replica set":   {func(c *Clientset) rest.Collection { return c.AppsV1().ReplicaSets("") }, new(appsv1api.ReplicaSet)},
		"job":           {func(c *Clientset) rest.Collection { return c.BatchV1().Jobs("") }, new(batchv1api.Job)},
		"endpointslice": {func(c *Clientset) rest.Collection { return c.DiscoveryV1().EndpointSlices("") }, new(discoveryv1api.EndpointSlice)},
		"ingress":       {func(c *Clientset) rest.Collection { return c.NetworkingV1().Ingresses("") }, new(networkingv1api.Ingress)},
	} {
		t.Run(name, func(t *testing.T) {
			const rounds = 200
			decoded := 0
			for seed := range uint64(rounds) {
				s := &scribe{Rand: rand.New(rand.NewPCG(seed, 23)), wrong: seed%8 == 0}
				s.object(reflect.TypeOf(kind.object).Elem())
				text := s.String()
				want := reflect.New(reflect.TypeOf(kind.object).Elem()).Interface()
				failure := json.Unmarshal([]byte(text), want)

				cut := []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader}[seed%3]
				events := []string{`{"type":"ADDED","object":` + text + `}`, `{"object":` + text + `,"type":"ADDED"}`}[seed%2]
				w, err := kind.collection(clientOf(t, func() io.Reader { return cut(strings.NewReader(events)) })).Watch(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				event, watched := w.Next()
				w.Stop()
				list, listed := kind.collection(clientOf(t, func() io.Reader {
					return cut(strings.NewReader(`{"items":[` + text + `,` + text + `]}`))
				})).List(t.Context(), metav1.ListOptions{})
				if failure != nil {
					require.Error(t, watched, text)
					require.Error(t, listed, text)
					continue
				}
				decoded++
				require.NoError(t, watched, text)
				require.Equal(t, want, event.Object, text)
				require.NoError(t, listed, text)
				require.Equal(t, []metav1.Object{want.(metav1.Object), want.(metav1.Object)}, list.Items, text)
			}
			assert.Greater(t, decoded, rounds*7/8)
		})
	}
}

// Valid JSON is decoded like encoding/json does. Invalid JSON may be accepted where it is skipped, but decoding ends.
func FuzzDecodesAsEncodingJSONDoes(f *testing.F) {
	f.Add(podText)
	f.Add(`{"spec":{"Node\u004eame":"a"},"status":[],"x":{"y":["}",{}]},"metadata":null}`)
	f.Add(`{"metadata":{"labels":{"a":1}}}`)
	f.Add(`[{"a":`)
	f.Fuzz(func(t *testing.T, text string) {
		c := clientOf(t, func() io.Reader { return strings.NewReader(`{"type":"ADDED","object":` + text + `}`) })
		w, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer w.Stop()
		event, err := w.Next()
		if !json.Valid([]byte(text)) {
			return
		}
		var want corev1api.Pod
		if failure := json.Unmarshal([]byte(text), &want); failure != nil {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, &want, event.Object)
	})
}
