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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// The programs that the maintainer scripts call.
var scriptPrograms = []string{"sh", "sed", "grep", "chgrp", "stat", "rm"}

// A gateway with a full queue is upgraded: the administrator's configuration stays, and all acknowledged data arrive.
// Then the package is removed, and purged.
func TestPackageUpgradeWithAFullQueue(t *testing.T) {
	t.Parallel()
	needs(t, "dpkg", "unshare", "ldd", "useradd")
	const name = "godwit-gateway"
	root := cleanRoot(t, append(scriptPrograms, "useradd")...)
	dpkg(t, root, "--install", artefact(t, name, "v0.0.9", "deb", "*.deb"))

	destination := freeport.Addr(t) // nobody listens there yet
	g := &gateway{grpc: freeport.Addr(t), http: freeport.Addr(t), data: filepath.Join(root, "var/lib", name)}
	health := freeport.Addr(t)
	g.health = "http://" + health + "/"
	etc := filepath.Join(root, "etc", name)
	overlay := fmt.Sprintf(gatewayOverlay, g.grpc, g.http, freeport.Addr(t), health, freeport.Addr(t), freeport.Get(t))
	require.NoError(t, os.WriteFile(filepath.Join(etc, "own.yaml"), []byte(overlay), 0o644))
	replace(t, filepath.Join(etc, name+".conf"), "/config.yaml\"", "/config.yaml --config=/etc/"+name+"/own.yaml\"")
	replace(t, filepath.Join(etc, name+".conf"), "#GODWIT_OTLP_ENDPOINT=otlp.example.com:4317", "GODWIT_OTLP_ENDPOINT="+destination)
	replace(t, filepath.Join(etc, "config.yaml"), "queue_size: 268435456", "queue_size: 100000")

	g.Process = startUnit(t, root, name)
	g.ready()
	runsAs(t, g.Process, accountOf(t, root, name))
	l := &ledger{padding: 1000}
	l.fill(t, dial(t, g.grpc), 10, "queue is full")
	require.NotEmpty(t, g.queueFiles(), "the queues are on disk")
	edited := read(t, filepath.Join(etc, name+".conf"))

	// As the new package's script does with systemd: the service runs until the files are replaced, then it is
	// restarted.
	dpkg(t, root, "--force-confdef", "--force-confold", "--install", artefact(t, name, "v0.1.0", "deb", "*.deb"))
	assert.Contains(t, dpkg(t, root, "--status", name), "Version: 0.1.0-1")
	assert.Equal(t, edited, read(t, filepath.Join(etc, name+".conf")), "the administrator's file")
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
	server := otlpserver.New(t, otlpserver.Options{GRPCAddr: destination})
	g.Process = startUnit(t, root, name)
	wait.Until(t, delivery, l.arrived(server))
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))

	dpkg(t, root, "--remove", name)
	assert.NoFileExists(t, filepath.Join(root, "usr/bin", name))
	assert.NoFileExists(t, filepath.Join(root, "usr/lib/systemd/system", name+".service"))
	assert.FileExists(t, filepath.Join(etc, name+".conf"), "configuration stays until the package is purged")
	assert.NotEmpty(t, g.queueFiles(), "and so do the queues")
	require.NoError(t, os.Remove(filepath.Join(etc, "own.yaml")))
	dpkg(t, root, "--purge", name)
	assert.NoDirExists(t, etc)
	assert.NoDirExists(t, g.data)
}

// queueBefore is the agent's queue.yaml of the last version that kept its queue in file_storage.
const queueBefore = `exporters:
  remotewrite:
    queue:
      storage: file_storage
      size: 268435456
extensions:
  file_storage:
    directory: /var/lib/godwit-agent
service:
  extensions: [console, health_check, runtimeprofile, pulse, file_storage]
`

// An agent with its queue in file_storage is upgraded. An unchanged queue.yaml is replaced, and with it the queue: the
// new one is in the exporter's own files; the rest of the old one arrives first, and its file is deleted. A changed
// queue.yaml stays, and so does the old queue.
func TestPackageUpgradeOfAQueueInFileStorage(t *testing.T) {
	t.Parallel()
	needs(t, "dpkg", "dpkg-deb", "unshare", "ldd", "useradd")
	t.Run("queue.yaml as it was", func(t *testing.T) {
		t.Parallel()
		upgradeQueue(t, false)
	})
	t.Run("queue.yaml changed", func(t *testing.T) {
		t.Parallel()
		upgradeQueue(t, true)
	})
}

