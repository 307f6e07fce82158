// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/oversize"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

const (
	// maxReason limits how much of an answer's body is kept for the log.
	maxReason = 1 << 10
	// maxDrained limits how much more of it is read so that the connection can be used again.
	maxDrained = 64 << 10
	// maxReading limits how long that takes. The status code has told what matters by then.
	maxReading = time.Second
)

// An answer is the result of one request.
type answer struct {
	code       int // 0 if there was no answer
	err        error
	text       string // the beginning of the body, unless the code is 2xx
	retryAfter time.Duration
	written    promwrite.Written
	hasWritten bool
	unnamed    bool // no header can have its tenant
	page       bool // a web page says so, and no server of remote write
	repeated   bool // an earlier attempt failed, after which the request may have been written all the same
}

// A verdict is what an answer means for the block.
type verdict uint8

const (
	delivered   verdict = iota
	retry               // later
	retrySlowly         // until somebody corrects a configuration
	rejected            // never
	oversized           // in smaller pieces
	unsupported         // in another format
	doubtful            // in the last format, unless it is the content
)

// exchange makes one request.
func (d *Destination) exchange(ctx context.Context, b block.Block, attempt int) answer {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.cfg.URL, http.NoBody)
	if err != nil {
		return answer{err: fmt.Errorf("cannot make a request: %w", err)}
	}
	h := request.Header
	h.Set("Content-Type", b.Version.ContentType())
	h.Set("Content-Encoding", b.Compression.String())
	h.Set("User-Agent", d.cfg.UserAgent)
	if b.Version == promwrite.V1 && b.Compression == promwrite.Zstd {
		h.Set(promwrite.HeaderVictoriaMetricsVersion, "1")
	} else {
		h.Set(promwrite.HeaderVersion, b.Version.String())
	}
	if attempt > 0 {
		h.Set("Retry-Attempt", strconv.Itoa(attempt))
	}
	if d.tenanted(b) {
		if err := d.cfg.Tenants.SetHeaders(h, b.Tenant); err != nil {
			return answer{err: err, unnamed: true}
		}
	}
	request.ContentLength = int64(len(b.Body()))
	request.Body = b.Reader()
	request.GetBody = func() (io.ReadCloser, error) { return b.Reader(), nil }

	started := time.Now()
	response, err := d.cfg.Client.Do(request)
	var a answer
	if err != nil {
		a.err = withoutQuery(err)
	} else {
		defer time.AfterFunc(maxReading, cancel).Stop()
		a = read(response)
	}
	a.repeated = attempt > 0
	d.telemetry.Requested(a.code, a.said(), len(b.Body()), time.Since(started))
	return a
}

// withoutQuery removes the query of a URL from an error: it may have a key or a signature, and the error is logged.
// net/http only hides a password.
func withoutQuery(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		u.URL, _, _ = strings.Cut(u.URL, "?")
	}
	return err
}

// read reads what matters of a response and closes it.
func read(response *http.Response) answer {
	defer response.Body.Close()
	a := answer{code: response.StatusCode}
	if a.code == http.StatusSwitchingProtocols {
		return a // what it has in the place of a body is the connection, which no context ends
	}
	a.written, a.hasWritten = promwrite.ParseWritten(response.Header)
	switch {
	case a.code/100 != 2:
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxReason))
		a.text, a.page = strings.ToValidUTF8(string(text), "�"), isPage(text)
		a.retryAfter = parseRetryAfter(response.Header.Get("Retry-After"))
	case response.ContentLength != 0:
		begin, _ := io.ReadAll(io.LimitReader(response.Body, maxReason))
		if isPage(begin) {
			a.code, a.text = http.StatusBadGateway, response.Status+": a web page answers, and no server of remote write"
		}
	}
	// The rest matters only for the connection, which is lost if there is more than this, or if it stalls.
	_, _ = io.CopyN(io.Discard, response.Body, maxDrained)
	return a
}

// said is the error in the words of the destination, or of the network.
func (a answer) said() string {
	if a.err == nil {
		return strings.TrimSpace(a.text)
	}
	if u := new(url.Error); errors.As(a.err, &u) {
		return u.Err.Error() // without the URL, whose query may be secret
	}
	return a.err.Error()
}

// wroteSome reports whether the destination says that it wrote part of the request.
func (a answer) wroteSome() bool { return a.hasWritten && a.written != (promwrite.Written{}) }

// mayBeFormat reports whether servers may answer like this to an unknown format, although it means something else.
func (a answer) mayBeFormat() bool {
	return a.code == http.StatusNotFound || a.code/100 == 5 && a.retryAfter == 0
}

// late reports whether the answer was too late, or says so.
func (a answer) late() bool {
	timeout := net.Error(nil)
	return a.code == http.StatusRequestTimeout || a.code == http.StatusGatewayTimeout || errors.As(a.err, &timeout) && timeout.Timeout()
}

// parseRetryAfter reads seconds or a date; 0 when there is neither or it has passed. More seconds than fit are the most that do.
func parseRetryAfter(value string) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(max(0, seconds)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// judge returns what an answer to a request in a format means.
func (d *Destination) judge(a answer, format int) verdict {
	version := d.cfg.Formats[format].Version
	switch {
	case a.code == 0, a.code/100 == 1: // of the latter 101 alone arrives here
		return retry
	case a.code/100 == 2:
		if version == promwrite.V2 && !a.hasWritten {
			return unsupported
		}
		return delivered
	case a.code/100 == 5, a.code == http.StatusTooManyRequests, a.code == http.StatusRequestTimeout:
		return retry
	case slices.Contains(d.cfg.Retry.StatusCodes, a.code), a.code/100 == 3, a.isAboutTLS():
		return retrySlowly
	case a.code == http.StatusRequestEntityTooLarge:
		return oversized
	case a.code == http.StatusUnsupportedMediaType:
		return unsupported
	case a.code == http.StatusBadRequest || a.code == http.StatusNotAcceptable || a.code == http.StatusUnprocessableEntity:
		if a.wroteSome() || version == promwrite.V2 && a.hasWritten {
			return rejected
		}
		if oversize.Says(a.text) {
			return oversized
		}
		// A receiver that counts what it wrote has understood the format: its refusal is about the content.
		if !d.formats.isProven(format) {
			return unsupported
		}
		if format != d.formats.last() {
			return doubtful // another server may have answered than those that accepted the format
		}
	}
	return rejected
}

// reason is the label value for metrics.
func (a answer) reason() string {
	switch {
	case a.code == 0:
		return "network"
	case a.code == http.StatusTooManyRequests:
		return "throttled"
	case a.code/100 == 5, a.code == http.StatusRequestTimeout:
		return "server"
	}
	return "refused"
}
