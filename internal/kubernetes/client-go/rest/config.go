// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package rest sends requests to Kubernetes' API.
package rest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// ErrNotInCluster is returned to a process outside of a cluster.
var ErrNotInCluster = errors.New("unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined")

// accountDir is the directory with the service account of a pod.
var accountDir = "/var/run/secrets/kubernetes.io/serviceaccount/"

// A Config is the address of an API, with the credentials for it.
type Config struct {
	// Host is a URL, or a host with a port.
	Host      string
	UserAgent string
	// ContentType is set by service discovery for the original. This client uses JSON.
	ContentType string

	// Transport replaces all that follows.
	Transport http.RoundTripper

	BearerToken        string
	BearerTokenFile    string // read again for each request
	Username, Password string
	Impersonate        ImpersonationConfig
	Exec               *ExecConfig

	TLS                TLSClientConfig
	Proxy              func(*http.Request) (*url.URL, error)
	DisableCompression bool
}

// TLSClientConfig is how the API and the client identify themselves. Data takes precedence over files.
type TLSClientConfig struct {
	Insecure   bool
	ServerName string
	CAFile     string
	CAData     []byte
	CertFile   string
	CertData   []byte
	KeyFile    string
	KeyData    []byte
}

// ImpersonationConfig is the user as whom a client acts.
type ImpersonationConfig struct {
	UserName string
	UID      string
	Groups   []string
	Extra    map[string][]string
}

// InClusterConfig returns the configuration of a pod.
func InClusterConfig() (*Config, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, ErrNotInCluster
	}
	token, err := os.ReadFile(accountDir + "token")
	if err != nil {
		return nil, err
	}
	return &Config{
		Host:            "https://" + net.JoinHostPort(host, port),
		TLS:             TLSClientConfig{CAFile: accountDir + "ca.crt"},
		BearerToken:     string(token),
		BearerTokenFile: accountDir + "token",
	}, nil
}

// secure reports whether to use TLS if the host has no scheme.
func (c *Config) secure() bool {
	t := c.TLS
	return t.Insecure || t.CAFile != "" || len(t.CAData) > 0 || t.CertFile != "" || len(t.CertData) > 0
}

// BaseURL returns the URL at which the API's paths begin.
func (c *Config) BaseURL() (*url.URL, error) {
	host := c.Host
	if host == "" {
		host = "localhost"
	}
	if !strings.Contains(host, "://") {
		scheme := "http://"
		if c.secure() {
			scheme = "https://"
		}
		host = scheme + host
	}
	u, err := url.Parse(host)
	if err != nil {
		return nil, fmt.Errorf("cannot understand the API's address: %w", err)
	}
	u.Path, u.RawPath, u.RawQuery, u.Fragment = strings.TrimRight(u.Path, "/"), "", "", ""
	return u, nil
}

// HTTPClientFor makes a client that authenticates itself.
func HTTPClientFor(c *Config) (*http.Client, error) {
	if c.Transport != nil {
		return &http.Client{Transport: c.Transport}, nil
	}
	t, err := c.TLS.config()
	if err != nil {
		return nil, err
	}
	a := &account{config: c, base: transport(c, t)}
	if c.Exec != nil {
		a.plugin = &plugin{config: c.Exec}
		t.GetClientCertificate = a.plugin.clientCertificate(t.Certificates)
		t.Certificates = nil
	}
	return &http.Client{Transport: a}, nil
}

const (
	dialTimeout = 30 * time.Second
	// A watch is silent while nothing changes. Pings detect a peer that has disappeared.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
)

func transport(c *Config, t *tls.Config) *http.Transport {
	proxy := c.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext,
		TLSClientConfig:     t,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression:  c.DisableCompression,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
}

func (c *TLSClientConfig) config() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, InsecureSkipVerify: c.Insecure} //nolint:gosec // its user says so
	ca, err := dataOf(c.CAData, c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the API's certificate authority: %w", err)
	}
	if len(ca) > 0 {
		if t.RootCAs = x509.NewCertPool(); !t.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("the API's certificate authority has no certificate in it")
		}
	}
	cert, err := dataOf(c.CertData, c.CertFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the client's certificate: %w", err)
	}
	key, err := dataOf(c.KeyData, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the client's key: %w", err)
	}
	if len(cert) > 0 {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("cannot use the client's certificate: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
		if c.CertFile != "" && len(c.CertData) == 0 { // a file may be renewed
			t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				renewed, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
				if err != nil {
					return &pair, nil //nolint:nilerr // it is being renewed
				}
				return &renewed, nil
			}
		}
	}
	return t, nil
}

func dataOf(data []byte, file string) ([]byte, error) {
	if len(data) > 0 || file == "" {
		return data, nil
	}
	return os.ReadFile(file) //nolint:gosec // the configuration names it
}

// An account authenticates each request.
type account struct {
	config *Config
	base   *http.Transport
	plugin *plugin
}

// RoundTrip implements http.RoundTripper.
func (a *account) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	c := a.config
	var token string
	switch {
	case r.Header.Get("Authorization") != "":
	case a.plugin != nil:
		var err error
		if token, err = a.plugin.token(r.Context()); err != nil {
			return nil, err
		}
	case c.Username != "" || c.Password != "":
		r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(c.Username+":"+c.Password)))
	default:
		token = c.bearerToken()
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	c.Impersonate.set(r.Header)
	response, err := a.base.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusUnauthorized && a.plugin != nil {
		a.plugin.forget()
	}
	return response, err
}

// CloseIdleConnections is called by http.Client.
func (a *account) CloseIdleConnections() { a.base.CloseIdleConnections() }

// bearerToken returns the token in the file, or the configured one if that cannot be read.
func (c *Config) bearerToken() string {
	if c.BearerTokenFile != "" {
		if token, err := os.ReadFile(c.BearerTokenFile); err == nil {
			return strings.TrimSpace(string(token))
		}
	}
	return strings.TrimSpace(c.BearerToken)
}

func (i *ImpersonationConfig) set(h http.Header) {
	if i.UserName == "" {
		return
	}
	h.Set("Impersonate-User", i.UserName)
	if i.UID != "" {
		h.Set("Impersonate-Uid", i.UID)
	}
	for _, group := range i.Groups {
		h.Add("Impersonate-Group", group)
	}
	for key, values := range i.Extra {
		for _, value := range values {
			h.Add("Impersonate-Extra-"+url.PathEscape(key), value)
		}
	}
}