func upgradeQueue(t *testing.T, changed bool) {
	t.Helper()
	const name = "godwit-agent"
	root := cleanRoot(t, append(scriptPrograms, "useradd")...)
	before := withFile(t, artefact(t, name, "v0.0.9", "deb", "*.deb"), filepath.Join("etc", name, "queue.yaml"), queueBefore)
	dpkg(t, root, "--install", before)
	etc, file := filepath.Join(root, "etc", name), filepath.Join(root, "var/lib", name, "exporter_remotewrite__remotewrite")
	if changed {
		replace(t, filepath.Join(etc, "queue.yaml"), "268435456", "300000000")
	}
	y := newTally()
	server := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe})
	server.Always(rwserver.Step{Status: 503})
	health, addr := freeport.Addr(t), freeport.Addr(t)
	c := &collector{health: "http://" + health + "/"}
	require.NoError(t, os.WriteFile(filepath.Join(etc, "own.yaml"), fmt.Appendf(nil, agentOverlay, addr, health), 0o644))
	conf := filepath.Join(etc, name+".conf")
	replace(t, conf, "/queue.yaml\"", "/queue.yaml --config=/etc/"+name+"/own.yaml\"")
	text := fmt.Appendf(nil, "%sGODWIT_REMOTE_WRITE_URL=%s\n", read(t, conf), server.URL())
	for _, variable := range []string{"CONSOLE", "TELEMETRY", "LOOPBACK", "LOOK"} {
		text = fmt.Appendf(text, "GODWIT_%s_PORT=%d\n", variable, freeport.Get(t))
	}
	require.NoError(t, os.WriteFile(conf, text, 0o640))

	start := func() {
		c.Process = startUnit(t, root, name)
		c.ready()
	}
	start()
	stop := y.flood(t, addr)
	y.progress(t)
	stop()
	assert.FileExists(t, file)
	dpkg(t, root, "--force-confdef", "--force-confold", "--install", artefact(t, name, "v0.1.0", "deb", "*.deb"))
	require.Equal(t, changed, strings.Contains(read(t, filepath.Join(etc, "queue.yaml")), "file_storage"))
	keepsSecrets(t, root, accountOf(t, root, name))
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))

	start()
	stop = y.flood(t, addr)
	y.progress(t)
	c.Kill() // with data in both the old and the new files
	stop()
	server.Always(rwserver.Step{})
	start()
	wait.Until(t, delivery, y.arrivedBut(0))
	if !changed {
		c.WaitLog(delivery, "the queue of file_storage is sent")
		assert.NoFileExists(t, file)
	} else {
		assert.Contains(t, c.Output(), "`queue.directory` has no effect")
		assert.FileExists(t, file)
	}
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	y.sound(t)
	t.Logf("%d samples acknowledged, %d arrived again", y.acknowledged(), y.repeated)
}

// withFile repacks a package with other content for a file.
func withFile(t *testing.T, deb, file, content string) string {
	t.Helper()
	dir, out := filepath.Join(t.TempDir(), "package"), filepath.Join(t.TempDir(), "package.deb")
	pack := func(args ...string) {
		text, err := exec.Command("dpkg-deb", args...).CombinedOutput()
		require.NoError(t, err, "dpkg-deb %v: %s", args, text)
	}
	pack("--raw-extract", deb, dir)
	require.FileExists(t, filepath.Join(dir, file))
	require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644))
	pack("-Znone", "--build", dir, out)
	return out
}

// agentOverlay adds an OTLP receiver to the shipped agent.
const agentOverlay = `
receivers: {otlp: {protocols: {grpc: {endpoint: %s}}}}
exporters: {remotewrite: {batch: {timeout: 20ms}, retry: {initial_interval: 50ms, max_interval: 200ms}, circuit_breaker: {open_for: 200ms}}}
extensions: {health_check: {endpoint: %s}}
service: {pipelines: {metrics/test: {receivers: [otlp], exporters: [remotewrite]}}}
`

