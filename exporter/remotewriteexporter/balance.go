// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configmiddleware"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
)

// Prefixes of the host in a URL that say how its addresses are found.
const (
	byAddress = "dns+" // by A and AAAA records
	byService = "srv+" // by SRV records, which have ports, too
)

const (
	// lookupInterval is how often the addresses of a name are looked up, while requests are sent to it.
	lookupInterval = 10 * time.Second
	// lookupTimeout limits one look-up, and is the pause after one that failed while older addresses are known.
	lookupTimeout = 5 * time.Second
	// maxAddresses limits how many addresses of a name are used, since each may have connections.
	maxAddresses = 256
	// maxDials is how many addresses are tried for a request when connecting fails.
	maxDials = 3
	// connectWait is how long connecting to an address may take: a machine that is gone does not refuse, it is silent. It is
	// enough for a packet that is lost twice.
	connectWait = 5 * time.Second
	// deadWait is how long an address that could not be connected to, or did not answer in time, is only tried after others.
	deadWait = time.Minute
)

// opDial is the operation of a net.OpError that says that there is no connection.
const opDial = "dial"

var errNoAddress = errors.New("it has no address")

// resolver is the part of net.Resolver that is used.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// discovery removes the prefix of the host from an endpoint.
func discovery(endpoint string) (clean, by string) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint, ""
	}
	for _, by := range []string{byAddress, byService} {
		if name, ok := strings.CutPrefix(u.Host, by); ok {
			u.Host = name
			return u.String(), by
		}
	}
	return endpoint, ""
}

// balanced sends each request to the next of a name's addresses. Callers and authenticators see the name.
type balanced struct {
	http.RoundTripper

	lookup func(context.Context) (found, error)

	mu        sync.Mutex
	addresses found
	dead      []string  // addresses that could not be connected to, or did not answer
	deadUntil time.Time // when they are tried again
	turn      int
	until     time.Time // when to look them up again
	looking   bool
}

// found are the addresses of a name.
type found struct {
	first  []string // requests go to these
	backup []string // and to these while none of the first can be connected to
}

// balance makes a client balance its requests, below all other transports.
func balance(cfg *confighttp.ClientConfig, extensions map[component.ID]component.Component, by string, r resolver) (map[component.ID]component.Component, error) {
	u, err := url.Parse(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	b := &balanced{lookup: func(ctx context.Context) (found, error) { return lookUp(ctx, r, u, by) }}
	id := component.MustNewIDWithName("remotewrite", "balanced by "+by) // an ID that no configuration can have
	cfg.Middlewares = append(slices.Clone(cfg.Middlewares), configmiddleware.Config{ID: id})
	extensions = maps.Clone(extensions)
	if extensions == nil {
		extensions = map[component.ID]component.Component{}
	}
	extensions[id] = &balancer{b, u.Hostname()}
	return extensions, nil
}

// balancer is the middleware that wraps a transport in a balanced.
type balancer struct {
	of   *balanced
	name string
}

var _ extensionmiddleware.HTTPClient = (*balancer)(nil)

func (*balancer) Start(context.Context, component.Host) error { return nil }

func (*balancer) Shutdown(context.Context) error { return nil }

// GetHTTPRoundTripper wraps the transport, which must expect the certificate of the name, whatever address it connects
// to.
func (b *balancer) GetHTTPRoundTripper(context.Context) (extensionmiddleware.WrapHTTPRoundTripperFunc, error) {
	return func(_ context.Context, base http.RoundTripper) (http.RoundTripper, error) {
		if t, ok := base.(*http.Transport); ok {
			if t.TLSClientConfig == nil {
				t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
			}
			t.TLSClientConfig.ServerName = cmp.Or(t.TLSClientConfig.ServerName, b.name)
			if dial := t.DialContext; dial != nil {
				t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					ctx, cancel := context.WithTimeout(ctx, connectWait)
					defer cancel()
					return dial(ctx, network, address)
				}
			}
		}
		b.of.RoundTripper = base
		return b.of, nil
	}, nil
}

