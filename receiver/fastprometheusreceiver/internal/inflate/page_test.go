// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
)

// page returns a text exposition of about size bytes that resembles an exporter's: few names, many labels, and values
// of all kinds. It depends only on the seed.
func page(size int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var b bytes.Buffer
	names := []string{
		"node_cpu_seconds_total", "node_filesystem_avail_bytes", "node_network_receive_bytes_total",
		"node_memory_Active_anon_bytes", "go_gc_duration_seconds", "node_disk_io_time_seconds_total",
	}
	modes := []string{"idle", "iowait", "irq", "nice", "softirq", "steal", "system", "user"}
	for f := 0; b.Len() < size; f++ {
		name := fmt.Sprintf("%s_%d", names[f%len(names)], f/len(names))
		fmt.Fprintf(&b, "# HELP %s What %s counts since boot.\n# TYPE %s counter\n", name, name, name)
		for i := range 1 + r.IntN(16) {
			switch f % 4 {
			case 0:
				fmt.Fprintf(&b, "%s{cpu=\"%d\",mode=%q} %g\n", name, i/8, modes[i%8], r.Float64()*1e6)
			case 1:
				fmt.Fprintf(&b, "%s{device=\"/dev/sda%d\",fstype=\"ext4\",mountpoint=\"/mnt/%d\"} %d\n", name, i, i, r.Uint64()>>20)
			case 2:
				fmt.Fprintf(&b, "%s{device=\"eth%d\"} 0\n", name, i)
			default:
				fmt.Fprintf(&b, "%s %.17g\n", name, r.ExpFloat64())
			}
		}
	}
	return b.Bytes()
}

func gzipped(tb testing.TB, body []byte, level int) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, level)
	require.NoError(tb, err)
	_, err = w.Write(body)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return b.Bytes()
}
