// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package farm

import (
	"bytes"
	"compress/flate"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Token is the token that targets with TLS require.
const Token = "farm-token"

// Secured are the lines of a scrape configuration for targets with TLS.
var Secured = []string{
	"scheme: https",
	"tls_config: {insecure_skip_verify: true}",
	"authorization: {credentials: " + Token + "}",
}

// newTLS makes a certificate for all targets; agents do not verify it.
func newTLS() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "farm"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("cannot make a certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, nil
}

// bombSize is the decompressed size of the bomb, which has about a megabyte.
const bombSize = 1 << 30

// newBomb makes a page of comments. It repeats one piece, compressed once, because compression is reset after each
// piece.
func newBomb() []byte {
	const piece = 1 << 20
	plain := bytes.Repeat([]byte("# It was a quiet night.\n"), piece/24+1)[:piece]
	plain[piece-1] = '\n'
	plain[0] = '#'
	var deflated bytes.Buffer
	w := mustFlate(flate.BestCompression)
	w.Reset(&deflated)
	if _, err := w.Write(plain); err != nil {
		panic(fmt.Sprintf("cannot write to memory: %v", err))
	}
	if err := w.Flush(); err != nil {
		panic(fmt.Sprintf("cannot write to memory: %v", err))
	}
	body, crc := bytes.Clone(gzipHeader), uint32(0)
	for range bombSize / piece {
		body = append(body, deflated.Bytes()...)
		crc = crc32.Update(crc, crc32.IEEETable, plain)
	}
	body = appendDeflate(body, nil)
	body = binary.LittleEndian.AppendUint32(body, crc)
	return binary.LittleEndian.AppendUint32(body, bombSize&0xffffffff)
}

// beHostile serves one of the two hostile targets.
func (f *Farm) beHostile(w http.ResponseWriter, r *http.Request, which int) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if which == 0 {
		w.Header().Set("Content-Encoding", Gzip.String())
		w.Header().Set("Content-Length", strconv.Itoa(len(f.bomb)))
		_, _ = w.Write(f.bomb)
		return
	}
	drip := time.NewTicker(time.Second)
	defer drip.Stop()
	for {
		if _, err := w.Write([]byte("#")); err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-drip.C:
		case <-r.Context().Done():
			return
		}
	}
}
