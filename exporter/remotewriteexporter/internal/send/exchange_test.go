// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// nobody ignores all events.
type nobody struct{}

func (nobody) Requested(int, string, int, time.Duration) {}
func (nobody) Retried(string)                            {}
func (nobody) Paced()                                    {}
func (nobody) Delivered(block.Header, []Loss)            {}
func (nobody) Dropped(block.Header, string)              {}
func (nobody) Down(error)                                {}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func destinationOf(t transport) *Destination {
	return New(Config{
		URL: "http://there.test/", Client: &http.Client{Transport: t}, Formats: all[:1], Timeout: time.Minute,
		Retry: Retry{InitialInterval: time.Microsecond, MaxInterval: time.Microsecond, Multiplier: 1},
	}, zap.NewNop(), nobody{})
}

// took returns the response of a destination that wrote everything.
func took() *http.Response {
	h := http.Header{}
	h.Set(promwrite.HeaderSamplesWritten, "1")
	return &http.Response{StatusCode: http.StatusNoContent, Header: h, Body: http.NoBody}
}

// TestErrorsTellNoSecrets: a URL may have some in its user and in its query.
func TestErrorsTellNoSecrets(t *testing.T) {
	d := New(Config{
		URL: "http://user:s3cret@there.test/push?key=s3cret", Formats: all[:1], Timeout: time.Minute,
		Client: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("it is away") })},
	}, zap.NewNop(), nobody{})
	defer d.Close()
	a := d.exchange(t.Context(), block.New(block.Header{Version: promwrite.V2, Compression: promwrite.Zstd}, []byte("honk")), 0)
	require.ErrorContains(t, a.err, "there.test/push")
	require.ErrorContains(t, a.err, "it is away")
	require.NotContains(t, a.err.Error(), "s3cret")
}

// An HTTP client may still read a body when it has the response, and when the request is over. It gets the right data,
// whatever is sent meanwhile.
func TestABodyIsReadAfterTheAnswer(t *testing.T) {
	defer handback.Poison(true)()
	var memory block.Memory
	var open []io.ReadCloser
	attempts := 0
	d := destinationOf(func(r *http.Request) (*http.Response, error) {
		open = append(open, r.Body)
		again, err := r.GetBody()
		require.NoError(t, err)
		open = append(open, again)
		if attempts++; attempts%3 == 0 {
			return nil, errors.New("no answer")
		}
		return took(), nil
	})
	defer d.Close()
	head := block.Header{Version: promwrite.V2, Compression: promwrite.Zstd, Samples: 1, RawSize: 200}
	body := func(i int) []byte { return bytes.Repeat([]byte{byte(i + 1)}, 100) }
	for i := range 6 {
		b := memory.New(head, body(i))
		lost, err := d.Send(t.Context(), []block.Block{b}, Times{})
		require.NoError(t, err)
		require.Nil(t, lost)
		b.Free()
	}
	seen := map[byte]int{}
	for _, r := range open {
		read, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, body(int(read[0])-1), read)
		seen[read[0]]++
		require.NoError(t, r.Close())
	}
	assert.Equal(t, map[byte]int{1: 2, 2: 2, 3: 4, 4: 2, 5: 4, 6: 2}, seen, "with those that were sent again")
}

func TestARequestSaysItsLength(t *testing.T) {
	d := destinationOf(func(r *http.Request) (*http.Response, error) {
		assert.EqualValues(t, 100, r.ContentLength)
		read, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		assert.Len(t, read, 100)
		return took(), r.Body.Close()
	})
	defer d.Close()
	b := block.New(block.Header{Version: promwrite.V2, Compression: promwrite.Zstd, Samples: 1, RawSize: 200}, make([]byte, 100))
	_, err := d.Send(t.Context(), []block.Block{b}, Times{})
	require.NoError(t, err)
}

// TestWhatWasDeliveredBeforeTheEndIsDone: of blocks that cannot be sent together, some may be delivered when the time
// is over.
func TestWhatWasDeliveredBeforeTheEndIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	requests := 0
	d := destinationOf(func(r *http.Request) (*http.Response, error) {
		if requests++; requests == 2 {
			cancel()
			return nil, r.Context().Err()
		}
		return took(), nil
	})
	defer d.Close()
	d.all.timely.Store(1) // point per request
	b := block.New(block.Header{Version: promwrite.V2, Compression: promwrite.Zstd, Samples: 1, RawSize: 200}, make([]byte, 100))
	lost, err := d.Send(ctx, []block.Block{b, b, b}, Times{})
	ended := (*EndedError)(nil)
	require.ErrorAs(t, err, &ended)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 1, ended.Done)
	assert.Nil(t, lost)
	assert.Equal(t, 2, requests)
}

// watcher handles the report that a destination is down slowly.
type watcher struct {
	nobody

	hears func()
	last  error
}

func (w *watcher) Down(reason error) {
	if reason != nil {
		w.hears()
	}
	w.last = reason
}

// TestOfTwoChangesTheLastIsToldLast: otherwise the status would be that of a destination that is down although it is
// up.
func TestOfTwoChangesTheLastIsToldLast(t *testing.T) {
	w := &watcher{}
	d := New(Config{Client: &http.Client{}, Formats: all[:1]}, zap.NewNop(), w)
	defer d.Close()
	well := make(chan struct{})
	w.hears = func() {
		go func() {
			d.setDown(false, answer{})
			close(well)
		}()
		select {
		case <-well:
		case <-time.After(50 * time.Millisecond): // it waits for its turn
		}
	}
	d.setDown(true, answer{code: http.StatusBadGateway})
	<-well
	assert.NoError(t, w.last)
}

// TestWhoSwitchesProtocolsHoldsNobodyUp: a server that responds with 101 has accepted nothing, and may keep the
// connection open for ever.
func TestWhoSwitchesProtocolsHoldsNobodyUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var server sync.WaitGroup
	server.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			server.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				if n == 0 {
					_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n")
				} else {
					_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n"+promwrite.HeaderSamplesWritten+": 1\r\n\r\n")
				}
				_, _ = in.ReadByte() // until the client closes the connection
			})
		}
	})
	defer server.Wait()
	defer l.Close()
	d := destinationOf(nil)
	d.cfg.URL, d.cfg.Client.Transport = "http://"+l.Addr().String(), &http.Transport{}
	defer d.Close()
	b := block.New(block.Header{Version: promwrite.V2, Compression: promwrite.Zstd, Samples: 1, RawSize: 200}, make([]byte, 100))
	lost, err := d.Send(t.Context(), []block.Block{b}, Times{})
	require.NoError(t, err)
	require.Nil(t, lost)
}
