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

// part is what a pipeline has refused for good of a request whose other items it has taken. Nothing is refused of most.
type part struct {
	items   int
	message string
}

// maxText is how much of an error is told to a client, or to those who look.
const maxText = 1000

// partOf is the part that an error is about: one that is permanent and carries some of the data, of so many items. One
// that has several errors in it is about the whole: what one branch of a pipeline has lost, another may want again.
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

// shortText is what can be sent of a text: so much, and no broken characters.
func shortText(s string) string { return validText(s[:min(len(s), maxText)]) }

// validText is a text as messages can have it, without broken characters.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// response is the answer of standard OTLP, which says what was refused.
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
