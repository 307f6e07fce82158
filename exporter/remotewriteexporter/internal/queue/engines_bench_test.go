// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/segments"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// BenchmarkEngines stores rounds of four requests of 50,000 samples, and delivers each some rounds later. It reports
// the throughput per second, and the size of the files when everything is delivered.
func BenchmarkEngines(b *testing.B) {
	const requests, samples, size, behind = 4, 50_000, 200_000, 16
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(rand.Uint32())
	}
	round := make([]block.Block, requests)
	for i := range round {
		round[i] = block.New(block.Header{Version: promwrite.V2, Samples: samples, RawSize: size, Shard: i}, body)
	}
	for _, sync := range []bool{true, false} {
		name := map[bool]string{true: "fsync", false: "none"}[sync]
		for kind, open := range map[string]func(b *testing.B, directory string, sync bool) (storage.Client, func()){
			"directory": benchSegments, "file_storage": benchFiles,
		} {
			b.Run(kind+"/"+name, func(b *testing.B) {
				directory := b.TempDir()
				client, end := open(b, directory, sync)
				q, err := Open(b.Context(), Config{
					Destinations: []string{"a"}, Policy: Policy{Size: 1 << 40}, Storage: client,
					Dropped: func(int, string, block.Header) {}, StorageFailed: func(err error) { b.Error(err) },
				})
				require.NoError(b, err)
				deliver := func() {
					for range requests {
						l, err := q.Next(b.Context(), 0, Bound{})
						require.NoError(b, err)
						l.Done(nil)
					}
				}
				rounds := 0
				for b.Loop() {
					require.NoError(b, q.Push(b.Context(), 0, round, nil))
					if rounds++; rounds > behind {
						deliver()
					}
				}
				b.ReportMetric(float64(rounds*requests*samples)/b.Elapsed().Seconds()/1e6, "Msamples/s")
				for q.Stats(0).Blocks > 0 {
					deliver()
				}
				left := int64(0)
				require.NoError(b, filepath.Walk(directory, func(_ string, info os.FileInfo, err error) error {
					if err == nil && !info.IsDir() {
						left += info.Size()
					}
					return err
				}))
				b.ReportMetric(float64(left)/1e6, "MB-left")
				if kind == "directory" {
					require.Less(b, left, int64(64<<10))
				}
				require.NoError(b, q.Close(b.Context()))
				end()
			})
		}
	}
}

func benchSegments(b *testing.B, directory string, sync bool) (storage.Client, func()) {
	b.Helper()
	store, err := segments.Open(directory, segments.Options{Sync: sync})
	require.NoError(b, err)
	return store, func() {}
}

func benchFiles(b *testing.B, directory string, sync bool) (storage.Client, func()) {
	b.Helper()
	factory := filestorage.NewFactory()
	cfg := factory.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory, cfg.FSync = directory, sync
	e, err := factory.Create(b.Context(), extensiontest.NewNopSettings(factory.Type()), cfg)
	require.NoError(b, err)
	require.NoError(b, e.Start(b.Context(), nil))
	client, err := e.(storage.Extension).GetClient(b.Context(), component.KindExporter, component.MustNewID("bench"), "queue")
	require.NoError(b, err)
	return client, func() { require.NoError(b, e.Shutdown(b.Context())) }
}
