// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/config/configgrpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"

	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/arrivals"
)

// Memory that nobody has configured follows what there is.
var (
	// arrivalShare is for messages on their way.
	arrivalShare = memlimit.Share{Part: 8, Least: 32 << 20, Most: 1 << 30}
	// inFlightShare is for encoded requests in flight, which take several times as much decoded.
	inFlightShare = memlimit.Share{Part: 16, Least: 16 << 20, Most: 128 << 20}
	// streamShare is for what streams remember.
	streamShare = memlimit.Share{Part: 3, Least: 16 << 20, Most: 256 << 20}
)

// roomForArrivals is that share, or as much as a message of the largest size takes, as it is sent and unpacked.
func roomForArrivals(cfg *Config) int {
	room := int(arrivalShare.Of(memlimit.Available()))
	if cfg.Protocols.GRPC.HasValue() {
		room = max(room, 2*maxMessage(cfg.Protocols.GRPC.Get()))
	}
	if cfg.Protocols.HTTP.HasValue() {
		room = max(room, 2*int(cfg.Protocols.HTTP.Get().MaxRequestBodySize))
	}
	return room
}

// counted are credentials of a server that have its connections counted.
type counted struct {
	credentials.TransportCredentials

	by *arrivals.Arrivals
}

// credentials returns those of the gRPC server, as it would make them itself.
func (r *otlpReceiver) credentials(ctx context.Context, cfg *configgrpc.ServerConfig) (credentials.TransportCredentials, error) {
	inner := insecure.NewCredentials()
	if cfg.TLS.HasValue() {
		tls, err := cfg.TLS.Get().LoadTLSConfig(ctx)
		if err != nil {
			return nil, err
		}
		inner = credentials.NewTLS(tls)
	}
	return counted{inner, r.arrivals}, nil
}

func (c counted) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return conn, info, err
	}
	return c.by.NewConn(conn, raw), info, nil
}

type arrivalKey struct{}

// arrivalOf is where a request comes from, nil if that is not counted.
func arrivalOf(ctx context.Context) *arrivals.Arrival {
	x, _ := ctx.Value(arrivalKey{}).(*arrivals.Arrival)
	return x
}

// TagConn has the requests on a connection know it.
func (*traffic) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, arrivalKey{}, arrivals.At(info.LocalAddr))
}

// counting counts what comes over HTTP, before it is decompressed, and has it wait where there is too much.
func (r *otlpReceiver) counting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodPost { // a stream begins so, and counts itself
			next.ServeHTTP(w, req)
			return
		}
		x := r.arrivals.Enter(func() { _ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) })
		defer x.Leave()
		body := countedBody{ReadCloser: req.Body, n: &r.pipelines.traffic.wire}
		switch req.Header.Get("Content-Encoding") {
		case zstd, "snappy": // all of it is read before any is decompressed
			body.held = x
		}
		req = req.WithContext(context.WithValue(req.Context(), arrivalKey{}, x))
		req.Body = body
		next.ServeHTTP(w, req)
	})
}
