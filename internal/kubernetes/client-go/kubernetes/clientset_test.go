// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/client-go/rest"
)

// client returns a client of a handler that acts as the API.
func client(t *testing.T, path string, h http.HandlerFunc) *Clientset {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := NewForConfig(&rest.Config{Host: server.URL + path, UserAgent: "test", Transport: http.DefaultTransport})
	require.NoError(t, err)
	return c
}

func TestPathsOfCollections(t *testing.T) {
	var asked *http.Request
	c := client(t, "/prefix/", func(w http.ResponseWriter, r *http.Request) {
		asked = r
		fmt.Fprint(w, `{"metadata":{"resourceVersion":"7"},"items":null}`)
	})
	for want, collection := range map[string]rest.Collection{
		"/api/v1/namespaces":                                c.CoreV1().Namespaces(),
		"/api/v1/nodes":                                     c.CoreV1().Nodes(),
		"/api/v1/pods":                                      c.CoreV1().Pods(""),
		"/api/v1/namespaces/shop/pods":                      c.CoreV1().Pods("shop"),
		"/api/v1/namespaces/shop/services":                  c.CoreV1().Services("shop"),
		"/api/v1/namespaces/shop/endpoints":                 c.CoreV1().Endpoints("shop"),
		"/apis/apps/v1/replicasets":                         c.AppsV1().ReplicaSets(""),
		"/apis/batch/v1/namespaces/shop/jobs":               c.BatchV1().Jobs("shop"),
		"/apis/discovery.k8s.io/v1/endpointslices":          c.DiscoveryV1().EndpointSlices(""),
		"/apis/networking.k8s.io/v1/ingresses":              c.NetworkingV1().Ingresses(""),
		"/api/v1/namespaces/..%2Fnodes/pods":                c.CoreV1().Pods("../nodes"),
		"/apis/networking.k8s.io/v1/namespaces/a/ingresses": c.NetworkingV1().Ingresses("a"),
	} {
		list, err := collection.List(t.Context(), metav1.ListOptions{LabelSelector: "a in (b)", FieldSelector: "c=d", ResourceVersion: "0"})
		require.NoError(t, err)
		assert.Equal(t, "/prefix"+want, asked.URL.EscapedPath())
		assert.Equal(t, url.Values{"labelSelector": {"a in (b)"}, "fieldSelector": {"c=d"}, "resourceVersion": {"0"}, "limit": {"500"}}, asked.URL.Query())
		assert.Equal(t, "test", asked.UserAgent())
		assert.Equal(t, "application/json", asked.Header.Get("Accept"))
		assert.Equal(t, &rest.List{ResourceVersion: "7"}, list)
	}
}

func TestListReadsAllPages(t *testing.T) {
	var queries []url.Values
	c := client(t, "", func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.Query())
		if r.URL.Query().Get("continue") == "" {
			fmt.Fprint(w, `{"kind":"PodList","metadata":{"resourceVersion":"5","continue":"more"},"items":[{"metadata":{"name":"a","managedFields":[{}]},"spec":{"nodeName":"n"}}]}`)
			return
		}
		fmt.Fprint(w, `{"items":[{"metadata":{"name":"b"}},{"metadata":{"name":"c"}}],"metadata":{"resourceVersion":"6"}}`)
	})
	list, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	require.NoError(t, err)
	var names []string
	for _, object := range list.Items {
		names = append(names, object.GetName())
	}
	assert.Equal(t, []string{"a", "b", "c"}, names)
	assert.Equal(t, "n", list.Items[0].(*corev1.Pod).Spec.NodeName)
	assert.Equal(t, "6", list.ResourceVersion)
	assert.Equal(t, []url.Values{{"limit": {"500"}, "resourceVersion": {"0"}}, {"limit": {"500"}, "continue": {"more"}}}, queries)
}

