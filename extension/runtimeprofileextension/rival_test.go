// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRivalIsFound(t *testing.T) {
	f := func(want, yaml string) {
		t.Helper()
		assert.Equal(t, want, findRival(effective(t, yaml)))
	}
	f("", "{}")
	f("", "extensions: {cgroupruntime: }") // not in use
	f("", "service: {extensions: [runtimeprofile, cgroupruntimes]}")
	f("cgroupruntime", "extensions: {cgroupruntime: }\nservice: {extensions: [cgroupruntime]}")
	f("cgroupruntime/a", "extensions: {cgroupruntime/a: {gomemlimit: {ratio: 0.5}}}\nservice: {extensions: [runtimeprofile, cgroupruntime/a]}")
	f("cgroupruntime/a", "extensions: {cgroupruntime/a: {gomemlimit: {enabled: true}}}\nservice: {extensions: [cgroupruntime/a]}")
	f("", "extensions: {cgroupruntime: {gomemlimit: {enabled: false}}}\nservice: {extensions: [cgroupruntime]}")
	f("cgroupruntime/b", `
extensions: {cgroupruntime/a: {gomemlimit: {enabled: false}}, cgroupruntime/b: {gomaxprocs: {enabled: false}}}
service: {extensions: [cgroupruntime/a, cgroupruntime/b]}`)
}
