// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/processor"
)

// A changeable collector can get another configuration, like by a signal or from a provider that watches a file.
type changeable struct {
	*collector

	config *given
}

// given is a configuration provider that returns the text it was given last.
type given struct {
	mu      sync.Mutex
	text    string
	changed confmap.WatcherFunc
}

func (*given) Scheme() string                 { return "given" }
func (*given) Shutdown(context.Context) error { return nil }

func (g *given) Retrieve(_ context.Context, _ string, changed confmap.WatcherFunc) (*confmap.Retrieved, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed = changed
	return confmap.NewRetrievedFromYAML([]byte(g.text))
}

func startChangeable(t *testing.T, config string, more ...processor.Factory) *changeable {
	t.Helper()
	g := &given{text: config}
	factory := confmap.NewProviderFactory(func(confmap.ProviderSettings) confmap.Provider { return g })
	return &changeable{startFrom(t, "given:", factory, more...), g}
}

// What the Collector logs once it uses another configuration.
const (
	allReady  = "Everything is ready. Begin running and processing data."
	partReady = "Partial receiver reload completed successfully"
)

// change gives the collector another configuration and waits until it is used. If partial, only receivers may differ.
func (c *changeable) change(t *testing.T, config string, partial bool) {
	t.Helper()
	c.config.mu.Lock()
	c.config.text = config
	changed := c.config.changed
	c.config.mu.Unlock()
	changed(&confmap.ChangeEvent{})
	says, times := allReady, 2
	if partial {
		says, times = partReady, 1
	}
	require.Eventually(t, func() bool { return c.log.FilterMessage(says).Len() == times }, patience, glance, says)
}

// patient waits until left returns 0, as long as what it returns decreases.
func patient(t *testing.T, left func() (int, string)) {
	t.Helper()
	least, since := -1, time.Now()
	for {
		n, what := left()
		if n == 0 {
			return
		}
		if least < 0 || n < least {
			least, since = n, time.Now()
		}
		require.Less(t, time.Since(since), 2*patience, "%d %s", n, what)
		time.Sleep(10 * glance)
	}
}

// eventually is like require.Eventually, for callers that report more than a failed condition.
func eventually(is func() bool, within time.Duration) bool {
	for end := time.Now().Add(within); ; time.Sleep(100 * glance) {
		if is() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
