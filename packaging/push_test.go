// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An image that is pushed to a registry can be pulled unchanged for each architecture, with the artefacts that refer to
// it, and with the signature where cosign looks for it.
func TestPush(t *testing.T) {
	key, private := signingKey(t)
	t.Setenv(keyVariable, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/geese"
	out := made(t, "image", "linux/amd64", "linux/arm64")
	require.NoError(t, run([]string{"push", "-from", out, "-to", to}))

	tag, err := name.NewTag(to + "/godwit-agent:1.2.3-rc.1")
	require.NoError(t, err)
	index, err := remote.Index(tag)
	require.NoError(t, err)
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 2)
	for i, arch := range []string{"amd64", "arm64"} {
		d := manifest.Manifests[i]
		assert.Equal(t, &v1.Platform{OS: "linux", Architecture: arch}, d.Platform)
		image, err := index.Image(d.Digest)
		require.NoError(t, err)
		config, err := image.ConfigFile()
		require.NoError(t, err)
		assert.Equal(t, "10001:10001", config.Config.User)
		assert.Equal(t, []string{"/godwit-agent"}, config.Config.Entrypoint)
		assert.Contains(t, config.Config.Env, "GODWIT_LISTEN=0.0.0.0")
		assert.Contains(t, config.Config.ExposedPorts, "13133/tcp")
		assert.Equal(t, strings.Repeat("ab", 20), config.Config.Labels["org.opencontainers.image.revision"])
		assert.Equal(t, "1.2.3-rc.1", config.Config.Labels["org.opencontainers.image.version"])
		referrers, err := remote.Referrers(tag.Digest(d.Digest.String()))
		require.NoError(t, err)
		about, err := referrers.IndexManifest()
		require.NoError(t, err)
		require.Len(t, about.Manifests, 1, "the bill of materials of %s", arch)
		assert.Equal(t, sbomType, about.Manifests[0].ArtifactType)
	}

	digest, err := index.Digest()
	require.NoError(t, err)
	signed, err := remote.Image(tag.Tag("sha256-" + digest.Hex + ".sig"))
	require.NoError(t, err)
	signatures, err := signed.Manifest()
	require.NoError(t, err)
	layers, err := signed.Layers()
	require.NoError(t, err)
	content, err := layers[0].Uncompressed()
	require.NoError(t, err)
	payload, err := io.ReadAll(content)
	require.NoError(t, err)
	assert.Contains(t, string(payload), digest.String())
	assert.True(t, verified(t, key, payload, signatures.Layers[0].Annotations["dev.cosignproject.cosign/signature"]))

	images, err := filepath.Glob(filepath.Join(out, "*_image.tar"))
	require.NoError(t, err)
	server.Close()
	assert.ErrorContains(t, push(images[0], to, nil), "connection refused")
}
