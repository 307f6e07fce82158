// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/heads"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// leastWindow is the minimum that a client may send ahead in HTTP/2, on a stream and on a connection. gRPC's default
// window would let one batch pass in each round trip. mostWindow is the maximum, which limits what a client can make
// the kernel and gRPC hold unread.
const (
	leastWindow = 1 << 20
	mostWindow  = 16 << 20
)

func (r *otlpReceiver) startGRPC(ctx context.Context, host component.Host) error {
	cfg := r.cfg.Protocols.GRPC.Get()
	// A client may send what it may have unanswered: HTTP/2 must not block it before that.
	window := int32(max(leastWindow, min(r.cfg.InFlight.BytesPerStream, mostWindow)))
	inflater, err := newInflater(maxMessage(cfg))
	if err != nil {
		return err
	}
	options := []configgrpc.ToServerOption{
		configgrpc.WithGrpcServerOption(grpc.StatsHandler(&r.pipelines.traffic)),
		configgrpc.WithGrpcServerOption(grpc.InitialWindowSize(window)),
		configgrpc.WithGrpcServerOption(grpc.InitialConnWindowSize(window)),
		configgrpc.WithGrpcServerOption(grpc.MaxHeaderListSize(heads.Largest)),
		configgrpc.WithGrpcServerOption(grpc.RPCDecompressor(inflater)), //nolint:staticcheck // no other is for one server alone
	}
	settings := *cfg
	if len(cfg.Middlewares) == 0 { // they may set credentials
		counted, err := r.credentials(ctx, cfg)
		if err != nil {
			return fmt.Errorf("cannot load `protocols::grpc::tls`: %w", err)
		}
		settings.TLS = configgrpc.NewDefaultServerConfig().TLS // none: the credentials below have it
		options = append(options, configgrpc.WithGrpcServerOption(grpc.Creds(counted)))
		if settings.ReadBufferSize == 0 { // gRPC's default would stay with each idle connection, because it only recognises idle connections of TCP; larger data bypasses it
			settings.ReadBufferSize = 8 << 10
		}
	}
	r.grpc, err = settings.ToServer(ctx, host.GetExtensions(), r.settings.TelemetrySettings, options...)
	if err != nil {
		return fmt.Errorf("cannot make the gRPC server: %w", err)
	}
	r.register(r.grpc)
	listener, err := cfg.NetAddr.Listen(ctx)
	if err != nil {
		return fmt.Errorf("cannot listen on `protocols::grpc::endpoint` %q: %w", cfg.NetAddr.Endpoint, err)
	}
	r.grpcAddr = listener.Addr().String()
	r.servers.Go(func() {
		if err := r.grpc.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			r.fatal(host, err)
		}
	})
	return nil
}

// register registers all services. Those of the specification have one method per signal and each signal of standard
// OTLP has a service; the handlers are the same.
func (r *otlpReceiver) register(server *grpc.Server) {
	services := map[string]*grpc.ServiceDesc{}
	service := func(name string) *grpc.ServiceDesc {
		if services[name] == nil {
			services[name] = &grpc.ServiceDesc{ServiceName: name, HandlerType: (*any)(nil)}
		}
		return services[name]
	}
	addStream := func(name string, signal otlpstream.Signal) {
		s := service(name)
		s.Streams = append(s.Streams, grpc.StreamDesc{
			StreamName: signal.Method(), ClientStreams: true, ServerStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return r.serveStream(stream, signal) },
		})
	}
	addUnary := func(name, method string, signal otlpstream.Signal, fresh func() unaryRequest) {
		s := service(name)
		s.Methods = append(s.Methods, grpc.MethodDesc{
			MethodName: method,
			Handler:    r.unaryHandler("/"+name+"/"+method, signal, fresh),
		})
	}
	for _, signal := range otlpstream.Signals() {
		if !r.pipelines.has(signal) {
			continue
		}
		numbered := func() unaryRequest { return numberedRequest{r.request(), signal} }
		addStream(otlpstream.StreamService, signal)
		addUnary(otlpstream.UnaryService, signal.Method(), signal, numbered)
		if stream, unary := signal.ReferenceServices(); stream != "" {
			addStream(stream, signal)
			addUnary(unary, signal.Method(), signal, numbered)
		}
		addUnary(signal.OTLPService(), "Export", signal, func() unaryRequest { return plainRequest{r.request(), signal} })
	}
	for _, s := range services {
		server.RegisterService(s, nil)
	}
}

// maxMessage returns the maximum size of a message over gRPC.
func maxMessage(cfg *configgrpc.ServerConfig) int {
	return cmp.Or(cfg.MaxRecvMsgSizeMiB, 4) << 20 // gRPC's default
}

