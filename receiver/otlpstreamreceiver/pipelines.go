// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/internal/owned"
	"github.com/godwit-otel/godwit/internal/reuse"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/admission"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/decode"
)

// format is how data is encoded.
type format string

const (
	formatProto format = "protobuf"
	formatJSON  format = "json"
)

// pipelines holds the pipelines of the receiver, the admission of requests to them, and the handling of their errors.
type pipelines struct {
	// nil where there is none for the signal
	traces   consumer.Traces
	metrics  consumer.Metrics
	logs     consumer.Logs
	profiles xconsumer.Profiles

	admission admission.Admission
	pressure  [otlpstream.SignalCount]admission.Pressure
	again     again
	tap       inspect.Tap // observes what is handed on
	traffic   traffic
}

// has reports whether there is a pipeline for the signal.
func (p *pipelines) has(signal otlpstream.Signal) bool {
	switch signal {
	case otlpstream.Traces:
		return p.traces != nil
	case otlpstream.Metrics:
		return p.metrics != nil
	case otlpstream.Logs:
		return p.logs != nil
	case otlpstream.Profiles:
		return p.profiles != nil
	}
	return false
}

// admit admits a request by its size, before any work is done for it. A status is the refusal.
func (p *pipelines) admit(ctx context.Context, signal otlpstream.Signal, obs *receiverhelper.ObsReport, size int, items uint64) (*admission.Hold, *status.Status) {
	now, why := time.Now(), admission.MemoryLimited
	wait := p.pressure[signal].Left(now)
	if wait == 0 {
		var held *admission.Hold
		if held, wait = p.admission.Acquire(size, now); held != nil {
			return held, nil
		}
		why = admission.TooMuchInFlight
	}
	st := otlpstream.Busy(why, wait)
	refuse(ctx, signal, obs, int(min(items, uint64(size))), st.Err())
	p.traffic.fail(ctx, httpCode(st), 0, st.Message())
	return nil, st
}

// deliver decodes an OTLP request and hands it to the pipeline, in a span. The request is not kept. A nil status is
// success.
func (p *pipelines) deliver(ctx context.Context, signal otlpstream.Signal, obs *receiverhelper.ObsReport, f format, request *otlpstream.Request, held *admission.Hold) (st *status.Status, refused part) {
	p.traffic.raw.Add(int64(len(request.Data)))
	var items int
	var err error
	switch signal {
	case otlpstream.Traces:
		ctx = obs.StartTracesOp(ctx)
		describe(ctx, request)
		var td ptrace.Traces
		if td, err = decodeTraces(f, request.Data, held); err == nil {
			if items = td.SpanCount(); items > 0 {
				p.tap.Traces(td)
				err = owned.Traces(ctx, p.traces, td)
			}
		}
		refused = partOf(err, items)
		obs.EndTracesOp(ctx, string(f), items-refused.items, whole(err, refused))
	case otlpstream.Metrics:
		ctx = obs.StartMetricsOp(ctx)
		describe(ctx, request)
		var md pmetric.Metrics
		var again *reuse.Metrics // memory of md
		if md, again, err = p.decodeMetrics(f, request.Data, held); err == nil {
			if items = md.DataPointCount(); items > 0 {
				p.tap.Metrics(md)
				err = owned.Metrics(lend(ctx, again), p.metrics, md)
			}
			if err == nil {
				p.again.takeBack(again)
			}
		}
		refused = partOf(err, items)
		obs.EndMetricsOp(ctx, string(f), items-refused.items, whole(err, refused))
	case otlpstream.Logs:
		ctx = obs.StartLogsOp(ctx)
		describe(ctx, request)
		var ld plog.Logs
		if ld, err = decodeLogs(f, request.Data, held); err == nil {
			if items = ld.LogRecordCount(); items > 0 {
				p.tap.Logs(ld)
				err = owned.Logs(ctx, p.logs, ld)
			}
		}
		refused = partOf(err, items)
		obs.EndLogsOp(ctx, string(f), items-refused.items, whole(err, refused))
	case otlpstream.Profiles:
		ctx = obs.StartProfilesOp(ctx)
		describe(ctx, request)
		var pd pprofile.Profiles
		if pd, err = decodeProfiles(f, request.Data, held); err == nil {
			if items = pd.SampleCount(); items > 0 {
				err = owned.Profiles(ctx, p.profiles, pd)
			}
		}
		refused = partOf(err, items)
		obs.EndProfilesOp(ctx, string(f), items-refused.items, whole(err, refused))
	}
	if refused.items > 0 {
		refuse(ctx, signal, obs, refused.items, err)
		p.traffic.countPart(ctx, signal, items, refused)
		return nil, refused
	}
	st = statusOf(err)
	switch {
	case err == nil && items > 0:
		p.pressure[signal].Taken()
	case admission.Limited(err) && retryable(st):
		st = otlpstream.Busy(st.Message(), p.pressure[signal].Refused(time.Now()))
	}
	p.traffic.count(ctx, signal, items, st)
	return st, refused
}

// whole makes an error one about the whole request.
func whole(err error, refused part) error {
	if refused.items > 0 {
		return nil
	}
	return err
}

