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

// Defaults of memory limits, which depend on the available memory.
var (
	// arrivalShare is for incomplete messages.
	arrivalShare = memlimit.Share{Part: 8, Least: 8 << 20, Most: 1 << 30}
	// messageShare is for one message; the least is gRPC's own default.
	messageShare = memlimit.Share{Part: 16, Least: 4 << 20, Most: 16 << 20}
	// inFlightShare is for encoded requests in flight, which take several times as much decoded.
	inFlightShare = memlimit.Share{Part: 16, Least: 4 << 20, Most: 128 << 20}
	// streamShare is for the state of streams.
	streamShare = memlimit.Share{Part: 3, Least: 4 << 20, Most: 256 << 20}
)

// roomForArrivals returns that share, or at least twice the size of the largest message, for its compressed and
// decompressed form.
func roomForArrivals(cfg *Config, available int64) int {
	room := int(arrivalShare.Of(available))
	if cfg.Protocols.GRPC.HasValue() {
		room = max(room, 2*maxMessage(cfg.Protocols.GRPC.Get()))
	}
	if cfg.Protocols.HTTP.HasValue() {
		room = max(room, 2*int(cfg.Protocols.HTTP.Get().MaxRequestBodySize))
	}
	return room
}

// counted are credentials of a server that also count its connections.
type counted struct {
	credentials.TransportCredentials

	by *arrivals.Arrivals
}

// credentials returns the credentials of the gRPC server, as it would make them itself.
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

// arrivalOf returns the sender of a request, nil if it is not counted.
func arrivalOf(ctx context.Context) *arrivals.Arrival {
	x, _ := ctx.Value(arrivalKey{}).(*arrivals.Arrival)
	return x
}

// TagConn stores the connection's sender in the context of its requests.
func (*traffic) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, arrivalKey{}, arrivals.At(info.LocalAddr))
}

// counting counts what is received over HTTP before it is decompressed, and makes it wait if there is too much.
func (r *otlpReceiver) counting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodPost { // a stream begins like this, and counts itself
			next.ServeHTTP(w, req)
			return
		}
		x := r.arrivals.Enter(func() { _ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) })
		defer x.Leave()
		body := countedBody{ReadCloser: req.Body, n: &r.pipelines.traffic.wire}
		switch req.Header.Get("Content-Encoding") {
		case zstd, "snappy": // it is read completely before it is decompressed
			body.held = x
		}
		req = req.WithContext(context.WithValue(req.Context(), arrivalKey{}, x))
		req.Body = body
		next.ServeHTTP(w, req)
	})
}
