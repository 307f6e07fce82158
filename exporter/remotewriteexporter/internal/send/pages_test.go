// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// aPage is a response of nginx to a request that it refuses by itself.
const aPage = "<html>\r\n<head><title>400 Bad Request</title></head>\r\n<body>\r\n<center><h1>400 Bad Request</h1></center>\r\n</body>\r\n</html>\r\n"

// noCertificate is the response of nginx to a client whose certificate has expired, or that has none.
const noCertificate = "<html>\r\n<head><title>400 No required SSL certificate was sent</title></head>\r\n<body>\r\n<center><h1>400 Bad Request</h1></center>\r\n</body>\r\n</html>\r\n"

// behindProxy returns a destination behind a proxy that refuses requests with a web page while a function says so.
func behindProxy(count *counter, tenants Tenants, formats []block.Format, page string, refuses func(r *http.Request, samples int) bool) *Destination {
	return New(Config{
		URL: "http://there.test/", Formats: formats, Timeout: time.Minute, Reprobe: time.Hour, Tenants: tenants,
		Retry:   Retry{InitialInterval: time.Second, MaxInterval: 30 * time.Second, Multiplier: 2},
		Breaker: Breaker{Failures: 5, OpenFor: 10 * time.Second},
		Client: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err = errors.Join(err, r.Body.Close()); err != nil {
				return nil, err
			}
			if refuses(r, len(body)) {
				return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(page))}, nil
			}
			h := http.Header{}
			h.Set(promwrite.HeaderSamplesWritten, "1")
			return &http.Response{StatusCode: http.StatusNoContent, Header: h, Body: http.NoBody}, nil
		})},
	}, zap.NewNop(), count)
}

// sendAllOf sends blocks like a sender, and returns what is lost.
func sendAllOf(t *testing.T, d *Destination, blocks ...block.Block) (all []error) {
	t.Helper()
	for len(blocks) > 0 {
		lost, err := d.Send(context.Background(), blocks[:1], Times{})
		if later := (*LaterError)(nil); errors.As(err, &later) {
			time.Sleep(later.Wait)
			continue
		}
		require.NoError(t, err)
		all = append(all, lost...)
		blocks = blocks[1:]
	}
	return all
}

// requireNothingLost sends what a proxy refuses with a page for a while, whether the destination accepted anything before
// or not, and whose data it is.
func requireNothingLost(t *testing.T, page string, formats []block.Format, refused time.Duration) {
	t.Helper()
	for _, tenant := range []string{"", "a"} {
		for _, before := range []int{0, 3} {
			synctest.Test(t, func(t *testing.T) {
				var count counter
				var from, until time.Time
				var tenants Tenants
				if tenant != "" {
					tenants = headers{}
				}
				d := behindProxy(&count, tenants, formats, page, func(*http.Request, int) bool { return time.Now().After(from) && time.Now().Before(until) })
				defer d.Close()
				b := requestOf(t, tenant, 1)
				if formats[0].Version == promwrite.V1 {
					var err error
					b, err = block.Transcode(b, formats[0])
					require.NoError(t, err)
				}
				for range before {
					require.Empty(t, sendAllOf(t, d, b))
				}
				from, until = time.Now(), time.Now().Add(refused)
				time.Sleep(time.Nanosecond)
				require.Empty(t, sendAllOf(t, d, b, b, b))
				assert.Equal(t, before+3, count.delivered)
				assert.Zero(t, count.dropped)
				assert.Less(t, time.Since(until), time.Minute)
			})
		}
	}
}

// TestAProxysPageLosesNothing: data that a proxy refuses for some minutes with a page is sent later.
func TestAProxysPageLosesNothing(t *testing.T) {
	for _, formats := range [][]block.Format{plain, plain[:1], plain[2:]} {
		requireNothingLost(t, aPage, formats, 4*time.Minute)
	}
}

// A certificate may stay expired for a night: that is not about the content.
func TestAnExpiredCertificateLosesNothing(t *testing.T) {
	requireNothingLost(t, noCertificate, plain, 10*time.Hour)
}

// TestAPageAboutContentHoldsUpTheFirstOnly: some servers respond with pages to invalid requests. The first of these is
// given up after some minutes; once others are accepted, the following ones are lost immediately, as the response says.
func TestAPageAboutContentHoldsUpTheFirstOnly(t *testing.T) {
	for _, tenant := range []string{"", "a"} {
		synctest.Test(t, func(t *testing.T) {
			var count counter
			var tenants Tenants
			if tenant != "" {
				tenants = headers{}
			}
			good, bad := requestOf(t, tenant, 1), requestOf(t, tenant, 7)
			d := behindProxy(&count, tenants, plain[:1], aPage, func(_ *http.Request, size int) bool { return size == len(bad.Body()) })
			defer d.Close()
			require.NotEqual(t, len(good.Body()), len(bad.Body()))
			began := time.Now()
			require.Len(t, sendAllOf(t, d, good, bad, good), 1)
			require.GreaterOrEqual(t, time.Since(began), pageTime)
			require.Less(t, time.Since(began), 2*pageTime)
			began = time.Now()
			require.Len(t, sendAllOf(t, d, bad, good, bad, good), 2)
			require.Less(t, time.Since(began), time.Second)
			require.Equal(t, 4, count.delivered)
			require.Equal(t, 21, count.dropped)
		})
	}
}
