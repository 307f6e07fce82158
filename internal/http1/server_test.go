// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/heads"
)

type server interface {
	Serve(l net.Listener) error
	Shutdown(ctx context.Context) error
	Close() error
}

// serve serves until the test ends, and returns the address.
func serve(t testing.TB, s server) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		done.Wait()
	})
	return l.Addr().String()
}

func dial(t testing.TB, address string) net.Conn {
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c
}

func post(body string) string {
	return fmt.Sprintf("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// answers handles requests in all ways that handlers do.
func answers(w http.ResponseWriter, q *http.Request) {
	switch q.URL.Path {
	case "/echo":
		body, err := io.ReadAll(q.Body)
		fmt.Fprintf(w, "%s %s %s %s %v %q %v", q.Method, q.Proto, q.Host, q.RequestURI, q.Header["X-Of"], body, err)
	case "/none":
		w.WriteHeader(http.StatusNoContent)
		if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrBodyNotAllowed) {
			panic(err)
		}
	case "/unread":
		http.Error(w, "no", http.StatusUnsupportedMediaType)
	case "/closes":
		w.Header().Set("Connection", "close")
	case "/typed":
		w.Header().Set("Content-Type", "text/x-own")
		w.Header().Add("X-Many", "1")
		w.Header().Add("X-Many", "2\r\nX-Injected: 3")
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "4")
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "short")
	case "/guessed":
		_, _ = io.WriteString(w, "<html>")
	case "/large":
		for range 40 {
			_, _ = w.Write(bytes.Repeat([]byte("large"), 1000))
		}
	case "/panics":
		panic(http.ErrAbortHandler)
	case "/limited":
		_, err := io.ReadAll(http.MaxBytesReader(w, q.Body, 10))
		http.Error(w, fmt.Sprint(err), http.StatusRequestEntityTooLarge)
	default:
		http.NotFound(w, q)
	}
}

func quiet(h http.HandlerFunc) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		MaxHeaderBytes: 8 << 10, ErrorLog: log.New(io.Discard, "", 0),
	}
}

// answered returns the responses on a connection for the bytes of a client that sends nothing else, one after the
// other, without what may differ.
func answered(t *testing.T, address, sent string) (all []string) {
	c := dial(t, address)
	_, err := io.WriteString(c, sent)
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	in := bufio.NewReader(c)
	method := "POST"
	if strings.HasPrefix(sent, "HEAD") {
		method = "HEAD"
	}
	for {
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return append(all, "end")
		}
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Header.Del("Date")
		resp.Header.Del("Content-Length") // net/http sends more than 2 kB in chunks
		all = append(all, fmt.Sprint(resp.StatusCode, " ", resp.Proto, " ", resp.Header, " ", string(body)))
	}
}