// RoundTrip tries a few addresses while connecting fails. A request that was sent is not sent again.
func (b *balanced) RoundTrip(r *http.Request) (*http.Response, error) {
	addresses, err := b.next(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, fmt.Errorf("cannot look up %s: %w", r.URL.Hostname(), err)
	}
	for i, address := range addresses {
		to := r.Clone(r.Context())
		to.Host = cmp.Or(r.Host, r.URL.Host)
		to.URL.Host = address
		if i > 0 {
			if to.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		response, err := b.RoundTripper.RoundTrip(to)
		dial := (*net.OpError)(nil)
		isConnected := !errors.As(err, &dial) || dial.Op != opDial
		if isConnected && isSilent(r.Context(), err) {
			b.avoid(address)
			b.CloseIdleConnections() // others to it are as dead
		}
		if err == nil || i == len(addresses)-1 || r.GetBody == nil || isConnected || r.Context().Err() != nil {
			return response, err
		}
		b.avoid(address)
	}
	return nil, errNoAddress
}

// isSilent reports whether a request got no answer in time. On a connection that was made before its machine was gone,
// that is the first sign of it.
func isSilent(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
		return true
	}
	deadline, has := ctx.Deadline() // a client's own timer may have ended it at the same time
	return has && !time.Now().Before(deadline)
}

// avoid has an address tried after others for a while.
func (b *balanced) avoid(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.After(b.deadUntil) {
		b.dead, b.deadUntil = nil, now.Add(deadWait)
	}
	if !slices.Contains(b.dead, address) {
		b.dead = append(b.dead, address)
	}
}

// CloseIdleConnections closes those of the transport.
func (b *balanced) CloseIdleConnections() { closeIdle(b.RoundTripper) }

// next returns the address whose turn it is, a few that follow it, and a few backups. Dead ones are only among them if there
// are not enough others, and come last.
func (b *balanced) next(ctx context.Context) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.addresses.first) == 0 || !b.looking && time.Now().After(b.until) {
		if err := b.refresh(ctx); err != nil {
			return nil, err
		}
	}
	b.turn++
	dead := b.dead
	if time.Now().After(b.deadUntil) {
		dead = nil
	}
	all, last := few(b.addresses.first, b.turn, dead)
	backup, lastBackup := few(b.addresses.backup, b.turn, dead)
	return slices.Concat(all, backup, last, lastBackup), nil
}

// few returns the address whose turn it is and those that follow it. If fewer than it takes are alive, they are followed
// by dead ones.
func few(all []string, turn int, dead []string) (out, last []string) {
	for i := range all {
		switch address := all[(turn+i)%len(all)]; {
		case len(out) == maxDials:
			return out, nil
		case !slices.Contains(dead, address):
			out = append(out, address)
		case len(last) < maxDials:
			last = append(last, address)
		}
	}
	return out, last[:min(len(last), maxDials-len(out))]
}

// refresh looks the addresses up, while other requests use the known ones. If it fails, they stay. The caller holds mu,
// which is released meanwhile.
func (b *balanced) refresh(ctx context.Context) error {
	b.looking = true
	b.mu.Unlock()
	bound, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addresses, err := b.lookup(bound)
	if err == nil && len(addresses.first) == 0 {
		err = errNoAddress
	}
	b.mu.Lock()
	b.looking = false
	if err != nil {
		b.until = time.Now().Add(lookupTimeout)
		if len(b.addresses.first) > 0 {
			return nil
		}
		return err
	}
	b.addresses, b.until = addresses, time.Now().Add(lookupInterval)
	return nil
}

// lookUp returns the addresses to connect to for a URL.
func lookUp(ctx context.Context, r resolver, u *url.URL, by string) (found, error) {
	if by == byService {
		return lookUpService(ctx, r, u.Hostname())
	}
	addresses, err := r.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return found{}, err
	}
	port := cmp.Or(u.Port(), "80")
	if u.Port() == "" && u.Scheme == "https" {
		port = "443"
	}
	var all []string
	for _, a := range addresses {
		all = append(all, net.JoinHostPort(a.Unmap().String(), port))
	}
	return found{first: bounded(all)}, nil
}

// lookUpService returns the addresses of the lowest priority value, and of the next as backups.
func lookUpService(ctx context.Context, r resolver, name string) (out found, err error) {
	_, records, err := r.LookupSRV(ctx, "", "", name)
	if err != nil {
		return out, err
	}
	slices.SortStableFunc(records, func(a, b *net.SRV) int { return cmp.Compare(a.Priority, b.Priority) })
	for _, s := range records {
		address := net.JoinHostPort(strings.TrimSuffix(s.Target, "."), strconv.Itoa(int(s.Port)))
		switch {
		case s.Priority == records[0].Priority:
			out.first = append(out.first, address)
		case s.Priority == records[len(out.first)].Priority:
			out.backup = append(out.backup, address)
		}
	}
	return found{bounded(out.first), bounded(out.backup)}, nil
}

// bounded returns the addresses in order, each once, and not more than are used.
func bounded(all []string) []string {
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), maxAddresses)]
}
