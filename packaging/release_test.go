// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// made makes a release of the agent in these formats and for these platforms. The binary that it packs is this test.
func made(t *testing.T, formats string, platforms ...string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	binaries, out := t.TempDir(), filepath.Join(t.TempDir(), "release")
	for _, platform := range platforms {
		dir := filepath.Join(binaries, strings.ReplaceAll(platform, "/", "_"))
		require.NoError(t, os.Mkdir(dir, 0o700))
		ending := ""
		if strings.HasPrefix(platform, "windows") {
			ending = ".exe"
		}
		require.NoError(t, os.Symlink(self, filepath.Join(dir, agent+ending)))
	}
	require.NoError(t, run([]string{
		"-root", "..", "-binaries", binaries, "-out", out, "-version", "v1.2.3-rc.1", "-date", "1700000000", "-commit", strings.Repeat("ab", 20),
		"-distributions", agent, "-platforms", strings.Join(platforms, ","), "-formats", formats, "-loose",
	}))
	return out
}

func signingKey(t *testing.T) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	bytes, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return key, bytes
}

func verified(t *testing.T, key *ecdsa.PrivateKey, content []byte, signature string) bool {
	t.Helper()
	sig, err := base64.StdEncoding.DecodeString(signature)
	require.NoError(t, err)
	digest := sha256.Sum256(content)
	return ecdsa.VerifyASN1(&key.PublicKey, digest[:], sig)
}

func TestAReleaseIsWhole(t *testing.T) {
	key, private := signingKey(t)
	t.Setenv(keyVariable, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	out := made(t, strings.Join(formats, ","), "linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64")
	r := release{out: out}
	all, err := r.artefacts()
	require.NoError(t, err)
	names := make([]string, 0, len(all))
	for _, a := range all {
		names = append(names, a.name)
	}
	assert.Equal(t, []string{
		"checksums.txt", "checksums.txt.sig",
		"godwit-agent-1.2.3~rc.1-1.aarch64.rpm", "godwit-agent-1.2.3~rc.1-1.x86_64.rpm",
		"godwit-agent_1.2.3-rc.1_darwin_arm64.cdx.json", "godwit-agent_1.2.3-rc.1_darwin_arm64.tar.gz",
		"godwit-agent_1.2.3-rc.1_image.tar",
		"godwit-agent_1.2.3-rc.1_linux_amd64.cdx.json", "godwit-agent_1.2.3-rc.1_linux_amd64.tar.gz",
		"godwit-agent_1.2.3-rc.1_linux_arm64.cdx.json", "godwit-agent_1.2.3-rc.1_linux_arm64.tar.gz",
		"godwit-agent_1.2.3-rc.1_windows_amd64.cdx.json", "godwit-agent_1.2.3-rc.1_windows_amd64.tar.gz",
		"godwit-agent_1.2.3~rc.1-1_amd64.deb", "godwit-agent_1.2.3~rc.1-1_arm64.deb",
		"godwit.pub", "provenance.intoto.jsonl",
	}, names)

	sums, err := os.ReadFile(filepath.Join(out, checksums))
	require.NoError(t, err)
	signature, err := os.ReadFile(filepath.Join(out, checksums+".sig"))
	require.NoError(t, err)
	assert.True(t, verified(t, key, sums, string(signature)))
	assert.False(t, verified(t, key, append(sums, ' '), string(signature)))

	var e envelope
	line, err := os.ReadFile(filepath.Join(out, provenance))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &e))
	payload, err := base64.StdEncoding.DecodeString(e.Payload)
	require.NoError(t, err)
	assert.True(t, verified(t, key, []byte("DSSEv1 28 application/vnd.in-toto+json "+strconv.Itoa(len(payload))+" "+string(payload)), e.Signatures[0].Sig))
	var s statement
	require.NoError(t, json.Unmarshal(payload, &s))
	assert.Equal(t, strings.Repeat("ab", 20), s.Predicate.BuildDefinition.From[0].Digest["gitCommit"])

	// Every file is in the checksums and, with the same digest, in the provenance, except the files about files.
	for _, a := range all {
		switch a.name {
		case checksums, checksums + ".sig", publicKey:
		case provenance:
			assert.Contains(t, string(sums), a.digest+"  "+a.name)
		default:
			assert.Contains(t, string(sums), a.digest+"  "+a.name)
			assert.Contains(t, s.Subject, resource{Name: a.name, Digest: digests{"sha256": a.digest}})
		}
	}
}