// TestAnswersAreThoseOfTheStandardLibrary: for any input, both servers respond in the same way.
func TestAnswersAreThoseOfTheStandardLibrary(t *testing.T) {
	theirs, ours := serve(t, quiet(answers)), serve(t, New(quiet(answers), true))
	for name, sent := range map[string]string{
		"nothing":            "",
		"one":                post("body"),
		"two":                post("one") + post("two"),
		"two, one closes":    post("one") + "GET /closes HTTP/1.1\r\nHost: h\r\n\r\n" + post("two"),
		"a client closes":    "GET /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" + post("two"),
		"line ends":          post("one") + "\r\n" + post("two") + "\n\n\n\n" + post("three") + "\r\n\r\n\r\n" + post("four"),
		"line ends of GET":   "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n\r\n" + post("two"),
		"line ends first":    "\r\n" + post("one"),
		"two hosts":          "GET /echo HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
		"odd value":          "GET /echo HTTP/1.1\r\nHost: h\r\nX-Of: \x01\r\n\r\n",
		"1.0, keeps":         "POST /none HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
		"1.0, keeps two":     "GET /typed HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /guessed HTTP/1.0\r\n\r\n" + post("three"),
		"chunk extensions":   "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0;c\r\n\r\n" + post("next"),
		"no body, no length": "POST /echo HTTP/1.1\r\nHost: h\r\n\r\n" + post("next"),
		"bytes of a chunk":   "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
		"header":             "GET /echo?a=b HTTP/1.1\r\nHost: h\r\nX-Of: 1\r\nx-of: 2\r\n\r\n",
		"absolute":           "GET http://other/echo HTTP/1.1\r\nHost: h\r\n\r\n",
		"chunked":            "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" + post("next"),
		"chunked, trailer":   "POST /echo HTTP/1.1\r\nHost: h\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n" + post("next"),
		"bad chunk":          "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"cut off":            "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc",
		"continue":           "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc" + post("next"),
		"expects else":       "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: a miracle\r\nContent-Length: 0\r\n\r\n",
		"no body allowed":    "GET /none HTTP/1.1\r\nHost: h\r\n\r\n" + post("next"),
		"own type":           "GET /typed HTTP/1.1\r\nHost: h\r\n\r\n" + post("next"),
		"guessed type":       "GET /guessed HTTP/1.1\r\nHost: h\r\n\r\n",
		"head":               "HEAD /guessed HTTP/1.1\r\nHost: h\r\n\r\n",
		"not found":          "GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n",
		"panics":             post("one") + "GET /panics HTTP/1.1\r\nHost: h\r\n\r\n" + post("two"),
		"1.0":                "GET /echo HTTP/1.0\r\n\r\n" + post("two"),
		"no host":            "GET /echo HTTP/1.1\r\n\r\n",
		"no request":         "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
		"half a request":     "POST /echo HTT",
		"half a head":        "POST /echo HTTP/1.1\r\nHost: h\r\nX",
		"bad header":         "GET /echo HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n",
		"bad length":         "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
		"two lengths":        "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"length and chunks":  "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
		"large head":         "GET /echo HTTP/1.1\r\nHost: h\r\nX-Of: " + strings.Repeat("x", 32<<10) + "\r\n\r\n",
		"head within bounds": "GET /echo HTTP/1.1\r\nHost: h\r\nX-Of: " + strings.Repeat("x", 7<<10) + "\r\n\r\n",
		"too new":            "GET /echo HTTP/3.0\r\nHost: h\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, answered(t, theirs, sent), answered(t, ours, sent)) })
	}
}

// TestLargeAnswersEndWithTheConnection, because their size is not known before they are sent.
func TestLargeAnswersEndWithTheConnection(t *testing.T) {
	c := dial(t, serve(t, New(quiet(answers), true)))
	_, err := io.WriteString(c, "GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("large", 40_000), string(body))
	require.True(t, resp.Close)
}

// TestWhatWasNotReadEndsTheConnection: the response arrives nevertheless, although the client is still sending.
func TestWhatWasNotReadEndsTheConnection(t *testing.T) {
	address := serve(t, New(quiet(answers), true))
	for _, path := range []string{"/unread", "/limited"} {
		c := dial(t, address)
		body := strings.Repeat("x", 100<<10)
		_, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.True(t, resp.Close)
		require.GreaterOrEqual(t, resp.StatusCode, 400)
	}
}

// A proxy that still sends when a large body is refused would take a reset for its answer, and answer 502 itself.
func TestWhoStillSendsGetsTheAnswerAndNoReset(t *testing.T) {
	s := New(quiet(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	}), true)
	s.linger = time.Minute // ends with the server
	c := dial(t, serve(t, s))
	_, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n")
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestEntityTooLarge, answer.StatusCode)
	for chunk := make([]byte, 64<<10); err == nil; {
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(300*time.Millisecond)))
		_, err = c.Write(chunk)
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it is held up")
}

