// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// response is the answer to a request. It uses the connection's memory until it is sent.
type response struct {
	conn   *conn
	header http.Header
	head   bool // the request is a HEAD
	old    bool // the request is of HTTP/1.0
	closes bool // the connection is closed after it

	code  int
	lines []byte // of the head, as set by the handler
	sized bool   // they contain the length of the body
	typed bool   // they contain the type of the body
	body  []byte
	sent  bool // whether the head and the body so far were sent
	err   error
}

// maxHeld is the size of a body from which on it is sent in parts.
const maxHeld = 64 << 10

// maxOut is the maximum memory for answers that a connection keeps.
const maxOut = 4 << 10

func (w *response) Header() http.Header { return w.header }

// WriteHeader fixes the head.
func (w *response) WriteHeader(code int) {
	if w.code != 0 || code < http.StatusOK { // informational answers may be left out
		return
	}
	w.code = code
	w.lines = w.conn.out[:0]
	w.lines = append(w.lines, "HTTP/1.1 "...)
	if w.old {
		w.lines[len(w.lines)-2] = '0'
	}
	w.lines = append(append(strconv.AppendInt(w.lines, int64(code), 10), ' '), http.StatusText(code)...)
	w.lines = append(w.lines, "\r\n"...)
	for name, values := range w.header {
		switch name {
		case "Connection":
			w.closes = w.closes || len(values) > 0 && strings.EqualFold(values[0], "close")
			continue
		case "Transfer-Encoding", "Trailer":
			continue
		case "Content-Length": // it is computed
			if w.sized = w.head; !w.head {
				continue
			}
		case "Content-Type":
			w.typed = true
		case "Content-Encoding":
			w.typed = w.typed || len(values) > 0 && values[0] != ""
		}
		for _, value := range values {
			w.lines = appendLine(w.lines, name, value)
		}
	}
	if w.header["Date"] == nil {
		w.lines = append(w.lines, w.conn.date.line(time.Now())...)
	}
}

// dateLine is the Date line of an answer, which is made at most once a second.
type dateLine struct {
	second int64
	text   []byte
}

func (d *dateLine) line(now time.Time) []byte {
	if second := now.Unix(); d.text == nil || d.second != second {
		d.second = second
		d.text = append(d.text[:0], "Date: "...)
		d.text = append(now.UTC().AppendFormat(d.text, http.TimeFormat), "\r\n"...)
	}
	return d.text
}

// oneLine prevents values from starting new lines.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

func appendLine(dst []byte, name, value string) []byte {
	if strings.ContainsAny(name, "\r\n: ") {
		return dst
	}
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, strings.TrimSpace(oneLine.Replace(value))...), "\r\n"...)
}

// hasBody reports whether an answer with a status code may have a body.
func hasBody(code int) bool { return code != http.StatusNoContent && code != http.StatusNotModified }

func (w *response) Write(p []byte) (int, error) {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case !hasBody(w.code):
		return 0, http.ErrBodyNotAllowed
	case w.sent:
		if !w.head {
			w.send(p)
		}
		return len(p), w.err
	}
	w.body = append(w.body, p...)
	if len(w.body) > maxHeld {
		w.closes = true // the end of the connection ends it
		w.sendAll()
	}
	return len(p), w.err
}

// finish sends the rest. It returns false if that fails.
func (w *response) finish() bool {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.sent {
		if !w.sized && hasBody(w.code) {
			w.lines = appendLine(w.lines, "Content-Length", strconv.Itoa(len(w.body)))
		}
		w.sendAll()
	}
	return w.err == nil
}

// sendAll sends the head, and the body so far.
func (w *response) sendAll() {
	w.sent = true
	if !w.typed && len(w.body) > 0 {
		w.lines = appendLine(w.lines, "Content-Type", http.DetectContentType(w.body))
	}
	switch { // only what differs from the version's default
	case w.closes && !w.old:
		w.lines = appendLine(w.lines, "Connection", "close")
	case !w.closes && w.old:
		w.lines = appendLine(w.lines, "Connection", "keep-alive")
	}
	w.lines = append(w.lines, "\r\n"...)
	if !w.head {
		w.lines = append(w.lines, w.body...)
	}
	w.send(w.lines)
	if w.conn.out = w.lines[:0]; cap(w.lines) > maxOut {
		w.conn.out = nil
	}
	w.lines, w.body = nil, nil
}

func (w *response) send(p []byte) {
	if w.err == nil {
		w.err = w.conn.write(p)
	}
}

// SetReadDeadline is called by http.ResponseController.
func (w *response) SetReadDeadline(at time.Time) error {
	return w.conn.nc.SetReadDeadline(at)
}

// write writes within the time limit of an answer.
func (c *conn) write(p []byte) error {
	if c.server.answer > 0 {
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.server.answer)) // who cannot has none
	}
	_, err := c.quiet.Write(p)
	return err
}