func TestTwiceTheSame(t *testing.T) {
	all := strings.Join(formats, ",")
	first, err := os.ReadFile(filepath.Join(made(t, all, "linux/amd64"), checksums))
	require.NoError(t, err)
	second, err := os.ReadFile(filepath.Join(made(t, all, "linux/amd64"), checksums))
	require.NoError(t, err)
	assert.Equal(t, string(first), string(second))
}

func TestArchiveHoldsWhatOneNeeds(t *testing.T) {
	file, err := os.Open(filepath.Join(made(t, "archive", "windows/amd64"), "godwit-agent_1.2.3-rc.1_windows_amd64.tar.gz"))
	require.NoError(t, err)
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	require.NoError(t, err)
	contents := map[string]string{}
	for archive := tar.NewReader(unpacked); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		assert.Zero(t, h.Uid)
		assert.EqualValues(t, 1700000000, h.ModTime.Unix(), h.Name)
		text, err := io.ReadAll(archive)
		require.NoError(t, err)
		contents[h.Name] = string(text)
	}
	const folder = "godwit-agent_1.2.3-rc.1/"
	assert.Contains(t, contents, folder+"targets/", "its configuration watches it")
	for _, name := range []string{"godwit-agent.exe", "config.yaml", "README.md", "LICENSE", "sbom.cdx.json", "THIRD-PARTY-LICENSES"} {
		assert.NotEmpty(t, contents[folder+name], name)
	}
	licences := contents[folder+"THIRD-PARTY-LICENSES"]
	self, err := buildinfo.ReadFile(os.Args[0])
	require.NoError(t, err)
	for _, m := range self.Deps {
		assert.Contains(t, licences, m.Path+" "+m.Version+"\n", "nothing of its licence")
	}
	assert.Contains(t, licences, "Redistribution and use in source and binary forms", "the texts themselves")
}

// The SBOM lists exactly the modules in the binary's build information.
func TestSBOMIsWhatIsLinked(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(made(t, "sbom", "linux/amd64"), "godwit-agent_1.2.3-rc.1_linux_amd64.cdx.json"))
	require.NoError(t, err)
	var list bom
	require.NoError(t, json.Unmarshal(text, &list))
	self, err := buildinfo.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.Len(t, list.Components, len(self.Deps)+1)
	assert.Equal(t, "stdlib", list.Components[0].Name)
	for i, m := range self.Deps {
		assert.Equal(t, "pkg:golang/"+m.Path+"@"+m.Version, list.Components[i+1].PURL)
	}
	content, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	digest, err := digestOf(os.Args[0])
	require.NoError(t, err)
	assert.Len(t, digest, 64)
	assert.NotEmpty(t, content)
	assert.Equal(t, digest, list.Metadata.Component.Hashes[0].Content)
	assert.Regexp(t, `^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$`, list.Serial)
	assert.Len(t, list.Dependencies[0].On, len(list.Components))
}

// A replacement of another module, in a directory of the repository, has the version of the release.
func TestSBOMOfWhatIsBesideIt(t *testing.T) {
	r := release{version: "1.2.3"}
	text, err := r.sbom(&build{distribution: &distribution{name: agent}, info: &buildinfo.BuildInfo{Deps: []*debug.Module{
		{Path: "k8s.io/client-go", Version: "v0.36.1", Replace: &debug.Module{Path: "../../internal/kubernetes/client-go", Version: "(devel)"}},
	}}})
	require.NoError(t, err)
	var list bom
	require.NoError(t, json.Unmarshal(text, &list))
	assert.Equal(t, "pkg:golang/github.com/godwit-otel/godwit/internal/kubernetes/client-go@v1.2.3", list.Components[1].PURL)
	assert.Equal(t, "v1.2.3", list.Components[1].Version)
}

