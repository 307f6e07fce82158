// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package certtest makes certificates for tests that use TLS on this machine.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// SelfSigned returns a certificate for this machine, for servers and clients, and its key, in PEM. To trust it, use it
// as an authority.
func SelfSigned(t testing.TB) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	block := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	return block("CERTIFICATE", signed), block("PRIVATE KEY", secret)
}

// Pool returns a pool of authorities that trusts certificates.
func Pool(t testing.TB, certificates ...string) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	for _, c := range certificates {
		require.True(t, pool.AppendCertsFromPEM([]byte(c)))
	}
	return pool
}
