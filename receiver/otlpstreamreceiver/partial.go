// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"errors"
	"strings"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// part is what a pipeline has permanently refused of a request whose other items it accepted: usually nothing.
type part struct {
	items   int
	message string
}

// maxText limits how much of an error is sent to a client, or shown.
const maxText = 1000

// partOf returns the part that an error is about: a permanent error with some of the data. An error that joins several
// is about the whole: what one branch of a pipeline has lost, another may accept when it is sent again.
func partOf(err error, items int) part {
	if !consumererror.IsPermanent(err) {
		return part{}
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		n := 0
		switch e := e.(type) { //nolint:errorlint // it unwraps by itself, and not what is joined
		case consumererror.Traces:
			n = e.Data().SpanCount()
		case consumererror.Metrics:
			n = e.Data().DataPointCount()
		case consumererror.Logs:
			n = e.Data().LogRecordCount()
		case xconsumererror.Profiles:
			n = e.Data().SampleCount()
		}
		if n > 0 && n < items {
			return part{n, shortText(err.Error())}
		}
	}
	return part{}
}

// shortText is the part of a text that is sent, in valid UTF-8.
func shortText(s string) string { return validText(s[:min(len(s), maxText)]) }

// validText makes a text valid UTF-8.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// response is the answer of standard OTLP, with what was refused.
func (p part) response(signal otlpstream.Signal, f format) ([]byte, error) {
	var response interface {
		MarshalProto() ([]byte, error)
		MarshalJSON() ([]byte, error)
	}
	switch signal {
	case otlpstream.Traces:
		r := ptraceotlp.NewExportResponse()
		if p.items > 0 {
			r.PartialSuccess().SetRejectedSpans(int64(p.items))
			r.PartialSuccess().SetErrorMessage(p.message)
		}
		response = r
	case otlpstream.Metrics:
		r := pmetricotlp.NewExportResponse()
		if p.items > 0 {
			r.PartialSuccess().SetRejectedDataPoints(int64(p.items))
			r.PartialSuccess().SetErrorMessage(p.message)
		}
		response = r
	case otlpstream.Profiles:
		r := pprofileotlp.NewExportResponse()
		if p.items > 0 {
			r.PartialSuccess().SetRejectedProfiles(int64(p.items))
			r.PartialSuccess().SetErrorMessage(p.message)
		}
		response = r
	default:
		r := plogotlp.NewExportResponse()
		if p.items > 0 {
			r.PartialSuccess().SetRejectedLogRecords(int64(p.items))
			r.PartialSuccess().SetErrorMessage(p.message)
		}
		response = r
	}
	if f == formatJSON {
		return response.MarshalJSON()
	}
	return response.MarshalProto()
}
