// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	apiserverVariable = "KUBE_APISERVER"
	etcdVariable      = "ETCD"

	adminToken = "admin-of-a-test"
	// AgentToken is the token of the service account in deploy/kubernetes/agent.yaml, with the permissions of that
	// file.
	AgentToken = "agent-of-a-test"
	// AllocatorToken is the same for deploy/operator/collector.yaml.
	AllocatorToken = "allocator-of-a-test"

	readyTimeout = 3 * time.Minute
)

// binary returns the path in an environment variable, or of the file that make builds, or in PATH; "" if there is none.
func binary(t testing.TB, variable, built string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	path := filepath.Join(repository.Root(t), "bin", "rivals", built)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	path, err := exec.LookPath(built)
	if err != nil {
		return ""
	}
	return path
}

// startReal runs etcd and kube-apiserver. It returns nil if one of them is not installed.
func startReal(t testing.TB) *Cluster {
	t.Helper()
	apiserver, etcd := binary(t, apiserverVariable, "kube-apiserver"), binary(t, etcdVariable, "etcd")
	if apiserver == "" || etcd == "" {
		return nil
	}
	store, peers := "http://"+freeport.Addr(t), "http://"+freeport.Addr(t)
	data := dataDir(t)
	e := process.Start(t, process.Settings{Path: etcd, Args: []string{
		"--data-dir", data, "--listen-client-urls", store, "--advertise-client-urls", store,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default=" + peers,
	}})
	e.WaitHTTP(readyTimeout, store+"/health", nil)

	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	key := signingKey(t)
	port := freeport.Get(t)
	c := &Cluster{URL: fmt.Sprintf("https://127.0.0.1:%d", port), Token: adminToken, Real: true, client: newClient(t)}
	a := process.Start(t, process.Settings{Path: apiserver, Args: []string{
		"--etcd-servers", store,
		"--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port), "--cert-dir", dir,
		"--service-cluster-ip-range", "10.0.0.0/24",
		"--service-account-issuer", "https://test", "--service-account-key-file", file("sa.key", key), "--service-account-signing-key-file", file("sa2.key", key),
		"--token-auth-file", file("tokens.csv", adminToken+",admin,1,system:masters\n"+
			accountToken(AgentToken, "godwit-agent")+accountToken(AllocatorToken, "godwit-targetallocator")),
		"--authorization-mode", "RBAC",
		// No controller makes service accounts for pods here.
		"--disable-admission-plugins", "ServiceAccount",
	}})
	wait.Until(t, readyTimeout, func() (bool, string) {
		require.True(t, a.Running(), "kube-apiserver ended")
		err := c.As(adminToken, http.MethodGet, "/readyz")
		return err == nil, fmt.Sprint(err)
	})
	// The namespace is created a moment after the API is ready.
	wait.Until(t, readyTimeout, func() (bool, string) {
		err := c.As(adminToken, http.MethodGet, "/api/v1/namespaces/default")
		return err == nil, fmt.Sprint(err)
	})
	return c
}

// accountToken returns the line of a token file for a service account of our manifests.
func accountToken(token, account string) string {
	return fmt.Sprintf("%s,system:serviceaccount:godwit:%s,%[2]s,%q\n", token, account, "system:serviceaccounts,system:serviceaccounts:godwit")
}

// dataDir returns a directory in memory if possible, because each write of etcd waits for the disk.
func dataDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "etcd-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func signingKey(t testing.TB) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, pem.Encode(&text, &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	return text.String()
}
