// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/client-go/rest"
)

// podText is a pod as an API sends it, with many fields that are not decoded.
//
//go:embed testdata/pod.json
var podText string

// An answerer returns a text as the response to each request.
type answerer func() io.Reader

func (a answerer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(a())}, nil
}

func clientOf(tb testing.TB, a answerer) *Clientset {
	tb.Helper()
	c, err := NewForConfig(&rest.Config{Host: "http://api.example.com", Transport: a})
	require.NoError(tb, err)
	return c
}

func podList(n int) string {
	return `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[` + strings.Repeat(podText+",", n-1) + podText + `]}`
}

func podEvent() string { return `{"type":"MODIFIED","object":` + podText + "}\n" }

// Decoding has the same result as encoding/json for the whole text, wherever the stream is divided.
func TestDecodesWhatIsThere(t *testing.T) {
	for name, text := range map[string]string{
		"a pod":      podText,
		"spaces":     strings.NewReplacer(`,"`, " ,\n\t\"", `":`, `" : `, `[`, "[ ", `{}`, "{ }").Replace(podText),
		"escapes":    `{"metadata":{"na\u006de":"n","name":"a\\","x\\":"}]\"","labels":{"a\"":"\\\\\"","b":"\ud83d\ude00"},"annotations":{"":""}},"x":"\\"}`,
		"nothing":    `{}`,
		"no fields":  `{"a":[],"b":{},"c":[[{}]],"d":-1.5e9,"e":null,"f":true}`,
		"nulls":      `{"metadata":null,"spec":{"containers":null},"status":{"conditions":[null,{"type":null}]}}`,
		"twice":      `{"spec":{"nodeName":"a"},"spec":{"nodeName":"b","containers":[]}}`,
		"last field": `{"spec":{"nodeName":"a","x":1}}`,
	} {
		var want corev1.Pod
		require.NoError(t, json.Unmarshal([]byte(text), &want), name)
		for cut, reader := range map[string]func(io.Reader) io.Reader{"": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader} {
			c := clientOf(t, func() io.Reader {
				return reader(strings.NewReader(`{"x":[` + text + `],"type":"ADDED","object":` + text + `,"y":` + text + `}{"object":` + text + `,"type":"ADDED"}`))
			})
			w, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for range 2 {
				event, err := w.Next()
				require.NoError(t, err, "%s %s", name, cut)
				assert.Equal(t, &want, event.Object, "%s %s", name, cut)
			}
			_, err = w.Next()
			require.ErrorIs(t, err, io.EOF)
			w.Stop()
			c = clientOf(t, func() io.Reader { return reader(strings.NewReader(`{"items":[` + text + "," + text + `]}`)) })
			list, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err, "%s %s", name, cut)
			assert.Equal(t, []metav1.Object{&want, &want}, list.Items, "%s %s", name, cut)
		}
	}
}

func TestEventsThatAreNone(t *testing.T) {
	next := func(text string) error {
		w, err := clientOf(t, func() io.Reader { return strings.NewReader(text) }).CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer w.Stop()
		_, err = w.Next()
		return err
	}
	whole := strings.TrimSpace(podEvent())
	for n := 1; n < len(whole); n++ {
		require.ErrorIs(t, next(whole[:n]), io.ErrUnexpectedEOF, whole[:n])
	}
	for _, text := range []string{
		`[]`, `null`, `"a"`, `{]`, `{,}`, `{"type" "ADDED"}`, `{"type":"ADDED" "object":{}}`, `{"type":1}`, `{1:2}`, `{"type":"ADDED","object":{"metadata":1}}`,
		`{"type":"ADDED","object":{"metadata":{"name":nil}}}`, `{"type":"ADDED","object":{"metadata":{},}}`, `{"type":"ADDED","object":{"spec":{"containers":[,]}}}`,
		`{"type":"ADDED","object":{"metadata":}}`, `{"type":"ADDED"}`,
	} {
		err := next(text)
		require.Error(t, err, text)
		require.NotErrorIs(t, err, io.EOF, text)
	}
}

func BenchmarkWatch(b *testing.B) {
	text := podEvent()
	const events = 1000
	c := clientOf(b, func() io.Reader { return strings.NewReader(strings.Repeat(text, events)) })
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	w, err := c.CoreV1().Pods("").Watch(b.Context(), metav1.ListOptions{})
	require.NoError(b, err)
	for n := 0; b.Loop(); n++ {
		event, err := w.Next()
		if errors.Is(err, io.EOF) {
			w, err = c.CoreV1().Pods("").Watch(b.Context(), metav1.ListOptions{})
			require.NoError(b, err)
			event, err = w.Next()
		}
		if err != nil || event.Object.GetResourceVersion() != "123456789" {
			b.Fatal(event, err)
		}
	}
}

func BenchmarkList(b *testing.B) {
	text := podList(500)
	c := clientOf(b, func() io.Reader { return strings.NewReader(text) })
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		list, err := c.CoreV1().Pods("").List(b.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 500 {
			b.Fatal(err)
		}
	}
}