func (r *otlpReceiver) serveStream(stream grpc.ServerStream, signal otlpstream.Signal) error {
	ctx := stream.Context()
	if st := r.places.enter(ctx, client.FromContext(ctx).Addr); st != nil {
		return st.Err()
	}
	md, _ := metadata.FromIncomingContext(ctx)
	var caps otlpstream.Caps
	for _, value := range md.Get(otlpstream.HeaderCaps) {
		caps |= otlpstream.ParseCaps(value)
	}
	limits, server := r.greet(signal, caps, maxMessage(r.cfg.Protocols.GRPC.Get()))
	header := metadata.Pairs(append(limits.Headers(), otlpstream.HeaderCaps, server.String())...)
	uncompressed(ctx)
	// At once, because the client keeps what it has sent until it receives them.
	if err := stream.SendHeader(header); err != nil {
		r.memory.Release(limits.Keep)
		r.places.leave()
		return err
	}
	s := r.newSession(grpcConn{stream}, signal, caps, transportStream, limits)
	s.arrival = arrivalOf(ctx)
	if names := md.Get(otlpstream.HeaderSlot); len(names) == 1 {
		s.seen = r.clients.Enter(signal, names[0])
	}
	ended := make(chan error, 1)
	go func() {
		defer r.places.leave()
		ended <- s.run(ctx).Err()
	}()
	select {
	case err := <-ended:
		return err
	case <-s.stuck: // returning ends a stream, and with it the sending of an answer that the client does not read
		return status.Error(codes.Unavailable, "the client does not read what it is answered")
	}
}

type grpcConn struct{ stream grpc.ServerStream }

func (c grpcConn) Recv(fresh func() *otlpstream.Request) (*otlpstream.Request, error) {
	m := inbound{fresh: fresh}
	if err := c.stream.RecvMsg(&m); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.EOF
		}
		return m.Request, err
	}
	return m.Request, m.err
}

func (c grpcConn) Send(response *otlpstream.Response) error { return c.stream.SendMsg(response) }

// inbound is a request whose errors do not end its stream.
type inbound struct {
	*otlpstream.Request // nil at first; the codec requires all of its methods

	fresh func() *otlpstream.Request
	err   error
}

func (m *inbound) UnmarshalProto(buf []byte) error {
	m.Request = m.fresh()
	if err := m.Parse(buf); err != nil {
		m.err = fmt.Errorf("%w: %w", errMalformed, err)
	}
	return nil
}

// unaryRequest is the request of a unary method.
type unaryRequest interface {
	request() *otlpstream.Request
	// ready converts the payload to standard OTLP.
	ready() error
	// answer returns the answer to a request that the pipeline accepted, except for a part.
	answer(part) (any, error)
}

// numberedRequest is a request of the stream specification.
type numberedRequest struct {
	*otlpstream.Request

	signal otlpstream.Signal
}

func (m numberedRequest) ready() error { return unwrap(m.signal, m.Request) }

func (m numberedRequest) request() *otlpstream.Request { return m.Request }

func (m numberedRequest) answer(p part) (any, error) {
	return &otlpstream.Response{ID: m.ID, Rejected: uint64(p.items), Message: p.message}, nil
}

// plainRequest is a request of standard OTLP, which stays encoded until there is room for its content.
type plainRequest struct {
	*otlpstream.Request

	signal otlpstream.Signal
}

func (m plainRequest) request() *otlpstream.Request { return m.Request }

func (m plainRequest) ready() error { return nil }

// UnmarshalProto keeps a copy of the message.
func (m plainRequest) UnmarshalProto(buf []byte) error {
	*m.Request = otlpstream.Request{Buffer: append(m.Buffer[:0], buf...)}
	m.Data = m.Buffer
	return nil
}

// answer returns an empty message if all was accepted.
func (m plainRequest) answer(p part) (any, error) {
	if p.items == 0 {
		return new(otlpstream.Raw), nil
	}
	b, err := p.response(m.signal, formatProto)
	return (*otlpstream.Raw)(&b), err
}

func (r *otlpReceiver) unaryHandler(method string, signal otlpstream.Signal, fresh func() unaryRequest) grpc.MethodHandler {
	handle := func(ctx context.Context, request any) (any, error) {
		m := request.(unaryRequest)
		if fault := m.ready(); fault != nil {
			r.counts.count(transportUnary, otlpstream.FailedNoneRetryable.String(), 1)
			return nil, status.Error(codes.InvalidArgument, fault.Error())
		}
		st, rejected, refused := r.takeUnary(ctx, signal, transportUnary, formatProto, m.request())
		r.counts.count(transportUnary, resultName(resultOf(st), refused, rejected), 1)
		if st != nil {
			return nil, st.Err()
		}
		return m.answer(rejected)
	}
	return func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		uncompressed(ctx)
		request := fresh()
		defer func() { r.recycle(request.request()) }()
		if err := decode(request); err != nil {
			return nil, err
		}
		if interceptor == nil {
			return handle(ctx, request)
		}
		return interceptor(ctx, request, &grpc.UnaryServerInfo{Server: srv, FullMethod: method}, handle)
	}
}

// takeUnary handles one request from its bytes to the pipeline's answer.
func (r *otlpReceiver) takeUnary(ctx context.Context, signal otlpstream.Signal, t transport, f format, request *otlpstream.Request) (st *status.Status, rejected part, refused bool) {
	held, st := r.pipelines.admit(ctx, signal, r.counts.obs[t], len(request.Data), request.Items)
	if st != nil {
		return st, part{}, true
	}
	defer held.Release()
	st, rejected = r.pipelines.deliver(ctx, signal, r.counts.obs[t], f, request, held)
	return st, rejected, held.Refused
}
