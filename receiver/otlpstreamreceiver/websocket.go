// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
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
	ws, err := websocket.Accept(w, req, nil)
	if err != nil {
		return // it has answered
	}
	// One more than the limit, for the byte before a message.
	ws.SetReadLimit(int64(limit) + 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	defer cancel()
	defer context.AfterFunc(r.hardStop, cancel)()
	c := &wsConn{ctx: ctx, ws: ws, frames: r.frames}
	c.end(r.newSession(c, signal, otlpstream.ParseCaps(req.Header.Get(otlpstream.HeaderCaps)), transportWebSocket, limit).run(ctx))
}

type wsConn struct {
	ctx    context.Context
	ws     *websocket.Conn
	frames *otlpstream.Frames

	frame   bytes.Buffer
	message []byte
	out     []byte
}

func (c *wsConn) Recv(request *otlpstream.Request) error {
	kind, r, err := c.ws.Reader(c.ctx)
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
	return c.send(c.ctx, response)
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
	ctx, cancel := context.WithTimeout(c.ctx, time.Second)
	defer cancel()
	notice := otlpstream.Response{Code: resultOf(st), Message: st.Message()}
	notice.Delay, _ = otlpstream.RetryDelay(st)
	if c.send(ctx, &notice) == nil {
		_ = c.ws.Close(websocket.StatusTryAgainLater, "")
	}
	_ = c.ws.CloseNow()
}
