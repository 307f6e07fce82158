// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
)

// records are the entries of a name server.
type records struct {
	mu        sync.Mutex
	addresses map[string][]netip.Addr
	services  map[string][]*net.SRV
	asked     int
	err       error
}

func (r *records) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return r.addresses[host], r.err
}

func (r *records) LookupSRV(_ context.Context, _, _, name string) (string, []*net.SRV, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return name, r.services[name], r.err
}

// portOf returns the port of a destination.
func portOf(t *testing.T, d *received) uint16 {
	t.Helper()
	u, err := url.Parse(d.URL)
	require.NoError(t, err)
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	require.NoError(t, err)
	return uint16(port)
}

// TestRequestsGoToAllOfAName: in turn, and addresses that cannot be connected to do not delay anything. The Host header
// has the name.
func TestRequestsGoToAllOfAName(t *testing.T) {
	named := func(t *testing.T) func(int, http.ResponseWriter, *http.Request) bool {
		return func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			if host, _, _ := strings.Cut(r.Host, ":"); host != "flock.example" {
				t.Errorf("asked as %q", r.Host)
			}
			return false
		}
	}
	a, b := newReceived(t, named(t)), newReceived(t, named(t))
	dead := newReceived(t, nil)
	dead.Close()
	for name, c := range map[string]struct {
		endpoint string
		records  *records
		all      []*received
	}{
		"dns": {
			"http://dns+flock.example:" + strconv.Itoa(int(portOf(t, a))) + "/write",
			// Nothing listens at the second address.
			&records{addresses: map[string][]netip.Addr{"flock.example": {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.99.9.9")}}},
			[]*received{a},
		},
		"srv": {
			"http://srv+flock.example/write",
			&records{services: map[string][]*net.SRV{"flock.example": {
				{Target: "127.0.0.1.", Port: portOf(t, a)},
				{Target: "127.0.0.1", Port: portOf(t, dead)},
				{Target: "127.0.0.1", Port: portOf(t, b)},
				{Target: "127.0.0.1", Port: 1, Priority: 1},
			}}},
			[]*received{a, b},
		},
		"backups": {
			"http://srv+flock.example/write",
			&records{services: map[string][]*net.SRV{"flock.example": {
				{Target: "127.0.0.1", Port: portOf(t, dead), Priority: 5},
				{Target: "127.0.0.1", Port: portOf(t, a), Priority: 7},
				{Target: "127.0.0.1", Port: portOf(t, b), Priority: 7},
				{Target: "127.0.0.1", Port: 1, Priority: 9},
			}}},
			[]*received{a, b},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, requests, ofB := a.samples()+b.samples(), len(a.headers())+len(b.headers()), len(b.headers())
			e := create(t, func(cfg *Config) { cfg.Endpoint = c.endpoint })
			e.resolver = c.records
			require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
			const calls = 12
			for n := range calls {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(1, requests+n)))
				eventually(t, func() bool { return a.samples()+b.samples() == before+n+1 }, "it arrives")
			}
			require.NoError(t, e.Shutdown(t.Context()))
			require.Zero(t, e.telemetry.destinations[0].snapshot().Retries, "an address that is dead is no failure")
			require.Equal(t, 1, c.records.asked, "what is known is not asked for again")
			if len(c.all) == 2 {
				require.GreaterOrEqual(t, len(b.headers())-ofB, calls/3)
				require.LessOrEqual(t, len(b.headers())-ofB, calls*2/3+1)
			}
		})
	}
}

