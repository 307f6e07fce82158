// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// startWriteProxy starts nginx with the configuration of docs/proxies.md in front of a receiver of remote write.
func startWriteProxy(t *testing.T, to string) (addr string, p *process.Process) {
	t.Helper()
	path, dir := proxyPath(t, "nginx"), t.TempDir()
	body, err := os.ReadFile(filepath.Join(repository.Root(t), "docs", "proxies.md"))
	require.NoError(t, err)
	addr = freeport.Addr(t)
	for _, block := range repository.Blocks(string(body)) {
		if block.Comment != "proxy of remote write: nginx" {
			continue
		}
		text := strings.NewReplacer("listen 19291", "listen "+addr, "gateway-1:19291", to).Replace(block.Text)
		file := configFile(t, nginxFrame(text))
		return addr, process.Start(t, process.Settings{Path: path, Args: []string{"-p", dir, "-c", file, "-e", "stderr"}, Dir: dir})
	}
	t.Fatal("docs/proxies.md has nothing for remote write")
	return "", nil
}

// An agent writes through nginx to a gateway, while nginx is reloaded and killed, and the gateway is stopped and started:
// all that the agent acknowledged arrives.
func TestRemoteWriteThroughNginx(t *testing.T) {
	t.Parallel()
	y := newTally()
	server := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe})
	inner, outer := freeport.Addr(t), freeport.Addr(t)
	gateway := startCollector(t, fmt.Sprintf(relayRoad, inner, server.URL(), ""))
	addr, nginx := startWriteProxy(t, inner)
	agent := startCollector(t, fmt.Sprintf(impatient, "http://"+addr+"/api/v1/write", outer), "exporters: {remotewrite: {target_info: {enabled: false}}}")
	stop := y.flood(t, outer)
	y.progress(t)
	for range 2 {
		nginx.Signal(syscall.SIGHUP)
		y.progress(t)
	}
	assert.Zero(t, gateway.Stop(syscall.SIGTERM, drainTime))
	y.progress(t) // into the agent's queue: nginx answers 502
	gateway.Restart()
	gateway.ready()
	y.progress(t)
	assert.Zero(t, nginx.Stop(syscall.SIGTERM, drainTime))
	y.progress(t)
	nginx.Restart()
	y.progress(t)
	stop()
	wait.Until(t, delivery, y.arrivedBut(0))
	y.sound(t)
	assert.Zero(t, agent.metric(t, "otelcol_exporter_send_failed_metric_points"))
	assert.Zero(t, agent.Stop(syscall.SIGTERM, drainTime))
	assert.Zero(t, gateway.Stop(syscall.SIGTERM, drainTime))
	assert.Zero(t, nginx.Stop(syscall.SIGTERM, drainTime))
}
