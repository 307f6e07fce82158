// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/e2e/cluster"
	"github.com/godwit-otel/godwit/e2e/repository"
)

// The pods of all manifests and values meet Kubernetes' `restricted` standard, which namespaces may enforce. Replicas
// are spread over nodes.
func TestPodsKeepTheRestrictedStandard(t *testing.T) {
	seen := 0
	for _, name := range filesOf(t, deployed) {
		w := readWorkload(t, repository.Read(t, name))
		text, err := json.Marshal(w.pod.Spec)
		require.NoError(t, err)
		pod := cluster.Objects(t, string(text))[0]
		require.Len(t, pod["containers"], 1)
		container, _ := pod["containers"].([]any)[0].(cluster.Object)
		checkRestricted(t, name, pod, pod["securityContext"], container["securityContext"], pod["volumes"], len(w.claims) > 0)
		seen++
	}
	for _, name := range collectorValues(t) {
		values := cluster.Objects(t, repository.Read(t, name))[0]
		checkRestricted(t, name, values, values["podSecurityContext"], values["securityContext"], values["extraVolumes"], values["mode"] == "statefulset")
		seen++
	}
	for _, name := range filesOf(t, operated) {
		for _, o := range cluster.Objects(t, repository.Read(t, name)) {
			if o.Kind() == "OpenTelemetryCollector" {
				spec, _ := o["spec"].(cluster.Object)
				checkRestricted(t, name, spec, spec["podSecurityContext"], spec["securityContext"], spec["volumes"], true)
				// The operator does not copy the agents' security contexts to the allocator's pod.
				allocator, _ := spec["targetAllocator"].(cluster.Object)
				readSecurity(t, allocator["podSecurityContext"], allocator["securityContext"]).check(t, name+", allocator")
				seen++
			}
		}
	}
	assert.Equal(t, 6, seen)
}

func checkRestricted(t *testing.T, name string, pod cluster.Object, podContext, containerContext, volumes any, several bool) {
	t.Helper()
	of := readSecurity(t, podContext, containerContext)
	of.check(t, name)
	assert.Equal(t, 10001, of.User, "%s: the user of the image", name)
	assert.True(t, of.ReadOnly, name)
	for _, key := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		assert.NotContains(t, pod, key, name)
	}
	list, _ := volumes.([]any)
	for _, item := range list {
		volume, _ := item.(cluster.Object)
		for _, kind := range slices.Sorted(maps.Keys(volume)) {
			assert.Contains(t, []string{"name", "configMap", "emptyDir", "secret", "projected", "persistentVolumeClaim"}, kind, name)
		}
	}
	if several {
		assert.NotEmpty(t, pod["topologySpreadConstraints"], name)
	}
}

// security is the merged security context of a pod and its container.
type security struct {
	NonRoot      bool                         `yaml:"runAsNonRoot"`
	User         int                          `yaml:"runAsUser"`
	Seccomp      struct{ Type string }        `yaml:"seccompProfile"`
	Escalation   *bool                        `yaml:"allowPrivilegeEscalation"`
	ReadOnly     bool                         `yaml:"readOnlyRootFilesystem"`
	Capabilities struct{ Drop, Add []string } `yaml:"capabilities"`
}

func readSecurity(t *testing.T, contexts ...any) (s security) {
	t.Helper()
	for _, context := range contexts {
		text, err := yaml.Marshal(context)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, &s))
	}
	return s
}

// check checks the requirements of the standard.
func (s security) check(t *testing.T, name string) {
	t.Helper()
	assert.True(t, s.NonRoot, name)
	assert.Equal(t, "RuntimeDefault", s.Seccomp.Type, name)
	require.NotNil(t, s.Escalation, name)
	assert.False(t, *s.Escalation, name)
	assert.Equal(t, []string{"ALL"}, s.Capabilities.Drop, name)
	assert.Empty(t, s.Capabilities.Add, name)
}
