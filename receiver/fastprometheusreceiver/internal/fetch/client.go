// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	promcommon "github.com/prometheus/common/config"
	promconfig "github.com/prometheus/prometheus/config"
)

// DefaultMaxWire limits a body as transferred, if Options do not.
const DefaultMaxWire = 256 << 20

// Options are what a client is given by its receiver, rather than by the job.
type Options struct {
	// UserAgent is sent with each request.
	UserAgent string
	// LocalIdentity asks targets on this host for uncompressed pages: the network is free there, and compression costs
	// both sides.
	LocalIdentity bool
	// Memory lends the buffers into which bodies are received. Default: the heap, without a limit.
	Memory Memory
	// MaxWire limits the bytes of a body as transferred, compressed or not. Default DefaultMaxWire. The job's
	// body_size_limit applies, too.
	MaxWire int64
	// Dial makes connections. Default: a net.Dialer's, and for requests that go through net/http the one of Prometheus'
	// client.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// HTTP are further options for requests that go through net/http.
	HTTP []promcommon.HTTPClientOption
	// NetHTTP sends every request through net/http.
	NetHTTP bool
}

// A Client holds what the targets of one job share. It is safe for concurrent use.
type Client struct {
	config  promcommon.HTTPClientConfig // without OAuth2
	job     string
	options Options
	offered string // Accept-Encoding
	extra   headers
	proxied func(*http.Request) bool
	most    int64 // limit of an uncompressed page
	wire    int64 // limit of a compressed page
	plain   bool  // targets may use our own HTTP exchange

	library *http.Client
	secure  *secure
	oauth   *oauth // nil without OAuth2

	mu    sync.Mutex
	tails map[tail]string // the end of a request, which targets share
}

// tail is what the end of a request depends on.
type tail struct {
	accept  string
	timeout time.Duration
}

// NewClient prepares the client of a job. It fails where Prometheus' client would.
func NewClient(cfg *promconfig.ScrapeConfig, options Options) (*Client, error) {
	if options.Memory == nil {
		options.Memory = heap{}
	}
	if options.Dial == nil {
		options.Dial = (&net.Dialer{}).DialContext
	} else {
		options.HTTP = append(slices.Clip(options.HTTP), promcommon.WithDialContextFunc(options.Dial))
	}
	oauth, err := newOAuth(cfg.HTTPClientConfig.OAuth2, options)
	if err != nil {
		return nil, fmt.Errorf("cannot use `oauth2` of job %q: %w", cfg.JobName, err)
	}
	config := cfg.HTTPClientConfig
	config.OAuth2 = nil
	library, err := promcommon.NewClientFromConfig(config, cfg.JobName, options.HTTP...)
	if err != nil {
		return nil, fmt.Errorf("cannot create HTTP client of job %q: %w", cfg.JobName, err)
	}
	c := &Client{
		config:  config,
		job:     cfg.JobName,
		options: options,
		offered: identity,
		library: library,
		secure:  newSecure(config.TLSConfig),
		oauth:   oauth,
		tails:   map[tail]string{},
	}
	if cfg.EnableCompression {
		c.offered = compressed
	}
	if c.options.MaxWire <= 0 {
		c.options.MaxWire = DefaultMaxWire
	}
	c.most, c.wire = bounds(int64(cfg.BodySizeLimit), c.options.MaxWire)
	proxy := c.config.Proxy()
	c.proxied = func(r *http.Request) bool {
		if proxy == nil {
			return false
		}
		u, err := proxy(r)
		return u != nil || err != nil
	}
	var ok bool
	c.extra, ok = newHeaders(&c.config)
	c.plain = ok && !options.NetHTTP && oauth == nil && validValue(options.UserAgent)
	return c, nil
}

// bounds returns the limits of an uncompressed and of a compressed body. A page of exactly the limit is too large, as
// in Prometheus. Incompressible data grows a little when compressed.
func bounds(limit, wire int64) (plain, packed int64) {
	if limit <= 0 || limit > wire {
		return wire, wire
	}
	return limit - 1, min(limit+limit/8+1024, wire)
}

const (
	identity = "identity"
	// Preferring zstd needs weights: without them, servers choose by an order of their own.
	compressed = "zstd, gzip;q=0.9"
)

// Close closes the idle connections that net/http keeps. Targets close their own.
func (c *Client) Close() { c.library.CloseIdleConnections() }

// tail returns the end of a target's requests, without what changes from request to request.
func (c *Client) tail(accept string, timeout time.Duration) string {
	key := tail{accept, timeout}
	c.mu.Lock()
	defer c.mu.Unlock()
	text, ok := c.tails[key]
	if !ok {
		text = "Accept: " + accept + "\r\nX-Prometheus-Scrape-Timeout-Seconds: " + seconds(timeout) + "\r\n" + c.extra.fixed
		if c.options.UserAgent != "" {
			text += "User-Agent: " + c.options.UserAgent + "\r\n"
		}
		if len(c.tails) < maxTails {
			c.tails[key] = text
		}
	}
	return text
}

// maxTails limits the shared ends: one per timeout, which only relabelling makes more than one.
const maxTails = 1024

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// throughSocket returns a net/http client for a socket. It serves no other: net/http pools connections by address, which sockets do not have.
func (c *Client) throughSocket(socket string) (*http.Client, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return c.options.Dial(ctx, "unix", socket)
	}
	options := append(slices.Clip(c.options.HTTP), promcommon.WithDialContextFunc(dial))
	client, err := promcommon.NewClientFromConfig(c.config, c.job, options...)
	if err != nil {
		return nil, fmt.Errorf("cannot create HTTP client for socket %s: %w", socket, err)
	}
	return client, nil
}
