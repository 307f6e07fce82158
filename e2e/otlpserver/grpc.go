// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpserver

import (
	"context"
	"net/http"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // the default of OTLP exporters
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Exporters send larger messages than the default of 4 MiB.
const maxMessage = 256 << 20

func serveGRPC(t testing.TB, s *Server) {
	t.Helper()
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.WaitForHandlers(true))
	pmetricotlp.RegisterGRPCServer(server, &metricsService{s: s})
	ptraceotlp.RegisterGRPCServer(server, &tracesService{s: s})
	plogotlp.RegisterGRPCServer(server, &logsService{s: s})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(s.grpc) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Errorf("cannot serve gRPC on %s: %v", s.GRPCAddr(), err)
		}
	})
}

type metricsService struct {
	pmetricotlp.UnimplementedGRPCServer

	s *Server
}

func (m *metricsService) Export(ctx context.Context, req pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	step, err := m.s.takeGRPC(ctx, exportMetrics(req.Metrics()))
	resp := pmetricotlp.NewExportResponse()
	step.reject(resp.PartialSuccess().SetRejectedDataPoints, resp.PartialSuccess().SetErrorMessage)
	return resp, err
}

type tracesService struct {
	ptraceotlp.UnimplementedGRPCServer

	s *Server
}

func (t *tracesService) Export(ctx context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	step, err := t.s.takeGRPC(ctx, exportTraces(req.Traces()))
	resp := ptraceotlp.NewExportResponse()
	step.reject(resp.PartialSuccess().SetRejectedSpans, resp.PartialSuccess().SetErrorMessage)
	return resp, err
}

type logsService struct {
	plogotlp.UnimplementedGRPCServer

	s *Server
}

func (l *logsService) Export(ctx context.Context, req plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	step, err := l.s.takeGRPC(ctx, exportLogs(req.Logs()))
	resp := plogotlp.NewExportResponse()
	step.reject(resp.PartialSuccess().SetRejectedLogRecords, resp.PartialSuccess().SetErrorMessage)
	return resp, err
}

// reject sets a partial success, if the step has one.
func (s Step) reject(setRejected func(int64), setMessage func(string)) {
	if s.Rejected != 0 {
		setRejected(s.Rejected)
	}
	if s.RejectedMessage != "" {
		setMessage(s.RejectedMessage)
	}
}

func (s *Server) takeGRPC(ctx context.Context, e export) (Step, error) {
	header := http.Header{}
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		for name, values := range md {
			header[http.CanonicalHeaderKey(name)] = values
		}
	}
	step, going := s.take(ctx, header, e)
	if !going {
		return step, status.FromContextError(ctx.Err()).Err()
	}
	switch step.Fault {
	case Reset:
		if p, ok := peer.FromContext(ctx); ok {
			s.grpc.Reset(p.Addr.String())
		}
		fallthrough // the response must not come before the reset is noticed
	case Hang:
		<-ctx.Done()
		return step, status.FromContextError(ctx.Err()).Err()
	case NoFault:
	}
	return step, status.ErrorProto(step.proto())
}
