// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/godwit-otel/godwit/e2e/repository"
)

const (
	deployed      = "deploy/kubernetes/"
	accountToken  = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	manifestsKind = "manifests of Kubernetes"
)

// a workload is the pod template of a file of manifests, and the objects around it.
type workload struct {
	pod      corev1.PodTemplateSpec
	selector *metav1.LabelSelector
	claims   []corev1.PersistentVolumeClaim
	configs  map[string]*corev1.ConfigMap
	accounts map[string]bool
	secrets  map[string]bool
	// selectors are those of objects that refer to its pods.
	selectors []*metav1.LabelSelector
	ports     []int32
}

// The manifests decode strictly into the API's types, their parts fit together, and the configuration in them is valid
// for the image's binary.
func TestManifestsHangTogether(t *testing.T) {
	var found []string
	for _, name := range repository.Files(t) {
		if !strings.HasPrefix(name, deployed) {
			continue
		}
		found = append(found, name)
		t.Run(name, func(t *testing.T) { checkWorkload(t, readWorkload(t, repository.Read(t, name))) })
	}
	assert.Len(t, found, 2)
}

func TestManifestsAreReadStrictly(t *testing.T) {
	for _, text := range []string{"apiVersion: v1\nkind: Secret\nstringdata: {a: b}\n", "apiVersion: v1\nkind: Nothing\n"} {
		_, err := decodeManifest([]byte(text))
		assert.Error(t, err, text)
	}
}

func decodeManifest(text []byte) (runtime.Object, error) {
	object, _, err := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer().Decode(text, nil, nil)
	return object, err
}

func readWorkload(t *testing.T, text string) *workload {
	t.Helper()
	w := &workload{configs: map[string]*corev1.ConfigMap{}, accounts: map[string]bool{"": true}, secrets: map[string]bool{}}
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		object, err := decodeManifest(document)
		require.NoError(t, err, "%s", document)
		if namespaced, ok := object.(metav1.Object); ok && !clusterWide(object) {
			assert.Equal(t, "godwit", namespaced.GetNamespace(), namespaced.GetName())
		}
		w.add(t, object)
	}
	return w
}

func clusterWide(object runtime.Object) bool {
	switch object.(type) {
	case *corev1.Namespace, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
		return true
	}
	return false
}

func (w *workload) add(t *testing.T, object runtime.Object) {
	t.Helper()
	switch o := object.(type) {
	case *appsv1.DaemonSet:
		w.pod, w.selector = o.Spec.Template, o.Spec.Selector
	case *appsv1.StatefulSet:
		w.pod, w.selector, w.claims = o.Spec.Template, o.Spec.Selector, o.Spec.VolumeClaimTemplates
	case *corev1.ConfigMap:
		w.configs[o.Name] = o
	case *corev1.ServiceAccount:
		w.accounts[o.Name] = true
	case *corev1.Secret:
		w.secrets[o.Name] = true
	case *corev1.Service:
		w.selectors = append(w.selectors, &metav1.LabelSelector{MatchLabels: o.Spec.Selector})
		for _, p := range o.Spec.Ports {
			w.ports = append(w.ports, p.Port)
		}
	case *policyv1.PodDisruptionBudget:
		w.selectors = append(w.selectors, o.Spec.Selector)
	case *networkingv1.NetworkPolicy:
		w.selectors = append(w.selectors, &o.Spec.PodSelector)
		for _, rule := range o.Spec.Ingress {
			for _, p := range rule.Ports {
				w.ports = append(w.ports, p.Port.IntVal)
			}
		}
	case *rbacv1.ClusterRoleBinding:
		require.Len(t, o.Subjects, 1)
		assert.True(t, w.accounts[o.Subjects[0].Name], "the account of the binding")
	}
}

func checkWorkload(t *testing.T, w *workload) {
	t.Helper()
	require.Len(t, w.pod.Spec.Containers, 1)
	container := &w.pod.Spec.Containers[0]
	for _, selector := range append(w.selectors, w.selector) {
		s, err := metav1.LabelSelectorAsSelector(selector)
		require.NoError(t, err)
		assert.True(t, s.Matches(labels.Set(w.pod.Labels)), "%s selects other pods", s)
	}
	assert.True(t, w.accounts[w.pod.Spec.ServiceAccountName])
	for _, source := range container.EnvFrom {
		assert.True(t, w.secrets[source.SecretRef.Name])
	}
	opened := map[int32]bool{}
	named := map[string]bool{}
	for _, p := range container.Ports {
		opened[p.ContainerPort], named[p.Name] = true, true
	}
	for _, port := range w.ports {
		assert.True(t, opened[port], "the container does not open %d", port)
	}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
		assert.True(t, named[probe.HTTPGet.Port.StrVal], "a probe asks at a port without a name")
	}
	distribution := image(t, container.Image)
	assert.Equal(t, []string{"--config", "/etc/" + distribution + "/config.yaml"}, container.Args)
	checkVolumes(t, w, container, distribution)
}

// image returns the distribution in an image.
func image(t *testing.T, name string) string {
	t.Helper()
	name, version, found := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	require.True(t, found)
	assert.NotEqual(t, "latest", version)
	return name
}

func checkVolumes(t *testing.T, w *workload, container *corev1.Container, distribution string) {
	t.Helper()
	volumes := map[string]string{} // contents by volume name
	for _, v := range w.pod.Spec.Volumes {
		volumes[v.Name] = ""
		if v.ConfigMap != nil {
			require.Contains(t, w.configs, v.ConfigMap.Name)
			volumes[v.Name] = w.configs[v.ConfigMap.Name].Data["config.yaml"]
		}
	}
	for i := range w.claims {
		volumes[w.claims[i].Name] = ""
	}
	mounted := map[string]string{}
	for _, mount := range container.VolumeMounts {
		require.Contains(t, volumes, mount.Name)
		mounted[mount.MountPath] = volumes[mount.Name]
	}
	config := mounted["/etc/"+distribution]
	require.NotEmpty(t, config, "nothing is where the arguments look for the configuration")
	assert.Contains(t, config, "/var/lib/"+distribution)
	assert.Contains(t, mounted, "/var/lib/"+distribution, "the queue needs a volume: the root is read-only")
	for port := range strings.FieldsSeq("8888 13133") {
		assert.Contains(t, config, port)
	}
	checkConfig(t, distribution, config)
}

// checkConfig validates a pod's configuration with a distribution.
func checkConfig(t *testing.T, distribution, config string) {
	t.Helper()
	token := configFile(t, "some file that is there")
	path := configFile(t, strings.ReplaceAll(config, accountToken, token))
	exit, output := command(t, distribution, configEnv(t), "validate", "--config", path)
	assert.Zero(t, exit, output)
	assert.NoError(t, fits(t, configSchema(t), config))
}
