// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
)

// The images, unpacked as an engine would, run as their own user in their own root directory.
func TestImageRuns(t *testing.T) {
	t.Parallel()
	needs(t, "unshare")
	free := func() string { return fmt.Sprint(freeport.Get(t)) }
	t.Run("godwit-agent", func(t *testing.T) {
		t.Parallel()
		health := free()
		runImage(t, "godwit-agent", health, map[string]string{
			"GODWIT_HEALTH_PORT": health, "GODWIT_CONSOLE_PORT": free(), "GODWIT_TELEMETRY_PORT": free(),
			"GODWIT_LOOPBACK_PORT": free(), "GODWIT_LOOK_PORT": free(),
		})
	})
	t.Run("godwit-gateway", func(t *testing.T) {
		t.Parallel()
		health := free()
		runImage(t, "godwit-gateway", health, map[string]string{"GODWIT_CONSOLE_PORT": free()}, "--config", "yaml:"+fmt.Sprintf(gatewayOverlay,
			freeport.Addr(t), freeport.Addr(t), freeport.Addr(t), "127.0.0.1:"+health, freeport.Addr(t), freeport.Get(t)))
	})
}

func runImage(t *testing.T, name, health string, env map[string]string, more ...string) {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.Chmod(root, 0o755))
	config := unpackImage(t, artefact(t, name, "v0.1.0", "image", "*_image.tar"), root)
	assert.Equal(t, "0.1.0", config.Labels["org.opencontainers.image.version"])
	assert.NotEmpty(t, config.Labels["org.opencontainers.image.source"])
	assert.FileExists(t, filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
	assert.FileExists(t, filepath.Join(root, "usr/share/doc", name, "sbom.cdx.json"))

	var who account
	_, err := fmt.Sscanf(config.User, "%d:%d", &who.uid, &who.gid)
	require.NoError(t, err, config.User)
	all := map[string]string{}
	for _, variable := range config.Env {
		key, value, _ := strings.Cut(variable, "=")
		all[key] = value
	}
	maps.Copy(all, env)
	p := inRoot(t, root, "/", who, all, append(append(config.Entrypoint, config.Cmd...), more...))
	p.WaitHTTP(firstWords, "http://127.0.0.1:"+health+"/", nil)
	runsAs(t, p, who)
	if name == "godwit-agent" {
		p.WaitLog(firstWords, "flowing") // targets are discovered by then
	}
	assert.Zero(t, p.Stop(syscall.SIGTERM, drainTime))
	assert.NotRegexp(t, loggedError, p.Output(), "a fresh container has what its configuration names")
}

// imageConfig is the part of OCI's image configuration that starts a process.
type imageConfig struct {
	User                 string
	Env, Entrypoint, Cmd []string
	Labels               map[string]string
}

// descriptor is OCI's content descriptor.
type descriptor struct {
	Digest, MediaType string
	Platform          struct{ Architecture, OS string }
}

// unpackImage unpacks the layers of the image for this platform into a directory.
func unpackImage(t *testing.T, file, root string) imageConfig {
	t.Helper()
	blobs := map[string][]byte{}
	eachEntry(t, open(t, file), func(h *tar.Header, content []byte) {
		blobs[h.Name] = content
	})
	parse := func(name string, to any) {
		t.Helper()
		require.Contains(t, blobs, name)
		require.NoError(t, json.Unmarshal(blobs[name], to))
	}
	blob := func(d descriptor) string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }
	var index struct{ Manifests []descriptor }
	parse("index.json", &index)
	require.Equal(t, "application/vnd.oci.image.index.v1+json", index.Manifests[0].MediaType)
	parse(blob(index.Manifests[0]), &index)
	for _, d := range index.Manifests {
		if d.Platform.OS != "linux" || d.Platform.Architecture != runtime.GOARCH {
			continue
		}
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		parse(blob(d), &manifest)
		for _, layer := range manifest.Layers {
			unpackLayer(t, blobs[blob(layer)], root)
		}
		var config struct{ Config imageConfig }
		parse(blob(manifest.Config), &config)
		return config.Config
	}
	t.Fatalf("there is no image for linux/%s in %v", runtime.GOARCH, index.Manifests)
	return imageConfig{}
}

func unpackLayer(t *testing.T, layer []byte, root string) {
	t.Helper()
	unpacked, err := gzip.NewReader(strings.NewReader(string(layer)))
	require.NoError(t, err)
	eachEntry(t, unpacked, func(h *tar.Header, content []byte) {
		path := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(path, 0o755))
		} else {
			require.NoError(t, os.WriteFile(path, content, 0o600))
		}
		require.NoError(t, os.Chown(path, h.Uid, h.Gid))
		require.NoError(t, os.Chmod(path, h.FileInfo().Mode().Perm()))
	})
}

func eachEntry(t *testing.T, from io.Reader, f func(*tar.Header, []byte)) {
	t.Helper()
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		f(header, content)
	}
}

func open(t *testing.T, file string) io.Reader {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}
