// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package certtest

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each side has a certificate, and trusts only that of the other.
func TestBothSidesTrustEachOther(t *testing.T) {
	certificate, key := SelfSigned(t)
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	require.NoError(t, err)
	own, stranger := Pool(t, certificate), Pool(t)

	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: own, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	defer server.Close()

	ask := func(c *tls.Config) error {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c}}
		defer client.CloseIdleConnections()
		response, err := client.Get(server.URL)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	require.NoError(t, ask(&tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: own}))
	require.Error(t, ask(&tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: stranger}))
	require.Error(t, ask(&tls.Config{RootCAs: own}))
}
