// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
)

// balancer is a program that places each gRPC stream, and each WebSocket, anew.
type balancer struct {
	*process.Process

	// grpc and websocket are where clients go.
	grpc, websocket string

	file   string
	config func(servers []*receiving) string
	reload os.Signal
}

// addr is where it takes streams of a transport.
func (b *balancer) addr(transport string) string {
	if transport == overWebSocket {
		return b.websocket
	}
	return b.grpc
}

// balance makes it use these servers from now on, as an operator would: by a change
// of its configuration and a reload.
func (b *balancer) balance(t *testing.T, servers ...*receiving) {
	t.Helper()
	require.NoError(t, os.WriteFile(b.file, []byte(b.config(servers)), 0o600))
	if b.Process != nil {
		b.Signal(b.reload)
	}
}

// startBalancer starts one of balancers, and skips the test where it is not installed.
func startBalancer(t *testing.T, name string, servers ...*receiving) *balancer {
	t.Helper()
	// Distributions have them where only root looks.
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath(filepath.Join("/usr/sbin", name))
	}
	if err != nil {
		t.Skipf("no %s to test with: install the package %s", name, name)
	}
	dir := t.TempDir()
	b := &balancer{grpc: freeport.Addr(t), websocket: freeport.Addr(t), file: filepath.Join(dir, name+".conf")}
	var args []string
	switch name {
	case "nginx":
		b.config, b.reload = b.nginx, syscall.SIGHUP
		args = []string{"-p", dir, "-c", b.file, "-e", "stderr"}
	case "haproxy":
		b.config, b.reload = b.haproxy, syscall.SIGUSR2
		args = []string{"-W", "-db", "-f", b.file}
	}
	b.balance(t, servers...)
	b.Process = process.Start(t, process.Settings{Path: path, Args: args, Dir: dir})
	return b
}

func list(servers []*receiving, line func(number int, server *receiving) string) string {
	var text strings.Builder
	for i, server := range servers {
		text.WriteString(line(i, server))
	}
	return text.String()
}

// nginx: all that streams need is that it does not end them for being quiet or long.
func (b *balancer) nginx(servers []*receiving) string {
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	return fmt.Sprintf(`%s
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  client_max_body_size 0;
  client_body_timeout 1h; send_timeout 1h;
  upstream grpc {
%s  }
  upstream websocket {
%s  }
  server {
    listen %s http2;
    location / { grpc_pass grpc://grpc; grpc_read_timeout 1h; grpc_send_timeout 1h; }
  }
  server {
    listen %s;
    location / {
      proxy_pass http://websocket;
      proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
      proxy_read_timeout 1h; proxy_send_timeout 1h;
    }
  }
}
`, user,
		list(servers, func(_ int, s *receiving) string { return fmt.Sprintf("    server %s;\n", s.grpc) }),
		list(servers, func(_ int, s *receiving) string { return fmt.Sprintf("    server %s;\n", s.http) }),
		b.grpc, b.websocket)
}

func (b *balancer) haproxy(servers []*receiving) string {
	return fmt.Sprintf(`
defaults
  mode http
  balance roundrobin
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout tunnel 1h
frontend grpc
  bind %s proto h2
  default_backend grpc
backend grpc
%sfrontend websocket
  bind %s
  default_backend websocket
backend websocket
%s`, b.grpc,
		list(servers, func(i int, s *receiving) string { return fmt.Sprintf("  server s%d %s proto h2\n", i, s.grpc) }),
		b.websocket,
		list(servers, func(i int, s *receiving) string { return fmt.Sprintf("  server s%d %s\n", i, s.http) }))
}
