// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/repository"
)

// The manifest decides which service discoveries are linked, unless DISCOVERY does.
func TestDiscoveryIsChosenAtBuild(t *testing.T) {
	tags := regexp.MustCompile(`-tags "([^"]*)"`)
	f := func(want string, args ...string) {
		t.Helper()
		cmd := exec.Command("make", append([]string{"--dry-run", "--no-print-directory"}, args...)...)
		cmd.Dir, cmd.Env = repository.Root(t), withoutMake()
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		match := tags.FindSubmatch(out)
		require.NotNil(t, match, "%s", out)
		assert.Equal(t, want, string(match[1]), args)
	}
	f("grpcnotrace,testify_yaml_fail,remove_all_sd,enable_dns_sd,enable_kubernetes_sd", "bin/godwit-agent")
	f("grpcnotrace,testify_yaml_fail", "bin/godwit")
	f("grpcnotrace,testify_yaml_fail,remove_all_sd,enable_dns_sd", "bin/godwit-agent", "DISCOVERY=dns")
	f("grpcnotrace,testify_yaml_fail,remove_all_sd", "bin/godwit-agent", "DISCOVERY=")
	f("grpcnotrace,testify_yaml_fail,remove_all_sd,enable_consul_sd,enable_ec2_sd", "bin/godwit", "DISCOVERY=consul ec2")
}
