// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster is a Kubernetes API without nodes, for tests of discovery, watches and leader election.
//
// If kube-apiserver and etcd are installed, it runs these two. Otherwise it is a small API of its own, which stores,
// lists and watches objects, but validates nothing and requires no permissions.
package cluster

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Cluster is a Kubernetes API that runs until the end of its test.
type Cluster struct {
	// URL is the address of the API, Token one with all permissions.
	URL, Token string
	// Real is set for kube-apiserver, as opposed to the small API.
	Real bool

	client *http.Client
}

// Start runs the real API if that is installed, otherwise the small one.
func Start(t testing.TB) *Cluster {
	t.Helper()
	if c := startReal(t); c != nil {
		return c
	}
	return startSmall(t)
}

// Need runs the real API, and skips the test if that is not installed.
func Need(t testing.TB) *Cluster {
	t.Helper()
	c := startReal(t)
	if c == nil {
		t.Skipf("no Kubernetes to test with: run `make e2e-kubernetes`, or set %s and %s to the binaries", apiserverVariable, etcdVariable)
	}
	return c
}

// newClient trusts any certificate: the server makes its own.
func newClient(t testing.TB) *http.Client {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 64}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// Object is an object of the API, decoded from JSON.
type Object map[string]any

// Objects reads the documents of a YAML file.
func Objects(t testing.TB, text string) (all []Object) {
	t.Helper()
	documents := yaml.NewDecoder(strings.NewReader(text))
	for {
		var o Object
		err := documents.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if len(o) > 0 {
			all = append(all, o)
		}
	}
}

func (o Object) text(keys ...string) string {
	var at any = map[string]any(o)
	for _, key := range keys {
		m, _ := at.(map[string]any)
		if o, ok := at.(Object); ok {
			m = o
		}
		at = m[key]
	}
	s, _ := at.(string)
	return s
}

// Kind returns the object's kind.
func (o Object) Kind() string { return o.text("kind") }

// Name returns the object's name.
func (o Object) Name() string { return o.text("metadata", "name") }

// collection returns the path of all objects of this kind in the object's namespace.
func (o Object) collection() string {
	path := "/apis/" + o.text("apiVersion")
	if !strings.Contains(path[len("/apis/"):], "/") {
		path = "/api/" + o.text("apiVersion")
	}
	if namespace := o.text("metadata", "namespace"); namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + plural(o.Kind())
}

func (o Object) path() string { return o.collection() + "/" + o.Name() }

// plural returns the name of a kind in paths.
func plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case kind == "Endpoints":
		return name
	case strings.HasSuffix(name, "s"):
		return name + "es"
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}

// Create creates the objects of a YAML file, with their status. The test fails on keys that the API does not know.
func (c *Cluster) Create(t testing.TB, text string) {
	t.Helper()
	for _, o := range Objects(t, text) {
		require.NoError(t, c.Put(o))
	}
}

// Put creates one object.
func (c *Cluster) Put(o Object) error {
	status, has := o["status"]
	bare := maps.Clone(o)
	delete(bare, "status")
	if err := c.do(http.MethodPost, o.collection()+"?fieldValidation=Strict", "application/json", bare); err != nil {
		return fmt.Errorf("cannot create %s %s: %w", o.Kind(), o.Name(), err)
	}
	if !has {
		return nil
	}
	return c.patch(o.path()+"/status", Object{"status": status})
}

// Check validates an object without creating it.
func (c *Cluster) Check(o Object) error {
	return c.do(http.MethodPost, o.collection()+"?dryRun=All&fieldValidation=Strict", "application/json", o)
}

// Patch merges fields into an object.
func (c *Cluster) Patch(t testing.TB, o, fields Object) {
	t.Helper()
	require.NoError(t, c.patch(o.path(), fields))
}

func (c *Cluster) patch(path string, fields Object) error {
	return c.do(http.MethodPatch, path, "application/merge-patch+json", fields)
}

// Remove deletes an object at once.
func (c *Cluster) Remove(o Object) error {
	return c.do(http.MethodDelete, o.path()+"?gracePeriodSeconds=0", "application/json", nil)
}

func (c *Cluster) do(method, path, contentType string, body any) error {
	return c.as(c.Token, method, path, contentType, body)
}

// As sends a request with another token.
func (c *Cluster) As(token, method, path string) error {
	return c.as(token, method, path, "application/json", nil)
}

func (c *Cluster) as(token, method, path, contentType string, body any) error {
	_, err := c.ask(token, method, path, contentType, body)
	return err
}

// List returns the objects at a path, such as /apis/apps/v1/namespaces/default/statefulsets.
func (c *Cluster) List(path string) ([]Object, error) {
	text, err := c.ask(c.Token, http.MethodGet, path, "", nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []Object `json:"items"`
	}
	return list.Items, json.Unmarshal(text, &list)
}

// UID returns an object's UID.
func (c *Cluster) UID(t testing.TB, o Object) string {
	t.Helper()
	text, err := c.ask(c.Token, http.MethodGet, o.path(), "", nil)
	require.NoError(t, err)
	var there Object
	require.NoError(t, json.Unmarshal(text, &there))
	uid := there.text("metadata", "uid")
	require.NotEmpty(t, uid, "%s %s", o.Kind(), o.Name())
	return uid
}

// Kinds returns the kinds that the API serves in a version of a group, such as apps/v1.
func (c *Cluster) Kinds(version string) (kinds []string, _ error) {
	text, err := c.ask(c.Token, http.MethodGet, "/apis/"+version, "", nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Resources []struct {
			Kind string `json:"kind"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	for _, r := range list.Resources {
		kinds = append(kinds, r.Kind)
	}
	return kinds, nil
}

func (c *Cluster) ask(token, method, path, contentType string, body any) (answer []byte, err error) {
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequest(method, c.URL+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", contentType)
	response, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s answers %s: %s", method, path, response.Status, answer)
	}
	return answer, err
}

// Kubeconfig writes a kubeconfig file with all permissions.
func (c *Cluster) Kubeconfig(t testing.TB) string { return c.KubeconfigAs(t, c.Token) }

// KubeconfigAs is Kubeconfig with another token.
func (c *Cluster) KubeconfigAs(t testing.TB, token string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{map[string]any{"name": "test", "cluster": map[string]any{"server": c.URL, "insecure-skip-tls-verify": strings.HasPrefix(c.URL, "https")}}},
		"users":    []any{map[string]any{"name": "test", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "test", "context": map[string]any{"cluster": "test", "user": "test", "namespace": "default"}}},
	})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// Discovery returns a section kubernetes_sd_configs for a role.
func (c *Cluster) Discovery(role, more string) string { return c.DiscoveryAs(c.Token, role, more) }

// DiscoveryAs is Discovery with another token.
func (c *Cluster) DiscoveryAs(token, role, more string) string {
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf("kubernetes_sd_configs: [{role: %s, api_server: %q, authorization: {credentials: %s}, tls_config: {insecure_skip_verify: true}%s}]",
		role, c.URL, token, more)
}