// TestSilentAddressDelaysLittle: a machine that is gone swallows packets. A request goes to the next address in time, and
// others do not try it for a while.
func TestSilentAddressDelaysLittle(t *testing.T) {
	for name, all := range map[string]found{
		"of the first": {first: []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"}},
		"a backup":     {first: []string{"10.0.0.1:80"}, backup: []string{"10.0.0.2:80"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				silent := 0
				transport := &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
					if address == "10.0.0.1:80" {
						silent++
						<-ctx.Done()
						return nil, &net.OpError{Op: opDial, Net: "tcp", Err: ctx.Err()}
					}
					here, there := net.Pipe()
					go func() {
						for from := bufio.NewReader(there); ; {
							r, err := http.ReadRequest(from)
							if err != nil {
								return
							}
							_, _ = io.Copy(io.Discard, r.Body)
							_, _ = there.Write([]byte("HTTP/1.1 204 No Content\r\n\r\n"))
						}
					}()
					return here, nil
				}}
				b := &balancer{of: &balanced{lookup: func(context.Context) (found, error) { return all, nil }}}
				wrap, err := b.GetHTTPRoundTripper(t.Context())
				require.NoError(t, err)
				client := http.Client{Timeout: 30 * time.Second}
				client.Transport, err = wrap(t.Context(), transport)
				require.NoError(t, err)
				defer transport.CloseIdleConnections()
				begun := time.Now()
				const requests = 100
				for range requests {
					response, err := client.Post("http://flock.example/write", "text/plain", strings.NewReader("honk"))
					require.NoError(t, err)
					require.NoError(t, response.Body.Close())
					require.Equal(t, http.StatusNoContent, response.StatusCode)
					time.Sleep(time.Second / 2)
				}
				waited := time.Since(begun) - requests*time.Second/2
				require.LessOrEqual(t, waited, 2*connectWait)
				require.Positive(t, waited, "the silent one is tried")
				require.LessOrEqual(t, silent, 2)
			})
		})
	}
}

// TestSilentNeighboursAreAvoided: if a zone is gone, the addresses that follow each other are silent, more of them than a
// request tries. Requests go to others of the first priority value, and to a backup only if there are none.
func TestSilentNeighboursAreAvoided(t *testing.T) {
	for _, backup := range [][]string{nil, {"10.0.1.1:80"}} {
		synctest.Test(t, func(t *testing.T) {
			const zone = maxDials + 1
			var all []string
			for i := range 3 * zone {
				all = append(all, fmt.Sprintf("10.0.0.%d:80", i+1))
			}
			b := &balanced{lookup: func(context.Context) (found, error) { return found{all, backup}, nil }}
			next := func() []string {
				addresses, err := b.next(t.Context())
				require.NoError(t, err)
				require.Len(t, addresses, maxDials+len(backup))
				return addresses
			}
			begins := func() map[string]bool {
				begin := map[string]bool{}
				for range all {
					begin[next()[0]] = true
				}
				return begin
			}
			for _, address := range all[:zone] {
				b.avoid(address)
			}
			begin := begins()
			require.Len(t, begin, 2*zone, "requests go to all others")
			for _, address := range append(all[:zone:zone], backup...) {
				require.NotContains(t, begin, address)
			}
			for _, address := range all[zone:] {
				b.avoid(address)
			}
			for _, address := range backup {
				require.Equal(t, address, next()[0])
				b.avoid(address)
			}
			next() // there is nothing else to try
			time.Sleep(deadWait + 1)
			require.Len(t, begins(), len(all))
		})
	}
}

// TestDeadConnectionsCostOneTimeout: the connections to a machine that is gone look as before, and swallow requests. After
// the first that gets no answer the others are not used, and the address is only tried after others.
func TestDeadConnectionsCostOneTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gone atomic.Bool
		transport := &http.Transport{MaxIdleConnsPerHost: 16, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			if address == "10.0.0.1:80" && gone.Load() {
				<-ctx.Done()
				return nil, &net.OpError{Op: opDial, Net: "tcp", Err: ctx.Err()}
			}
			here, there := net.Pipe()
			go func() {
				for from := bufio.NewReader(there); ; {
					r, err := http.ReadRequest(from)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					if address == "10.0.0.1:80" && gone.Load() {
						continue
					}
					time.Sleep(time.Millisecond)
					_, _ = there.Write([]byte("HTTP/1.1 204 No Content\r\n\r\n"))
				}
			}()
			return here, nil
		}}
		all := found{first: []string{"10.0.0.1:80", "10.0.0.2:80"}}
		b := &balancer{of: &balanced{lookup: func(context.Context) (found, error) { return all, nil }}}
		wrap, err := b.GetHTTPRoundTripper(t.Context())
		require.NoError(t, err)
		client := http.Client{Timeout: 30 * time.Second}
		client.Transport, err = wrap(t.Context(), transport)
		require.NoError(t, err)
		defer transport.CloseIdleConnections()
		send := func() error {
			response, err := client.Post("http://flock.example/write", "text/plain", strings.NewReader("honk"))
			if err == nil {
				err = response.Body.Close()
			}
			return err
		}
		var shards sync.WaitGroup
		for range 16 { // eight connections to each
			shards.Go(func() { assert.NoError(t, send()) })
		}
		shards.Wait()
		gone.Store(true)
		begun, failed := time.Now(), 0
		for time.Since(begun) < 5*time.Minute {
			if send() != nil {
				failed++
			}
			time.Sleep(time.Second / 2)
		}
		require.Equal(t, 1, failed)
	})
}