// If the pages of a list take longer than the API remembers its version, the list is requested as a whole.
func TestListThatIsForgotten(t *testing.T) {
	var queries []url.Values
	c := client(t, "", func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.Query())
		switch {
		case r.URL.Query().Has("continue"):
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, `{"kind":"Status","message":"the provided continue parameter is too old","reason":"Expired","code":410}`)
		case r.URL.Query().Has("limit"):
			fmt.Fprint(w, `{"metadata":{"resourceVersion":"5","continue":"more"},"items":[{"metadata":{"name":"a"}}]}`)
		default:
			fmt.Fprint(w, `{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`)
		}
	})
	list, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: "x=y"})
	require.NoError(t, err)
	assert.Len(t, list.Items, 2)
	assert.Equal(t, "9", list.ResourceVersion)
	assert.Equal(t, []url.Values{
		{"limit": {"500"}, "labelSelector": {"x=y"}}, {"limit": {"500"}, "labelSelector": {"x=y"}, "continue": {"more"}}, {"labelSelector": {"x=y"}},
	}, queries)
}

// A truncated list is an error.
func TestListOfWhatIsNoList(t *testing.T) {
	whole := `{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a"}}]}`
	for n := range len(whole) {
		c := client(t, "", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, whole[:n]) })
		_, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.Error(t, err, whole[:n])
	}
	for _, text := range []string{`[]`, `{"items":{}}`, `{"items":[1]}`, `{"metadata":1}`, `null`} {
		c := client(t, "", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
		_, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.Error(t, err, text)
	}
}

func TestRefusals(t *testing.T) {
	for body, want := range map[string]string{
		`{"kind":"Status","message":"pods is forbidden","reason":"Forbidden","code":403}`: "pods is forbidden",
		"a proxy's page": "the API answers 403 Forbidden to /api/v1/pods: a proxy's page",
		"":               "the API answers 403 Forbidden to /api/v1/pods:",
	} {
		c := client(t, "", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, http.StatusForbidden) })
		_, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.EqualError(t, err, want)
		_, err = c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
		require.EqualError(t, err, want)
		var status *rest.StatusError
		require.ErrorAs(t, err, &status)
		assert.False(t, status.IsExpired())
	}
}

func TestWatch(t *testing.T) {
	var query url.Values
	c := client(t, "", func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.Query()
		fmt.Fprint(w, `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5","labels":{"x":"y"}}}}`+"\n"+
			`{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"6"}}}`+"\n"+
			`{"object":{"metadata":{"name":"a","resourceVersion":"7"}},"type":"DELETED"}`+
			`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}`+
			`{"type":"ERROR","object":{"kind":"Status","message":"too old","reason":"Expired","code":410}}`+
			`{"type":"LATER","object":{}}`)
	})
	w, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "4"})
	require.NoError(t, err)
	defer w.Stop()
	var seen []string
	for range 4 {
		e, err := w.Next()
		require.NoError(t, err)
		seen = append(seen, fmt.Sprintf("%s %s %s %v", e.Type, e.Object.GetName(), e.Object.GetResourceVersion(), e.Object.(*corev1.Pod).Labels))
	}
	assert.Equal(t, []string{"ADDED a 5 map[x:y]", "MODIFIED a 6 map[]", "DELETED a 7 map[]", "BOOKMARK  8 map[]"}, seen)
	_, err = w.Next()
	var status *rest.StatusError
	require.ErrorAs(t, err, &status)
	assert.True(t, status.IsExpired())
	_, err = w.Next()
	require.ErrorContains(t, err, "LATER")
	_, err = w.Next()
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, "true", query.Get("watch"))
	assert.Equal(t, "true", query.Get("allowWatchBookmarks"))
	assert.Equal(t, "4", query.Get("resourceVersion"))
	assert.Regexp(t, "^[3-5]..$", query.Get("timeoutSeconds"))
}

// Neither Stop nor the end of the context waits for an event.
func TestStop(t *testing.T) {
	open := make(chan struct{})
	c := client(t, "", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		close(open)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	w, err := c.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	<-open
	cancel(errors.New("stopped"))
	_, err = w.Next()
	require.Error(t, err)
}
