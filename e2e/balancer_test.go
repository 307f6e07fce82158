// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
)

// balancer is a load balancer that picks a server for each gRPC stream and each WebSocket.
type balancer struct {
	*process.Process

	// grpc and websocket are the addresses for clients.
	grpc, websocket string

	file   string
	config func(servers []*receiving) string
	reload os.Signal // nil if it has none
}

// addr returns the address for clients of a transport.
func (b *balancer) addr(transport string) string {
	if transport == overWebSocket {
		return b.websocket
	}
	return b.grpc
}

// balance makes the balancer use these servers, as an operator would: by a change of its configuration and a reload.
func (b *balancer) balance(t *testing.T, servers ...*receiving) {
	t.Helper()
	require.NoError(t, os.WriteFile(b.file, []byte(b.config(servers)), 0o600))
	if b.Process != nil {
		b.Signal(b.reload)
	}
}

// proxyPath returns the path of a proxy's binary, and skips the test if it is not installed.
func proxyPath(t *testing.T, name string) string {
	t.Helper()
	// Debian installs them where only root's PATH looks.
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath(filepath.Join("/usr/sbin", name))
	}
	if err != nil {
		t.Skipf("no %s to test with: install the package %s", name, name)
	}
	return path
}

// startBalancer starts a balancer, and skips the test if it is not installed.
func startBalancer(t *testing.T, name string, servers ...*receiving) *balancer {
	t.Helper()
	path, dir := proxyPath(t, name), t.TempDir()
	b := &balancer{grpc: freeport.Addr(t), websocket: freeport.Addr(t), file: filepath.Join(dir, name+".conf")}
	var args []string
	switch name {
	case "nginx":
		b.config = func(servers []*receiving) string { return nginxFrame(b.documented(t, name, servers)) }
		b.reload = syscall.SIGHUP
		args = []string{"-p", dir, "-c", b.file, "-e", "stderr"}
	case "haproxy":
		b.reload = syscall.SIGUSR2
		args = []string{"-W", "-db", "-f", b.file}
	case "envoy":
		b.file += ".yaml"
		args = []string{"-c", b.file, "--disable-hot-restart", "--concurrency", "1", "--log-level", "error"}
	}
	if b.config == nil {
		b.config = func(servers []*receiving) string { return b.documented(t, name, servers) }
	}
	b.balance(t, servers...)
	b.Process = process.Start(t, process.Settings{Path: path, Args: args, Dir: dir})
	return b
}

// documented returns the configuration of docs/proxies.md for these servers: it repeats the lines about the first
// gateway for each server.
func (b *balancer) documented(t *testing.T, program string, servers []*receiving) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(repository.Root(t), "docs", "proxies.md"))
	require.NoError(t, err)
	port := func(addr string) string { _, port, _ := net.SplitHostPort(addr); return port }
	ours := strings.NewReplacer(
		"listen 4317", "listen "+b.grpc, "bind :4317", "bind "+b.grpc, "address: 0.0.0.0, port_value: 4317", "address: 127.0.0.1, port_value: "+port(b.grpc),
		"listen 4318", "listen "+b.websocket, "bind :4318", "bind "+b.websocket, "address: 0.0.0.0, port_value: 4318", "address: 127.0.0.1, port_value: "+port(b.websocket))
	for _, block := range repository.Blocks(string(body)) {
		if block.Comment != "proxy: "+program {
			continue
		}
		var text strings.Builder
		for line := range strings.Lines(block.Text) {
			switch {
			case strings.Contains(line, "gateway-2"):
			case strings.Contains(line, "gateway-1"):
				for i, s := range servers {
					text.WriteString(strings.NewReplacer("gateway-1:4317", s.grpc, "gateway-1:4318", s.http,
						"gateway-1, port_value: 4317", "127.0.0.1, port_value: "+port(s.grpc), "gateway-1, port_value: 4318", "127.0.0.1, port_value: "+port(s.http),
						"gateway-1", fmt.Sprintf("gateway-%d", i)).Replace(line))
				}
			default:
				text.WriteString(ours.Replace(line))
			}
		}
		return text.String()
	}
	t.Fatalf("docs/proxies.md has nothing for %s", program)
	return ""
}

// nginxFrame puts an http section into a whole nginx.conf.
func nginxFrame(http string) string {
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	return user + `
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
` + http + "}\n"
}