func TestKeys(t *testing.T) {
	key, private := signingKey(t)
	sealed, err := encrypted.Encrypt(private, []byte("bar-tailed"))
	require.NoError(t, err)
	ec, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	f := func(kind string, content []byte, password, fault string) {
		t.Helper()
		s, err := newSigner(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), password)
		if fault != "" {
			assert.ErrorContains(t, err, fault)
			return
		}
		require.NoError(t, err)
		signature, err := s.sign([]byte("text"))
		require.NoError(t, err)
		assert.True(t, verified(t, key, []byte("text"), signature))
	}
	f("PRIVATE KEY", private, "", "")
	f("EC PRIVATE KEY", ec, "", "")
	f("ENCRYPTED SIGSTORE PRIVATE KEY", sealed, "bar-tailed", "")
	f("ENCRYPTED SIGSTORE PRIVATE KEY", sealed, "black-tailed", "cannot decrypt it with COSIGN_PASSWORD")
	f("RSA PRIVATE KEY", private, "", "give an ECDSA key")
	_, err = newSigner([]byte("/etc/key.pem"), "")
	require.ErrorContains(t, err, "not the name of a file")
	t.Setenv(keyVariable, "/etc/key.pem")
	assert.ErrorContains(t, run([]string{"-date", "1", "-version", "v1.0.0"}), "cannot use GODWIT_SIGNING_KEY")
}

func TestBadFlags(t *testing.T) {
	f := func(fault string, args ...string) {
		t.Helper()
		assert.ErrorContains(t, run(args), fault)
	}
	f("cannot read -date", "-version", "v1.0.0")
	f("give vX.Y.Z", "-date", "1", "-version", "1.0.0")
	f("-formats takes sbom", "-date", "1", "-version", "v1.0.0", "-formats", "msi")
	f("cannot find the distribution", "-date", "1", "-version", "v1.0.0", "-distributions", "goose", "-root", "..", "-out", t.TempDir())
	f("-to says to which registry", "push")
	f("run `make tags VERSION=v9.9.9` first", "modules", "-root", "..", "-version", "v9.9.9")
	f("run `make release` first", "push", "-to", "127.0.0.1:1", "-from", t.TempDir())
}

// A Dockerfile that needs a container engine is rejected.
func TestDockerfilesThatNeedAnEngine(t *testing.T) {
	f := func(text, fault string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "Dockerfile")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := finalStage(file)
		assert.ErrorContains(t, err, fault)
	}
	const rest = "COPY a /a\nUSER 1:1\nENTRYPOINT [\"/a\"]\nCMD []\n"
	f("FROM alpine\n"+rest, "its last stage has \"alpine\"")
	f("FROM scratch\nRUN make\n"+rest, "its last stage has \"RUN make")
	f("FROM scratch\nCOPY a /a\n", "no USER")
	_, err := stage{"COPY": {"--from=other a /a"}}.copies()
	assert.ErrorContains(t, err, "--from is unknown")
}

// The agent's overlay sets its queue's directory. It must not have a list of extensions, which would replace that of
// the main configuration.
func TestQueueOverlayLosesNoExtension(t *testing.T) {
	extensions := func(file string) []string {
		var c struct {
			Service struct {
				Extensions []string `yaml:"extensions"`
			} `yaml:"service"`
			Exporters struct {
				RemoteWrite struct {
					Queue struct {
						Directory string `yaml:"directory"`
					} `yaml:"queue"`
				} `yaml:"remotewrite"`
			} `yaml:"exporters"`
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(bytes.ReplaceAll(text, []byte("{{.Name}}"), []byte("x")), &c))
		require.NotEmpty(t, c.Exporters.RemoteWrite.Queue.Directory, file)
		return c.Service.Extensions
	}
	assert.NotEmpty(t, extensions("../distributions/godwit-agent/config.yaml"))
	assert.Empty(t, extensions("files/queue.tmpl"))
}