// refuse counts items of a request that is refused undecoded, or of which a part is.
func refuse(ctx context.Context, signal otlpstream.Signal, obs *receiverhelper.ObsReport, items int, err error) {
	switch signal {
	case otlpstream.Traces:
		obs.EndTracesOp(obs.StartTracesOp(ctx), string(formatProto), items, err)
	case otlpstream.Metrics:
		obs.EndMetricsOp(obs.StartMetricsOp(ctx), string(formatProto), items, err)
	case otlpstream.Logs:
		obs.EndLogsOp(obs.StartLogsOp(ctx), string(formatProto), items, err)
	case otlpstream.Profiles:
		obs.EndProfilesOp(obs.StartProfilesOp(ctx), string(formatProto), items, err)
	}
}

// Protobuf is decoded by our own decoder and, if it is unusual, by pdata, which knows everything, and reports what is
// wrong with malformed data.

func decodeTraces(f format, data []byte, held *admission.Hold) (ptrace.Traces, error) {
	if f == formatProto {
		d := decode.Get()
		defer decode.Put(d)
		if td, ok := d.Traces(data); ok {
			return td, nil
		}
	}
	request := ptraceotlp.NewExportRequest()
	err := unmarshal(request.UnmarshalProto, request.UnmarshalJSON, otlpstream.Traces, f, data, held)
	return request.Traces(), err
}

func (p *pipelines) decodeMetrics(f format, data []byte, held *admission.Hold) (md pmetric.Metrics, again *reuse.Metrics, err error) {
	if f == formatProto {
		d := decode.Get()
		defer decode.Put(d)
		var lists *decode.Lists
		if again, lists = p.again.get(); again != nil {
			if d.MetricsAgain(data, again, lists) {
				return again.Metrics(), again, nil
			}
			p.again.takeBack(again)
		} else if md, ok := d.Metrics(data); ok {
			return md, nil, nil
		}
	}
	request := pmetricotlp.NewExportRequest()
	err = unmarshal(request.UnmarshalProto, request.UnmarshalJSON, otlpstream.Metrics, f, data, held)
	return request.Metrics(), nil, err
}

func decodeLogs(f format, data []byte, held *admission.Hold) (plog.Logs, error) {
	if f == formatProto {
		d := decode.Get()
		defer decode.Put(d)
		if ld, ok := d.Logs(data); ok {
			return ld, nil
		}
	}
	request := plogotlp.NewExportRequest()
	err := unmarshal(request.UnmarshalProto, request.UnmarshalJSON, otlpstream.Logs, f, data, held)
	return request.Logs(), err
}

// decodeProfiles leaves everything to pdata: profiles are few, and their format still changes.
func decodeProfiles(f format, data []byte, held *admission.Hold) (pprofile.Profiles, error) {
	request := pprofileotlp.NewExportRequest()
	err := unmarshal(request.UnmarshalProto, request.UnmarshalJSON, otlpstream.Profiles, f, data, held)
	return request.Profiles(), err
}

// maxDepth limits how deep messages and JSON may be nested: OTLP itself takes a dozen levels, and three more for each
// level of attributes. pdata uses recursion, and a stack overflow ends the process.
const maxDepth = 256

func unmarshal(proto, json func([]byte) error, signal otlpstream.Signal, f format, data []byte, held *admission.Hold) error {
	from := proto
	var weight int
	switch {
	case f == formatJSON && decode.Depth(data, maxDepth) >= maxDepth, f == formatProto && decode.Nested(data, maxDepth):
		return status.Errorf(codes.InvalidArgument, "cannot decode %d bytes of %s: nested deeper than %d", len(data), f, maxDepth)
	case f == formatJSON:
		from, weight = json, decode.WeightOfJSON(signal, data)
	default:
		weight = decode.Weight(signal, data)
	}
	if weight > decode.Room(len(data)) {
		return status.Errorf(codes.InvalidArgument, "cannot decode %d bytes of %s: they would take more than %d of memory, since most of what they hold is empty",
			len(data), f, decode.Room(len(data)))
	}
	if err := held.MakeRoom(weight); err != nil {
		return err
	}
	if err := from(data); err != nil {
		return status.Error(codes.InvalidArgument, fmt.Sprintf("cannot decode %d bytes of %s: %v", len(data), f, err))
	}
	return nil
}

// statusOf is the only place that decides whether an error is permanent. A status in the error is used, unless it
// contradicts a permanent error.
func statusOf(err error) *status.Status {
	if err == nil {
		return nil
	}
	st, ok := status.FromError(err)
	known := ok && st.Code() != codes.Unknown
	switch {
	case ok && st.Code() == codes.OK:
		return nil
	case consumererror.IsPermanent(err) && (!known || retryable(st)):
		return status.New(codes.Internal, validText(err.Error()))
	case known:
		return st
	}
	return status.New(codes.Unavailable, validText(err.Error()))
}

// retryable is more generous than OTLP demands of clients: an exhausted resource, such as memory, will be available
// again.
func retryable(st *status.Status) bool {
	return st.Code() == codes.ResourceExhausted || otlpstream.Transient(st)
}

// resultOf converts a status to a result code.
func resultOf(st *status.Status) otlpstream.ResultCode {
	switch {
	case st == nil:
		return otlpstream.Success
	case retryable(st):
		return otlpstream.FailedRetryable
	}
	return otlpstream.FailedNoneRetryable
}
