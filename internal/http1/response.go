// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// response is the answer to a request, in the connection's memory until it is sent.
type response struct {
	conn   *conn
	header http.Header
	head   bool // it is only asked what the head would be
	old    bool // the request is of HTTP/1.0
	closes bool // the connection, behind it

	code  int
	lines []byte // of the head, as the handler wants it
	sized bool   // they say how long the body would be
	typed bool   // they say what the body is
	body  []byte
	sent  bool // head and all of the body so far
	err   error
}

// maxHeld is how long a body may become until it is sent.
const maxHeld = 64 << 10

// maxOut is how much memory for an answer a connection keeps.
const maxOut = 4 << 10

func (w *response) Header() http.Header { return w.header }

// WriteHeader settles the head.
func (w *response) WriteHeader(code int) {
	if w.code != 0 || code < http.StatusOK { // what comes before the answer may be left out
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
		case "Content-Length": // it is counted
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

// dateLine is the line with the date of an answer, which is made once in a second.
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

// oneLine keeps values from becoming lines of their own.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

func appendLine(dst []byte, name, value string) []byte {
	if strings.ContainsAny(name, "\r\n: ") {
		return dst
	}
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, strings.TrimSpace(oneLine.Replace(value))...), "\r\n"...)
}

// hasBody reports whether there may be one with a code.
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
		w.closes = true // it ends where the connection does
		w.sendAll()
	}
	return len(p), w.err
}

// finish sends what is left. It returns false if that could not be sent.
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
	switch { // what is not what the version has without a word
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

// SetReadDeadline is for http.ResponseController.
func (w *response) SetReadDeadline(at time.Time) error {
	return w.conn.nc.SetReadDeadline(at)
}

// write writes within the time that an answer may take.
func (c *conn) write(p []byte) error {
	if c.server.answer > 0 {
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.server.answer)) // who cannot has none
	}
	_, err := c.quiet.Write(p)
	return err
}
