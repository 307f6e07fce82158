// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func post(tb testing.TB, r *sharedReceiver, path, contentType string, body []byte) (int, http.Header, string) {
	req, err := http.NewRequestWithContext(testContext(tb), http.MethodPost, "http://"+r.httpAddr+path, bytes.NewReader(body))
	require.NoError(tb, err)
	req.Header.Set("Content-Type", contentType)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	require.NoError(tb, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(tb, err)
	return resp.StatusCode, resp.Header, string(text)
}

func TestClientMetadataReachesThePipeline(t *testing.T) {
	p := &pipeline{}
	r := start(t, p, func(cfg *Config) { grpcOf(cfg).IncludeMetadata = true; httpOf(cfg).IncludeMetadata = true })
	bothTransports(t, func(t *testing.T, dial dialer) {
		c := dial(t, r, otlpstream.AllCaps)
		c.export(1, "x")
		c.answer()
		p.mu.Lock()
		defer p.mu.Unlock()
		info := client.FromContext(p.ctxs[len(p.ctxs)-1])
		require.Equal(t, []string{otlpstream.AllCaps.String()}, info.Metadata.Get(otlpstream.HeaderCaps))
		require.NotNil(t, info.Addr)
	})
}

func TestHTTPSaysWhatIsWrong(t *testing.T) {
	r := start(t, &pipeline{})
	code, _, _ := post(t, r, "/v1/traces", "text/plain", nil)
	require.Equal(t, http.StatusUnsupportedMediaType, code)
	code, _, body := post(t, r, "/v1/traces", "application/json", []byte("{"))
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, "cannot decode 1 bytes of json")
	code, _, _ = post(t, r, "/v1/traces", "application/x-protobuf", []byte{0xff})
	require.Equal(t, http.StatusBadRequest, code)
	code, _, _ = post(t, r, otlpstream.Traces.WebSocketPath(), "", nil)
	require.Equal(t, http.StatusUpgradeRequired, code)
	resp, err := http.Get("http://" + r.httpAddr + "/v1/traces")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	http.DefaultClient.CloseIdleConnections()
}

func TestOnlyPipelinesThatExistAreServed(t *testing.T) {
	cfg := testConfig()
	traces, err := NewFactory().CreateTraces(context.Background(), settings(), cfg, &pipeline{})
	require.NoError(t, err)
	r := traces.(*sharedReceiver)
	require.NoError(t, r.Start(context.Background(), nopHost))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	_, err = plogotlp.NewGRPCClient(grpcClient(t, r)).Export(testContext(t), plogotlp.NewExportRequest())
	require.Equal(t, codes.Unimplemented, status.Code(err))
	st, _ := openGRPC(t, grpcClient(t, r), 0, otlpstream.Logs.StreamMethod()).end()
	require.Equal(t, codes.Unimplemented, st.Code())
	code, _, _ := post(t, r, "/v1/logs", "application/json", []byte("{}"))
	require.Equal(t, http.StatusNotFound, code)
}

func TestAPortThatIsTakenIsAnError(t *testing.T) {
	first := start(t, &pipeline{})
	for key, taken := range map[string]func(*Config){
		"grpc": func(cfg *Config) { grpcOf(cfg).NetAddr.Endpoint = first.grpcAddr },
		"http": func(cfg *Config) { httpOf(cfg).NetAddr.Endpoint = first.httpAddr },
	} {
		r := prepare(t, &pipeline{}, taken)
		require.ErrorContains(t, r.Start(context.Background(), nopHost), fmt.Sprintf("`protocols::%s::endpoint`", key))
		require.NoError(t, r.Shutdown(context.Background()))
	}
}
