// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/client"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/internal/otlpstream/websocket"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/arrivals"
)

// pingEvery is how long a client may be silent before it is pinged, and pingPatience how long it then has to answer.
// The gRPC server's keepalive is as frequent.
const pingEvery, pingPatience = time.Minute, 20 * time.Second

// serveWebSocket serves a stream over WebSocket.
func (r *otlpReceiver) serveWebSocket(w http.ResponseWriter, req *http.Request, signal otlpstream.Signal) {
	if st := r.places.enter(req.Context(), client.FromContext(req.Context()).Addr); st != nil {
		if delay, ok := otlpstream.RetryDelay(st); ok {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(delay.Seconds()))))
		}
		http.Error(w, st.Message(), http.StatusServiceUnavailable)
		return
	}
	defer r.places.leave()
	limit := int(r.cfg.Protocols.HTTP.Get().MaxRequestBodySize)
	caps := otlpstream.ParseCaps(req.Header.Get(otlpstream.HeaderCaps))
	limits, server := r.greet(signal, caps, limit)
	headers := append(limits.Headers(), otlpstream.HeaderCaps, server.String())
	for i := 0; i < len(headers); i += 2 {
		w.Header().Set(headers[i], headers[i+1])
	}
	// A page in a browser is only accepted from the receiver's own host. The limit is one more, for the byte before a
	// message.
	ws, err := websocket.Accept(w, req, limit+1)
	if err != nil {
		r.memory.Release(limits.Keep)
		return // it has sent the answer
	}
	defer context.AfterFunc(r.hardStop, ws.CloseNow)()
	c := &wsConn{ws: ws, frames: r.frames, wire: &r.pipelines.traffic.wire, arrival: r.arrivals.Enter(func() { go ws.CloseNow() })}
	defer c.arrival.Leave()
	ws.Partial = c.arrival.Come
	s := r.newSession(c, signal, caps, transportWebSocket, limits)
	s.cut, s.arrival = ws.CloseNow, c.arrival
	gone := make(chan struct{})
	defer close(gone)
	go ws.KeepAlive(gone, r.pingEvery, r.pingPatience)
	s.seen = r.clients.Enter(signal, req.Header.Get(otlpstream.HeaderSlot))
	c.end(s.run(context.WithoutCancel(req.Context())))
}

type wsConn struct {
	ws     *websocket.Conn
	frames *otlpstream.Frames
	wire   *atomic.Int64 // of all streams
	// arrival counts incomplete messages.
	arrival *arrivals.Arrival

	spare []byte // memory for decompression
	out   []byte
}

func (c *wsConn) Recv(fresh func() *otlpstream.Request) (*otlpstream.Request, error) {
	if err := c.ws.Await(); err != nil {
		return nil, err
	}
	request := fresh()
	frame, isBinary, err := c.ws.Read(request.Buffer[:0])
	c.arrival.DoneAll()
	*request = otlpstream.Request{Buffer: frame}
	switch {
	case err != nil:
		return request, err
	case len(frame) == 0:
		return request, io.EOF
	}
	c.wire.Add(int64(len(frame)))
	if !isBinary {
		return request, fmt.Errorf("%w: a text frame", errMalformed)
	}
	message, err := c.frames.Message(c.spare[:0], frame)
	if err == nil {
		if otlpstream.Compression(frame[0]) != otlpstream.NoCompression {
			request.Buffer, c.spare = message, frame
		}
		err = request.ParseInPlace(message)
	}
	if err != nil {
		return request, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return request, nil
}

func (c *wsConn) Send(response *otlpstream.Response) error {
	c.out = response.Append(append(c.out[:0], byte(otlpstream.NoCompression)))
	if err := c.ws.Write(c.out); err != nil {
		return err
	}
	return c.ws.Flush()
}

// end closes the connection. WebSocket has no status, so it is sent in a last message.
func (c *wsConn) end(st *status.Status) {
	if st == nil {
		c.ws.Close(websocket.StatusNormalClosure, "")
		return
	}
	late := time.AfterFunc(time.Second, c.ws.CloseNow)
	notice := otlpstream.Response{Code: resultOf(st), Message: st.Message()}
	notice.Delay, _ = otlpstream.RetryDelay(st)
	_ = c.Send(&notice)
	late.Stop()
	c.ws.Close(websocket.StatusTryAgainLater, "")
}