// TestHeadsShareARoom: a head that is usual needs none, and who finds none may send again.
func TestHeadsShareARoom(t *testing.T) {
	s := New(quiet(func(http.ResponseWriter, *http.Request) {}), true)
	others := s.heads.Head()
	for err := error(nil); err == nil; {
		err = others.Add(1 << 10)
	}
	addr := serve(t, s)
	status := func(length int) int {
		c := dial(t, addr)
		_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\nX: "+strings.Repeat("a", length)+"\r\n\r\n")
		require.NoError(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		return answer.StatusCode
	}
	require.Equal(t, http.StatusOK, status(heads.Usual/2))
	require.Equal(t, http.StatusServiceUnavailable, status(heads.Usual*5/4))
	others.End()
	require.Equal(t, http.StatusOK, status(heads.Usual*5/4))
}

// TestNobodyWaitsForABodyThatWasNotAskedFor: a client that waits for "100 Continue" gets its response.
func TestNobodyWaitsForABodyThatWasNotAskedFor(t *testing.T) {
	c := dial(t, serve(t, New(quiet(answers), true)))
	_, err := io.WriteString(c, "POST /unread HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnsupportedMediaType, resp.StatusCode)
}

// TestWhoWaitsIsToldThatTheClientHasGone, whether the handler asks before the body is read or after.
func TestWhoWaitsIsToldThatTheClientHasGone(t *testing.T) {
	told := make(chan error)
	address := serve(t, New(quiet(func(_ http.ResponseWriter, q *http.Request) {
		gone := q.Context().Done()
		if q.URL.Path == "/after" {
			gone = nil
		}
		_, _ = io.Copy(io.Discard, q.Body)
		if gone == nil {
			derived, cancel := context.WithTimeout(q.Context(), time.Minute)
			defer cancel()
			gone = derived.Done()
		}
		told <- nil
		<-gone
		told <- q.Context().Err()
	}), true))
	for _, path := range []string{"/before", "/after"} {
		c := dial(t, address)
		_, err := io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc")
		require.NoError(t, err)
		require.NoError(t, <-told)
		require.NoError(t, c.Close())
		require.ErrorIs(t, <-told, context.Canceled)
	}
}

// TestTheNextRequestIsNotLost if the connection is watched, whenever it arrives.
func TestTheNextRequestIsNotLost(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	address := serve(t, New(quiet(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		_ = q.Context().Done()
		asked <- struct{}{}
		<-goOn
		fmt.Fprint(w, q.Context().Err())
	}), true))
	c := dial(t, address)
	in := bufio.NewReader(c)
	expect := func() {
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "<nil>", string(body))
	}
	for range 50 {
		_, err := io.WriteString(c, post("one"))
		require.NoError(t, err)
		<-asked
		_, err = io.WriteString(c, post("two")) // while the first one is handled
		require.NoError(t, err)
		goOn <- struct{}{}
		expect()
		<-asked
		goOn <- struct{}{}
		expect()
	}
}

// TestContextsEndWithTheAnswer, so that goroutines started by a handler do not wait for ever.
func TestContextsEndWithTheAnswer(t *testing.T) {
	kept := make(chan context.Context, 1)
	address := serve(t, New(quiet(func(_ http.ResponseWriter, q *http.Request) { kept <- q.Context() }), true))
	c := dial(t, address)
	_, err := io.WriteString(c, post(""))
	require.NoError(t, err)
	<-(<-kept).Done()
}

// TestContextsNobodyWaitedForEndAllTheSame: a late call returns the same as an early one, and a context that is derived
// late has ended.
func TestContextsNobodyWaitedForEndAllTheSame(t *testing.T) {
	kept, waits := make(chan context.Context, 1), make(chan (<-chan struct{}), 1)
	asked := 0
	address := serve(t, New(quiet(func(_ http.ResponseWriter, q *http.Request) {
		if q.Context().Err() != nil || q.Context().Value(http.LocalAddrContextKey) == nil || context.Cause(q.Context()) != nil {
			panic("the context of a request that is not answered yet")
		}
		if asked++; asked%2 == 0 { // something waits, for as long as necessary
			waits <- q.Context().Done()
		} else {
			waits <- nil
		}
		kept <- q.Context()
		_, _ = io.Copy(io.Discard, q.Body)
	}), true))
	c := dial(t, address)
	in := bufio.NewReader(c)
	for range 4 { // all except the first have a known head
		_, err := io.WriteString(c, post("x"))
		require.NoError(t, err)
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		ctx := <-kept
		if ended := <-waits; ended != nil {
			<-ended
		}
		require.ErrorIs(t, context.Cause(ctx), context.Canceled)
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.NotNil(t, ctx.Value(http.LocalAddrContextKey))
		derived, cancel := context.WithCancel(ctx)
		<-derived.Done()
		cancel()
		<-ctx.Done()
	}
}