// The agent's package in an empty root directory: dpkg runs the scripts from outside, and the unit's command runs.
func TestPackageInAnEmptyRoot(t *testing.T) {
	t.Parallel()
	needs(t, "dpkg", "unshare", "systemd-sysusers")
	const name = "godwit-agent"
	root := cleanRoot(t)
	dpkg(t, root, "--force-script-chrootless", "--install", artefact(t, name, "v0.1.0", "deb", "*.deb"))
	who := accountOf(t, root, name)
	checkUnit(t, root, name)

	keepsSecrets(t, root, who)
	assert.FileExists(t, filepath.Join(root, "usr/share/doc", name, "sbom.cdx.json"))
	if _, err := exec.LookPath("systemctl"); err == nil {
		wants := filepath.Join(root, "etc/systemd/system/multi-user.target.wants", name+".service")
		_, err := os.Lstat(wants)
		assert.NoError(t, err, "the service starts with the machine")
	}

	health := freeport.Get(t)
	conf := filepath.Join(root, "etc", name, name+".conf")
	text := []string{read(t, conf)}
	for variable, port := range map[string]int{
		"HEALTH": health, "CONSOLE": freeport.Get(t), "TELEMETRY": freeport.Get(t), "LOOPBACK": freeport.Get(t), "LOOK": freeport.Get(t),
	} {
		text = append(text, fmt.Sprintf("GODWIT_%s_PORT=%d\n", variable, port))
	}
	require.NoError(t, os.WriteFile(conf, []byte(strings.Join(text, "")), 0o640))
	agent := startUnit(t, root, name)
	agent.WaitHTTP(firstWords, fmt.Sprintf("http://127.0.0.1:%d/", health), nil)
	agent.WaitLog(firstWords, "flowing")
	runsAs(t, agent, who)
	queues, err := filepath.Glob(filepath.Join(root, "var/lib", name, "*"))
	require.NoError(t, err)
	assert.NotEmpty(t, queues, "its queue is on disk")
	assert.Zero(t, agent.Stop(syscall.SIGTERM, drainTime))
	assert.NotRegexp(t, loggedError, agent.Output(), "a fresh package has what its configuration names")

	dpkg(t, root, "--force-script-chrootless", "--purge", name)
	assert.NoDirExists(t, filepath.Join(root, "var/lib", name))
	assert.NoFileExists(t, conf)
}

// The rpm, installed by rpm: its files, its user, and a configuration that survives an upgrade.
func TestPackageByRPM(t *testing.T) {
	t.Parallel()
	needs(t, "rpm", "unshare", "ldd", "useradd")
	const name = "godwit-agent"
	root := cleanRoot(t, append(scriptPrograms, "useradd")...)
	rpm := func(args ...string) {
		t.Helper()
		out, err := exec.Command("rpm", append([]string{"--root", root, "--nodeps"}, args...)...).CombinedOutput()
		require.NoError(t, err, "rpm %s: %s", strings.Join(args, " "), out)
		assert.NotContains(t, string(out), "scriptlet failed")
	}
	rpm("--install", artefact(t, name, "v0.0.9", "rpm", "*.rpm"))
	who := accountOf(t, root, name)
	assert.DirExists(t, filepath.Join(root, "etc", name, "targets"), "its configuration watches it")
	conf := filepath.Join(root, "etc", name, name+".conf")
	keepsSecrets(t, root, who)
	replace(t, conf, "/targets", "/flock")
	rpm("--upgrade", artefact(t, name, "v0.1.0", "rpm", "*.rpm"))
	keepsSecrets(t, root, who)
	assert.Contains(t, read(t, conf), "/flock", "the administrator's file")
	rpm("--verify", "--nofiles", name)
	p := inRoot(t, root, "/", who, nil, []string{"/usr/bin/" + name, "--version"})
	assert.Zero(t, p.Wait(commandTimeout), p.Output())
	rpm("--erase", name)
	assert.NoFileExists(t, filepath.Join(root, "usr/bin", name))
	assert.FileExists(t, conf+".rpmsave")
}

// keepsSecrets checks that only root may write, and only the service's group may read, the files that may hold
// credentials, whether changed or not.
func keepsSecrets(t *testing.T, root string, who account) {
	t.Helper()
	for _, file := range []string{"config.yaml", "godwit-agent.conf"} {
		info, err := os.Stat(filepath.Join(root, "etc/godwit-agent", file))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o640), info.Mode(), "%s may hold credentials", file)
		assert.EqualValues(t, who.gid, info.Sys().(*syscall.Stat_t).Gid, "the service reads %s", file)
	}
}

// checkUnit verifies a unit with systemd's own tools, and checks its exposure.
func checkUnit(t *testing.T, root, name string) {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("not checked: there is no systemd-analyze on this machine")
		return
	}
	text := read(t, filepath.Join(root, "usr/lib/systemd/system", name+".service"))
	file := filepath.Join(t.TempDir(), name+".service")
	text = strings.ReplaceAll(text, "/usr/bin/"+name, root+"/usr/bin/"+name) // it checks that the command exists
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.NotContains(t, string(out), name+".service:", "it warns")
	out, err = exec.Command("systemd-analyze", "security", "--offline=yes", "--threshold=25", "--no-pager", file).CombinedOutput()
	assert.NoError(t, err, "the unit is exposed to more than 2.5 of 10: %s", out)
}

// replace edits a file as an administrator would. The old text must be there.
func replace(t *testing.T, file, old, with string) {
	t.Helper()
	text := read(t, file)
	require.Contains(t, text, old, file)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, old, with)), info.Mode()))
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}
