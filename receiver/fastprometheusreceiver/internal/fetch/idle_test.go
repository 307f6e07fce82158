// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	promcommon "github.com/prometheus/common/config"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"
)

// serveSocket serves connections of a Unix socket, where sent bytes are received at once.
func serveSocket(t *testing.T, handle func(conn net.Conn)) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
	return socket
}

// Bytes after a response, in the same piece or later, are not the beginning of the next one.
func TestDropsWhatNobodyAskedFor(t *testing.T) {
	a := newAuthority(t, t.TempDir(), "ca")
	node, _, _ := a.pair(t, t.TempDir(), "node.example")
	trust := tlsJob(func(c *promcommon.TLSConfig) { c.CAFile = a.path })
	for name, more := range map[string]string{
		"rest of a body":   "# längér als gesagt\n",
		"second answer":    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nup 0\n",
		"begin of another": "HTTP/1.1 2",
	} {
		for _, isSecured := range []bool{false, true} {
			for _, isLater := range []bool{false, true} {
				asked := make(chan struct{})
				sent := make(chan struct{})
				socket := serveSocket(t, func(conn net.Conn) {
					if isSecured {
						conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{node}})
					}
					requests(conn, func(*http.Request) bool {
						if isLater {
							io.WriteString(conn, page200)
							<-asked
							io.WriteString(conn, more)
						} else {
							io.WriteString(conn, page200+more)
							<-asked
						}
						sent <- struct{}{}
						return true
					})
				})
				url, edit := "http://node.example/metrics", func(*promconfig.ScrapeConfig) {}
				if isSecured {
					url, edit = "https://node.example/metrics", trust
				}
				target := newClient(t, jobConfig(edit), Options{}).NewTarget(url, socket, patient, accept)
				for range 3 {
					page, err := get(target)
					require.NoError(t, err, "%s, secured %t, later %t", name, isSecured, isLater)
					require.Equal(t, "up 1\n", page, "%s, secured %t, later %t", name, isSecured, isLater)
					asked <- struct{}{}
					<-sent
				}
				require.Equal(t, Plain, target.Road())
				target.Close()
			}
		}
	}
}
