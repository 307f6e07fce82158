// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-otel/godwit/e2e/serve"
)

// kinds are the collections of the small API, which exist even when they are empty.
var kinds = map[string]string{
	"pods": "Pod", "nodes": "Node", "services": "Service", "endpoints": "Endpoints", "endpointslices": "EndpointSlice",
	"ingresses": "Ingress", "namespaces": "Namespace", "replicasets": "ReplicaSet", "jobs": "Job",
	"deployments": "Deployment", "clusterroles": "ClusterRole", "clusterrolebindings": "ClusterRoleBinding",
}

// A small API keeps its objects in memory.
type small struct {
	mu      sync.Mutex
	version int
	changed chan struct{}     // closed by the next change
	objects map[string]Object // by path
	events  []event
}

type event struct {
	version int
	what    string
	path    string
	object  Object
}

func startSmall(t testing.TB) *Cluster {
	t.Helper()
	s := &small{changed: make(chan struct{}), objects: map[string]Object{}}
	l := serve.Listen(t, "127.0.0.1:0")
	serve.HTTP(t, l, s)
	return &Cluster{URL: "http://" + l.Addr().String(), Token: adminToken, client: newClient(t)}
}

// A place is a parsed path.
type place struct {
	prefix    string // of a group's version
	namespace string
	resource  string
	name      string
}

func placeOf(path string) (p place) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	head := 2 // /api/v1
	if parts[0] == "apis" {
		head = 3 // /apis/group/version
	}
	if len(parts) <= head {
		return place{}
	}
	p.prefix = "/" + strings.Join(parts[:head], "/")
	rest := parts[head:]
	if rest[0] == "namespaces" && len(rest) > 2 {
		p.namespace, rest = rest[1], rest[2:]
	}
	p.resource = rest[0]
	if len(rest) > 1 {
		p.name = rest[1]
	}
	return p
}

func (s *small) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := placeOf(r.URL.Path)
	switch kind := kinds[p.resource]; {
	case kind == "":
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, http.StatusNotFound)
	case r.Method == http.MethodGet && p.name == "" && r.URL.Query().Get("watch") != "":
		s.watch(w, r, p)
	case r.Method == http.MethodGet && p.name == "":
		s.list(w, r, p, kind)
	case r.Method != http.MethodGet:
		s.change(w, r, p)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(w, s.objects[r.URL.Path])
	}
}

func answer(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what) //nolint:errchkjson // who does not listen learns nothing
}

// change creates, patches or deletes an object.
func (s *small) change(w http.ResponseWriter, r *http.Request, p place) {
	var body Object
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil && r.Method != http.MethodDelete {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path := strings.TrimSuffix(r.URL.Path, "/status")
	if p.name == "" {
		path += "/" + body.Name()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.objects[path]
	if (old == nil) != (r.Method == http.MethodPost) {
		http.Error(w, "it is there, or is not", http.StatusConflict)
		return
	}
	s.version++
	what := map[string]string{http.MethodPost: "ADDED", http.MethodPatch: "MODIFIED", http.MethodDelete: "DELETED"}[r.Method]
	object := old
	if r.Method != http.MethodDelete {
		object = merge(old, body)
		metadata, _ := object["metadata"].(map[string]any)
		metadata = maps.Clone(metadata)
		metadata["resourceVersion"], metadata["uid"] = strconv.Itoa(s.version), path
		object["metadata"] = metadata
	}
	s.objects[path] = object
	if r.Method == http.MethodDelete {
		delete(s.objects, path)
	}
	s.events = append(s.events, event{s.version, what, path, object})
	close(s.changed)
	s.changed = make(chan struct{})
	answer(w, object)
}

// merge returns an object with the fields merged into it; the original is unchanged.
func merge(old, fields map[string]any) map[string]any {
	out := maps.Clone(old)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range fields {
		was, _ := out[key].(map[string]any)
		if now, ok := value.(map[string]any); ok {
			value = merge(was, now)
		}
		out[key] = value
	}
	return out
}

// picks reports whether a request selects an object.
func picks(r *http.Request, p place, path string, o Object) bool {
	at := placeOf(path)
	if at.prefix != p.prefix || at.resource != p.resource || p.namespace != "" && at.namespace != p.namespace {
		return false
	}
	for selector := range strings.SplitSeq(r.URL.Query().Get("fieldSelector"), ",") {
		if field, want, ok := strings.Cut(selector, "="); ok && o.text(strings.Split(field, ".")...) != want {
			return false
		}
	}
	for selector := range strings.SplitSeq(r.URL.Query().Get("labelSelector"), ",") {
		if label, want, ok := strings.Cut(selector, "="); ok && o.text("metadata", "labels", label) != strings.TrimPrefix(want, "=") {
			return false
		}
	}
	return true
}

func (s *small) list(w http.ResponseWriter, r *http.Request, p place, kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []Object{}
	for _, path := range slices.Sorted(maps.Keys(s.objects)) {
		if picks(r, p, path, s.objects[path]) {
			items = append(items, s.objects[path])
		}
	}
	answer(w, Object{
		"kind": kind + "List", "apiVersion": versionOf(p.prefix),
		"metadata": Object{"resourceVersion": strconv.Itoa(s.version)}, "items": items,
	})
}

func versionOf(prefix string) string {
	return strings.TrimPrefix(strings.TrimPrefix(prefix, "/apis/"), "/api/")
}

// watch sends existing objects, if the request asks for them, and then changes.
func (s *small) watch(w http.ResponseWriter, r *http.Request, p place) {
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	flush := http.NewResponseController(w)
	seen, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	s.mu.Lock()
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for path, o := range s.objects {
			if picks(r, p, path, o) {
				_ = out.Encode(Object{"type": "ADDED", "object": o}) //nolint:errchkjson // a watcher that is gone learns nothing
			}
		}
		seen = s.version
		_ = out.Encode(Object{"type": "BOOKMARK", "object": Object{ //nolint:errchkjson // as above
			"kind": kinds[p.resource], "apiVersion": versionOf(p.prefix),
			"metadata": Object{"resourceVersion": fmt.Sprint(seen), "annotations": Object{"k8s.io/initial-events-end": "true"}},
		}})
	}
	s.mu.Unlock()
	for {
		s.mu.Lock()
		first, _ := slices.BinarySearchFunc(s.events, seen+1, func(e event, version int) int { return e.version - version })
		news, changed := s.events[first:], s.changed
		s.mu.Unlock()
		for _, e := range news {
			seen = e.version
			if picks(r, p, e.path, e.object) {
				_ = out.Encode(Object{"type": e.what, "object": e.object}) //nolint:errchkjson // as above
			}
		}
		if flush.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