// TestAddressesFollowTheName: addresses are looked up again, and stay the same while lookups fail.
func TestAddressesFollowTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &records{err: errors.New("no name server")}
		u, err := url.Parse("https://flock.example/write")
		require.NoError(t, err)
		b := &balanced{lookup: func(ctx context.Context) (found, error) { return lookUp(ctx, r, u, byAddress) }}
		_, err = b.next(t.Context())
		require.ErrorContains(t, err, "no name server")
		know := func(err error, addresses ...string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.err, r.addresses = err, map[string][]netip.Addr{}
			for _, a := range addresses {
				r.addresses["flock.example"] = append(r.addresses["flock.example"], netip.MustParseAddr(a))
			}
		}
		seen := func() map[string]int {
			counts := map[string]int{}
			for range 60 {
				few, err := b.next(t.Context())
				require.NoError(t, err)
				counts[few[0]]++
			}
			return counts
		}
		know(nil)
		_, err = b.next(t.Context())
		require.ErrorIs(t, err, errNoAddress)
		know(nil, "10.0.0.1", "10.0.0.2", "::1", "10.0.0.2")
		require.Equal(t, map[string]int{"10.0.0.1:443": 20, "10.0.0.2:443": 20, "[::1]:443": 20}, seen())
		know(nil, "10.0.0.3")
		require.Len(t, seen(), 3)
		time.Sleep(lookupInterval + 1)
		require.Equal(t, map[string]int{"10.0.0.3:443": 60}, seen())
		time.Sleep(lookupInterval + 1)
		know(errors.New("no name server"))
		asked := r.asked
		require.Equal(t, map[string]int{"10.0.0.3:443": 60}, seen())
		require.Equal(t, asked+1, r.asked, "it is not asked for every request")
	})
}

func TestEndpointsSayWhereAddressesAre(t *testing.T) {
	for endpoint, want := range map[string][2]string{
		"http://prometheus:9090/api/v1/write":           {"http://prometheus:9090/api/v1/write", ""},
		"https://dns+flock:8480/write?x=%2F":            {"https://flock:8480/write?x=%2F", byAddress},
		"http://user:se%40cret@srv+_write._tcp.flock/a": {"http://user:se%40cret@_write._tcp.flock/a", byService},
		"http://dns-flock/dns+flock":                    {"http://dns-flock/dns+flock", ""},
	} {
		clean, by := discovery(endpoint)
		require.Equal(t, want, [2]string{clean, by})
	}
	cfg := NewDefaultConfig()
	cfg.Endpoint = "http://srv+flock.example/write"
	require.NoError(t, cfg.Validate())
	cfg.Endpoint = "http://srv+flock.example:80/write"
	require.ErrorContains(t, cfg.Validate(), "`endpoint` must have no port after `srv+`")
}

// TestTheCertificateIsTheName: whatever the address is, the certificate has to be valid for the name.
func TestTheCertificateIsTheName(t *testing.T) {
	secure := &received{t: t, series: map[string][]point{}}
	secure.Server = httptest.NewTLSServer(http.HandlerFunc(secure.serve))
	t.Cleanup(secure.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	u, err := url.Parse(secure.URL)
	require.NoError(t, err)
	for name, fine := range map[string]bool{"example.com": true, "example.org": false} {
		e := create(t, func(c *Config) {
			c.Endpoint = "https://dns+" + name + ":" + u.Port() + "/write"
			c.HTTP.TLS.CAPem = configopaque.String(authority)
			c.ShutdownTimeout = 50 * time.Millisecond
		})
		e.resolver = &records{addresses: map[string][]netip.Addr{name: {netip.MustParseAddr("127.0.0.1")}}}
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(1, 0)))
		if fine {
			eventually(t, func() bool { return secure.samples() == 1 }, "it arrives")
		} else {
			eventually(t, func() bool { return e.telemetry.destinations[0].snapshot().Retries > 0 }, "it is not taken")
		}
		require.NoError(t, e.Shutdown(t.Context()))
	}
	require.Equal(t, 1, secure.samples())
}
