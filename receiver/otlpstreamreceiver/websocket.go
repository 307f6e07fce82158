// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// serveWebSocket serves a stream over WebSocket.
func (r *otlpReceiver) serveWebSocket(w http.ResponseWriter, req *http.Request, signal otlpstream.Signal) {
	if st := r.enter(); st != nil {
		http.Error(w, st.Message(), http.StatusServiceUnavailable)
		return
	}
	defer r.leave()
	limit := int(r.cfg.Protocols.HTTP.Get().MaxRequestBodySize)
	headers := append(r.limits(limit).Headers(), otlpstream.HeaderCaps, otlpstream.AllCaps.String())
	for i := 0; i < len(headers); i += 2 {
		w.Header().Set(headers[i], headers[i+1])
	}
	// A page in a browser is let in only from where the receiver is: the library checks the origin.
	ws, err := websocket.Accept(roomy{w}, req, nil)
	if err != nil {
		return // it has answered
	}
	// One more than the limit, for the byte before a message.
	ws.SetReadLimit(int64(limit) + 1)
	// Once for all reads and writes: the library would watch a context anew for each.
	defer context.AfterFunc(r.hardStop, func() { _ = ws.CloseNow() })()
	c := &wsConn{ws: ws, frames: r.frames, wire: &r.traffic.wire}
	s := r.newSession(c, signal, otlpstream.ParseCaps(req.Header.Get(otlpstream.HeaderCaps)), transportWebSocket, limit)
	c.end(s.run(context.WithoutCancel(req.Context())))
}

// roomy gives a WebSocket a larger buffer to read into than HTTP has, for several small requests at once.
type roomy struct{ http.ResponseWriter }

// Hijack takes over the connection.
func (w roomy) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	const room = 64 << 10
	conn, buffers, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	// What has come with the handshake is in the old buffer, which is read to its end first.
	waiting := buffers.Reader
	ahead, _ := waiting.Peek(waiting.Buffered())
	reader := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(ahead), conn), room)
	_, _ = reader.Peek(len(ahead))
	return conn, bufio.NewReadWriter(reader, buffers.Writer), nil
}

type wsConn struct {
	ws     *websocket.Conn
	frames *otlpstream.Frames
	wire   *atomic.Int64 // of all streams

	frame   bytes.Buffer
	message []byte
	out     []byte
}

func (c *wsConn) Recv(request *otlpstream.Request) error {
	kind, r, err := c.ws.Reader(context.Background())
	if err != nil {
		return err
	}
	c.frame.Reset()
	if _, err := c.frame.ReadFrom(r); err != nil {
		return err
	}
	if c.frame.Len() == 0 {
		return io.EOF
	}
	c.wire.Add(int64(c.frame.Len()))
	*request = otlpstream.Request{Data: request.Data[:0]}
	if kind != websocket.MessageBinary {
		return fmt.Errorf("%w: a text frame", errMalformed)
	}
	message, err := c.frames.Message(c.message[:0], c.frame.Bytes())
	if err == nil {
		if c.frame.Bytes()[0] != 0 {
			c.message = message
		}
		err = request.Parse(message)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	return nil
}

func (c *wsConn) Send(response *otlpstream.Response) error {
	return c.send(context.Background(), response)
}

func (c *wsConn) send(ctx context.Context, response *otlpstream.Response) error {
	c.out = response.Append(append(c.out[:0], byte(otlpstream.NoCompression)))
	return c.ws.Write(ctx, websocket.MessageBinary, c.out)
}

// end closes the connection. WebSocket has no status, so what there is to say is said in a last message.
func (c *wsConn) end(st *status.Status) {
	if st == nil {
		_ = c.ws.Close(websocket.StatusNormalClosure, "")
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	notice := otlpstream.Response{Code: resultOf(st), Message: st.Message()}
	notice.Delay, _ = otlpstream.RetryDelay(st)
	if c.send(ctx, &notice) == nil {
		_ = c.ws.Close(websocket.StatusTryAgainLater, "")
	}
	_ = c.ws.CloseNow()
}