// TestSlowHeadsAreCutOff, and so are idle connections.
func TestSlowHeadsAreCutOff(t *testing.T) {
	s := quiet(answers)
	s.ReadHeaderTimeout, s.IdleTimeout = 50*time.Millisecond, 50*time.Millisecond
	address := serve(t, New(s, true))
	for _, sent := range []string{"", "GET /echo HTTP/1.1\r\nHo", post("one"), post("one") + "GET /echo HTTP/1.1\r\nHo"} {
		c := dial(t, address)
		_, err := io.WriteString(c, sent)
		require.NoError(t, err)
		_, err = io.ReadAll(c)
		require.NoError(t, err, "the connection ends")
	}
}

// TestDeadlinesAreForTheController: a handler may set a deadline for reading its body.
func TestDeadlinesAreForTheController(t *testing.T) {
	address := serve(t, New(quiet(func(w http.ResponseWriter, q *http.Request) {
		if err := http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)); err != nil {
			panic(err)
		}
		_, err := io.ReadAll(q.Body)
		http.Error(w, fmt.Sprint(err), http.StatusServiceUnavailable)
	}), true))
	c := dial(t, address)
	_, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "timeout")
}

// TestShutdown waits for requests, and for nothing else.
func TestShutdown(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	s := New(quiet(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/waits" {
			asked <- struct{}{}
			<-goOn
		}
		fmt.Fprint(w, q.Context().Err())
	}), true)
	address := serve(t, s)
	idle, busy, silent := dial(t, address), dial(t, address), dial(t, address)
	_, err := io.WriteString(idle, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(idle)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	_, err = io.WriteString(busy, "GET /waits HTTP/1.1\r\nHost: h\r\n\r\n")
	require.NoError(t, err)
	<-asked

	expired, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Shutdown(expired), context.Canceled)
	_, err = in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	_, err = silent.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = net.Dial("tcp", address)
	require.Error(t, err)

	done := make(chan error)
	go func() { done <- s.Shutdown(t.Context()) }()
	goOn <- struct{}{}
	resp, err = http.ReadResponse(bufio.NewReader(busy), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "<nil>", string(body))
	require.True(t, resp.Close)
	require.NoError(t, <-done)
}

// TestCloseEndsRequests that wait for their client.
func TestCloseEndsRequests(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	s := New(quiet(func(_ http.ResponseWriter, q *http.Request) {
		asked <- struct{}{}
		<-q.Context().Done()
		close(ended)
	}), true)
	c := dial(t, serve(t, s))
	_, err := io.WriteString(c, post(""))
	require.NoError(t, err)
	<-asked
	require.NoError(t, s.Close())
	<-ended
}

// TestConnectionsMayBeUsedOnce if that is configured.
func TestConnectionsMayBeUsedOnce(t *testing.T) {
	require.Len(t, answered(t, serve(t, New(quiet(answers), false)), post("one")+post("two")), 2)
}

// BenchmarkRequest measures a request of 14 kB, from a client that sends the next one after a while.
func BenchmarkRequest(b *testing.B) {
	handler := func(w http.ResponseWriter, q *http.Request) {
		room := make([]byte, 16<<10)
		for {
			if _, err := q.Body.Read(room); err != nil {
				break
			}
		}
		w.WriteHeader(http.StatusNoContent)
	}
	for name, s := range map[string]server{"server=net/http": quiet(handler), "server=http1": New(quiet(handler), true)} {
		b.Run(name, func(b *testing.B) {
			c := dial(b, serve(b, s))
			require.NoError(b, c.SetDeadline(time.Time{}))
			message, answer := []byte(post(strings.Repeat("x", 14_000))), make([]byte, 4<<10)
			b.ReportAllocs()
			for b.Loop() {
				_, err := c.Write(message)
				require.NoError(b, err)
				_, err = c.Read(answer)
				require.NoError(b, err)
			}
		})
	}
}
