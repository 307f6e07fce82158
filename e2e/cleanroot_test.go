// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
)

// needs skips a test if a program is missing, or the right to change the root directory of a process.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("skipped: it changes roots and users, which takes root on Linux")
	}
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("skipped: there is no %s on this machine", name)
		}
	}
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("skipped: this machine gives no mount namespaces: %s", out)
	}
}

// artefact packs a distribution's binary in one format, as a release does, and returns its path.
func artefact(t *testing.T, name, version, format, pattern string) string {
	t.Helper()
	root, binaries, out := repository.Root(t), t.TempDir(), filepath.Join(t.TempDir(), "out")
	folder := filepath.Join(binaries, "linux_"+runtime.GOARCH)
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, os.Symlink(process.Binary(t, name), filepath.Join(folder, name)))
	cmd := exec.Command(process.Binary(t, "packaging"), "-root", root, "-binaries", binaries, "-out", out, "-version", version,
		"-date", "1700000000", "-distributions", name, "-platforms", "linux/"+runtime.GOARCH, "-formats", format, "-loose")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "cannot pack: %s", text)
	found, err := filepath.Glob(filepath.Join(out, pattern))
	require.NoError(t, err)
	require.Len(t, found, 1, "%s of %s", format, name)
	return found[0]
}

// cleanRoot makes a root directory with nothing but an empty dpkg database and some programs with their shared
// libraries.
func cleanRoot(t *testing.T, programs ...string) string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.Chmod(root, 0o755))
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "proc", "etc", "tmp", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
		require.NoError(t, os.Symlink("usr/"+link, filepath.Join(root, link)))
	}
	for name, text := range map[string]string{
		"var/lib/dpkg/status": "", "etc/passwd": "root:x:0:0::/root:/bin/sh\n", "etc/group": "root:x:0:\n",
		"etc/shadow": "root:*:19000::::::\n", "etc/gshadow": "root:*::\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	for _, program := range programs {
		path, err := exec.LookPath(program)
		require.NoError(t, err)
		wanted := []string{path}
		linked, _ := exec.Command("ldd", path).Output() // it fails for a static binary, which has none
		for _, m := range regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(string(linked), -1) {
			wanted = append(wanted, m[1])
		}
		for _, file := range wanted {
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				copyFile(t, file, filepath.Join(root, file))
			}
		}
	}
	return root
}

// dpkg runs dpkg on a root directory; maintainer scripts run inside it.
func dpkg(t *testing.T, root string, args ...string) string {
	t.Helper()
	cmd := exec.Command("dpkg", append([]string{"--root=" + root, "--log=/dev/null"}, args...)...)
	cmd.Env = append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "dpkg %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// account is a user of the root directory's /etc/passwd.
type account struct{ uid, gid int }

func accountOf(t *testing.T, root, name string) account {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "etc", "passwd"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if fields[0] != name {
			continue
		}
		uid, err1 := strconv.Atoi(fields[2])
		gid, err2 := strconv.Atoi(fields[3])
		require.NoError(t, err1)
		require.NoError(t, err2)
		assert.Positive(t, uid, "not root")
		assert.Contains(t, fields[6], "nologin")
		return account{uid, gid}
	}
	t.Fatalf("there is no user %s in:\n%s", name, text)
	return account{}
}

// unit holds the values of each key of a systemd unit.
type unit map[string][]string

func unitOf(t *testing.T, root, name string) unit {
	t.Helper()
	file, err := os.Open(filepath.Join(root, "usr/lib/systemd/system", name+".service"))
	require.NoError(t, err)
	defer file.Close()
	u := unit{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, found := strings.Cut(lines.Text(), "="); found && !strings.HasPrefix(key, "#") {
			u[key] = append(u[key], value)
		}
	}
	return u
}

func (u unit) one(t *testing.T, key string) string {
	t.Helper()
	require.Len(t, u[key], 1, key)
	return u[key][0]
}

// startUnit does what systemd does for a unit: it makes the state directory, reads the environment file, and runs the
// command as the unit's user, in the given root directory.
func startUnit(t *testing.T, root, name string) *process.Process {
	t.Helper()
	u := unitOf(t, root, name)
	who := accountOf(t, root, u.one(t, "User"))
	state := filepath.Join(root, "var/lib", u.one(t, "StateDirectory"))
	mode, err := strconv.ParseUint(u.one(t, "StateDirectoryMode"), 8, 32)
	require.NoError(t, err)
	if _, err := os.Stat(state); err != nil {
		require.NoError(t, os.Mkdir(state, 0o700))
		require.NoError(t, os.Chown(state, who.uid, who.gid))
	}
	require.NoError(t, os.Chmod(state, os.FileMode(mode)))

	env := map[string]string{}
	text, err := os.ReadFile(filepath.Join(root, strings.TrimPrefix(u.one(t, "EnvironmentFile"), "-")))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(key, "#") {
			env[key] = strings.Trim(value, `"`)
		}
	}
	var command []string
	for word := range strings.FieldsSeq(u.one(t, "ExecStart")) {
		if variable, found := strings.CutPrefix(word, "$"); found {
			command = append(command, strings.Fields(env[variable])...)
		} else {
			command = append(command, word)
		}
	}
	return inRoot(t, root, u.one(t, "WorkingDirectory"), who, env, command)
}

// inRoot runs a command as a user in a root directory, with exactly this environment.
func inRoot(t *testing.T, root, dir string, who account, env map[string]string, command []string) *process.Process {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "proc"), 0o755))
	args := []string{"-i"}
	for key, value := range env {
		args = append(args, key+"="+value)
	}
	args = append(args, "unshare", "--mount-proc", "--root", root, "--wd", dir, "--setgid", strconv.Itoa(who.gid), "--setuid", strconv.Itoa(who.uid), "--")
	return process.Start(t, process.Settings{Path: "env", Args: slices.Concat(args, command)})
}

// runsAs checks which user a process runs as, and that it has no capabilities.
func runsAs(t *testing.T, p *process.Process, who account) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	require.NoError(t, err)
	assert.Regexp(t, fmt.Sprintf(`(?m)^Uid:\t%d\t%[1]d\t`, who.uid), string(status))
	assert.Regexp(t, fmt.Sprintf(`(?m)^Gid:\t%d\t%[1]d\t`, who.gid), string(status))
	assert.Regexp(t, `(?m)^CapEff:\t0+$`, string(status), "it has capabilities")
}
