// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoletest

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// Passes sends batches through a tap until the test ends.
func Passes(t testing.TB, tap *inspect.Tap) {
	t.Helper()
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("token", "s3cr3t")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("geese")
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetIntValue(42)
	p.Attributes().PutStr("url", "http://me:s3cr3t@pond/?token=s3cr3t")
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				tap.Before(md).After(md)
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		<-ended
	})
}
