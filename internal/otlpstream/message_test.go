// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// oracle is the protocol as a schema, which the protobuf library encodes and decodes.
var oracle = func() protoreflect.FileDescriptor {
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type, repeated bool) *descriptorpb.FieldDescriptorProto {
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		if repeated {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, Label: &label}
	}
	const (
		number = descriptorpb.FieldDescriptorProto_TYPE_UINT64
		text   = descriptorpb.FieldDescriptorProto_TYPE_STRING
		data   = descriptorpb.FieldDescriptorProto_TYPE_BYTES
		truth  = descriptorpb.FieldDescriptorProto_TYPE_BOOL
	)
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("otlpstream.proto"), Package: proto.String("otlp"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: proto.String("Request"), Field: []*descriptorpb.FieldDescriptorProto{
				field("id", 1, number, false), field("data", 2, data, true),
				field("items", 16, number, false), field("attempt", 17, number, false), field("trace", 18, data, false),
				field("packed", 20, data, false), field("size", 21, number, false),
			}},
			{Name: proto.String("Response"), Field: []*descriptorpb.FieldDescriptorProto{
				field("id", 1, number, false), field("code", 2, number, false),
				field("delay", 16, number, false), field("message", 17, text, false),
				field("ids", 18, number, true), field("drain", 19, truth, false),
				field("working", 20, truth, false), field("rejected", 21, number, false),
			}},
			// As in the specification, without the extensions.
			{Name: proto.String("PlainRequest"), Field: []*descriptorpb.FieldDescriptorProto{
				field("id", 1, number, false), field("data", 2, data, true),
			}},
			{Name: proto.String("PlainResponse"), Field: []*descriptorpb.FieldDescriptorProto{
				field("id", 1, number, false), field("code", 2, number, false),
			}},
		},
	}, nil)
	if err != nil {
		panic(err)
	}
	return file
}()

func oracleMessage(name protoreflect.Name) *dynamicpb.Message {
	return dynamicpb.NewMessage(oracle.Messages().ByName(name))
}

func get(m *dynamicpb.Message, name protoreflect.Name) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(name))
}

func payload(resources ...string) []byte {
	var b []byte
	for _, r := range resources {
		b = protowire.AppendString(append(b, otlpTag), r)
	}
	return b
}

func streamPayload(tb testing.TB, resources ...string) []byte {
	b := payload(resources...)
	require.NoError(tb, ToStream(b))
	return b
}

func (r *Request) encode() []byte { return append(r.AppendHeader(nil), r.Data...) }

func TestRequestIsWhatTheSchemaSays(t *testing.T) {
	traced := NewTraceContext([16]byte{1, 15: 2}, [8]byte{3, 7: 4}, 5)
	sent := Request{ID: 300, Items: 7, Attempt: 2, Trace: traced, Data: streamPayload(t, "one", "two")}
	wire := sent.encode()
	require.Equal(t, len(wire), sent.SizeProto())

	m := oracleMessage("Request")
	require.NoError(t, proto.Unmarshal(wire, m))
	require.EqualValues(t, 300, get(m, "id").Uint())
	require.EqualValues(t, 7, get(m, "items").Uint())
	require.EqualValues(t, 2, get(m, "attempt").Uint())
	require.Equal(t, traced[:], get(m, "trace").Bytes())
	require.Equal(t, 2, get(m, "data").List().Len())
	require.Equal(t, "two", string(get(m, "data").List().Get(1).Bytes()))

	var got Request
	before := bytes.Clone(wire)
	require.NoError(t, got.Parse(wire))
	require.Equal(t, before, wire, "it is the caller's")
	clear(wire)
	require.Equal(t, payload("one", "two"), got.Data, "the message keeps nothing of it")
	got.Data, got.Buffer = nil, nil
	require.Equal(t, Request{ID: 300, Items: 7, Attempt: 2, Trace: traced}, got)
}

func TestAPayloadInPiecesIsPutTogetherWhereItIs(t *testing.T) {
	piece := func(s string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, fieldData, protowire.BytesType), s)
	}
	var wire []byte
	for i, s := range []string{"one", strings.Repeat("2", 300), "", "four"} {
		wire = append(appendUint(wire, fieldAttempt, uint64(i+1)), piece(s)...)
	}
	var got Request
	require.NoError(t, got.ParseInPlace(wire))
	require.Equal(t, uint64(4), got.Attempt)
	require.Equal(t, payload("one", strings.Repeat("2", 300), "", "four"), got.Data)
	require.Same(t, &wire[3], &got.Data[0], "not a copy")
}

func TestATraceContextHasItsPlace(t *testing.T) {
	trace, span := [16]byte{1, 15: 2}, [8]byte{3, 7: 4}
	c := NewTraceContext(trace, span, 5)
	require.Equal(t, "\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x03\x00\x00\x00\x00\x00\x00\x04\x05", string(c[:]))
	gotTrace, gotSpan, flags := c.Parts()
	require.Equal(t, []any{trace, span, byte(5)}, []any{gotTrace, gotSpan, flags})
	require.False(t, c.IsZero())

	for _, other := range [][]byte{nil, c[:24], append(c[:], 6)} {
		wire := protowire.AppendBytes(protowire.AppendTag([]byte{0x08, 7}, fieldTrace, protowire.BytesType), other)
		var got Request
		require.NoError(t, got.Parse(wire))
		require.Equal(t, uint64(7), got.ID)
		require.True(t, got.Trace.IsZero(), "what is not understood is no reason to refuse a request")
	}
	used := Request{ID: 1, Trace: c}
	require.NoError(t, used.Parse((&Request{ID: 7}).encode()))
	require.True(t, used.Trace.IsZero(), "the last request's is not the next one's")
}

func TestResponseIsWhatTheSchemaSays(t *testing.T) {
	sent := Response{ID: 9, Code: FailedRetryable, Delay: 1500e6, Message: "busy", IDs: []uint64{10, 1 << 40}, Drain: true}
	wire := sent.Append(nil)
	require.Equal(t, len(wire), sent.SizeProto())

	m := oracleMessage("Response")
	require.NoError(t, proto.Unmarshal(wire, m))
	require.EqualValues(t, 9, get(m, "id").Uint())
	require.EqualValues(t, 2, get(m, "code").Uint())
	require.EqualValues(t, 1500, get(m, "delay").Uint())
	require.Equal(t, "busy", get(m, "message").String())
	require.EqualValues(t, 1<<40, get(m, "ids").List().Get(1).Uint())
	require.True(t, get(m, "drain").Bool())
	require.NoError(t, proto.Unmarshal((&Response{ID: 9, Rejected: 1 << 40, Message: "broken \xff"}).Append(nil), m), "whatever the message says")
	require.Equal(t, uint64(1<<40), get(m, "rejected").Uint())
	require.Equal(t, "broken \uFFFD", get(m, "message").String())
	var part Response
	require.NoError(t, part.Parse((&Response{ID: 9, Rejected: 7, Working: true}).Append(nil)))
	require.Equal(t, uint64(7), part.Rejected)

	var got Response
	require.NoError(t, got.Parse(wire))
	require.Equal(t, sent, got)
}

func TestExtensionsAreIgnoredByPeersThatDoNotKnowThem(t *testing.T) {
	request := Request{ID: 5, Items: 7, Attempt: 2, Trace: TraceContext{1}, Data: streamPayload(t, "one")}
	m := oracleMessage("PlainRequest")
	require.NoError(t, proto.Unmarshal(request.encode(), m))
	require.EqualValues(t, 5, get(m, "id").Uint())
	require.NotEmpty(t, m.GetUnknown())

	var got Request
	future := protowire.AppendString(protowire.AppendTag(request.encode(), 999, protowire.BytesType), "later")
	future = protowire.AppendFixed64(protowire.AppendTag(future, 1000, protowire.Fixed64Type), 1)
	require.NoError(t, got.Parse(future))
	require.Equal(t, payload("one"), got.Data)

	plain := oracleMessage("PlainResponse")
	require.NoError(t, proto.Unmarshal((&Response{ID: 5, Code: FailedRetryable, Delay: 1e9, IDs: []uint64{6}}).Append(nil), plain))
	require.EqualValues(t, 2, get(plain, "code").Uint())

	var response Response
	require.NoError(t, response.Parse([]byte{0x08, 5, 0x10, 77}))
	require.Equal(t, FailedRetryable, response.Code, "an unknown result must not lose data")
}

func TestTheSmallestMessagesAreEmpty(t *testing.T) {
	require.Empty(t, (&Request{}).encode())
	require.Empty(t, (&Response{}).Append(nil))
	require.NoError(t, new(Request).Parse(nil))
	require.NoError(t, new(Response).Parse(nil))
}

func TestMalformedMessagesAreErrors(t *testing.T) {
	for _, wire := range []string{"\x08", "\x12\x05a", "\xff", "\x0b", "\x82\x01\xff", "\x00\x00"} {
		require.Error(t, new(Request).Parse([]byte(wire)), "%x", wire)
		require.Error(t, new(Response).Parse([]byte(wire)), "%x", wire)
	}
	require.Error(t, new(Response).Parse([]byte("\x92\x01\x01\xff")), "an ID cut short")
}

func TestPayloadChangesForm(t *testing.T) {
	otlp := payload("one", "", "three")
	stream := append([]byte(nil), otlp...)
	require.NoError(t, ToStream(stream))
	require.NoError(t, ToStream(nil))
	for _, have := range [][]byte{otlp, stream} {
		before := string(have)
		back, err := InOTLPForm(have)
		require.NoError(t, err)
		require.Equal(t, otlp, back)
		forth, err := InStreamForm(have)
		require.NoError(t, err)
		require.Equal(t, stream, forth)
		require.Equal(t, before, string(have), "a payload never changes")
	}
	same, err := InStreamForm(stream)
	require.NoError(t, err)
	require.Same(t, &stream[0], &same[0], "not copied without need")

	require.Error(t, ToStream(stream), "it has that form already")
	require.Error(t, ToStream([]byte{otlpTag, 5, 'a'}))
	_, err = InOTLPForm([]byte{0x1a, 0})
	require.Error(t, err)
}

func TestRejected(t *testing.T) {
	is := func(items int, message string, response ...byte) {
		t.Helper()
		n, text := Rejected(response)
		require.Equal(t, items, n)
		require.Equal(t, message, text)
	}
	is(0, "")
	is(0, "", 0xff)
	is(0, "", 0x0a, 4, 0x08, 200) // truncated
	is(200, "", 0x0a, 3, 0x08, 200, 1)
	is(200, "", 0x78, 1, 0x0a, 5, 0x78, 1, 0x08, 200, 1)
	is(200, "no", 0x0a, 7, 0x08, 200, 1, 0x12, 2, 'n', 'o')
	is(0, "no", 0x0a, 4, 0x12, 2, 'n', 'o')
}

func TestCodecSharesPayloads(t *testing.T) {
	request := &Request{ID: 1, Data: streamPayload(t, "shared")}
	parts, err := Codec().Marshal(request)
	require.NoError(t, err)
	require.Equal(t, request.encode(), parts.Materialize())
	require.Same(t, &request.Data[0], &parts[1].ReadOnlyData()[0], "not a copy")

	var response Response
	answer := Response{ID: 1, Message: "m"}
	raw, err := Codec().Marshal(Raw(answer.Append(nil)))
	require.NoError(t, err)
	require.NoError(t, Codec().Unmarshal(raw, &response))
	require.Equal(t, answer.Message, response.Message)
	var copied Raw
	require.NoError(t, Codec().Unmarshal(raw, &copied))
	require.Equal(t, answer.Append(nil), []byte(copied))

	_, err = Codec().Marshal(3)
	require.Error(t, err)
	require.Error(t, Codec().Unmarshal(raw, new(int)))
	require.Equal(t, "proto", Codec().Name())
}

func TestMarshalProtoFillsTheBuffer(t *testing.T) {
	request := &Request{ID: 1 << 60, Items: 1 << 60, Attempt: 1 << 60, Data: streamPayload(t, "x")}
	require.LessOrEqual(t, len(request.AppendHeader(nil)), maxHeader)
	buf := make([]byte, request.SizeProto())
	require.Equal(t, len(buf), request.MarshalProto(buf))
	require.Equal(t, request.encode(), buf)

	response := &Response{ID: 4, IDs: []uint64{1, 2}}
	buf = make([]byte, response.SizeProto())
	require.Equal(t, len(buf), response.MarshalProto(buf))
	require.Equal(t, response.Append(nil), buf)
}

func TestMessagesCostNoGarbage(t *testing.T) {
	request := Request{ID: 1, Items: 100, Trace: TraceContext{1}, Data: streamPayload(t, "one", "two")}
	wire := request.encode()
	var parsed Request
	require.Zero(t, alloctest.PerRun(func() { _ = parsed.Parse(wire) }))
	answer := Response{ID: 1, IDs: []uint64{2, 3, 4}}
	buf := answer.Append(nil)
	var response Response
	require.Zero(t, alloctest.PerRun(func() { buf = answer.Append(buf[:0]); _ = response.Parse(buf) }))
}

func FuzzRequest(f *testing.F) {
	f.Add((&Request{ID: 300, Items: 7, Attempt: 2, Data: streamPayload(f, "one", "two")}).encode())
	f.Add([]byte("\x92\x00\x01x\x12\x80\x00\x08\x05\x12\x01y"))
	f.Add((&Request{ID: 1, Packed: 9, Trace: TraceContext{1, 24: 1}, Data: []byte("packed")}).encode())
	f.Fuzz(func(t *testing.T, wire []byte) {
		m := oracleMessage("Request")
		var got Request
		err := got.Parse(wire)
		if proto.Unmarshal(wire, m) != nil {
			require.Error(t, err)
			return
		}
		packed, size := false, get(m, "size").Uint()
		for range field(wire, fieldPacked, protowire.BytesType) {
			packed = true
		}
		if packed != (size > 0) || packed && get(m, "data").List().Len() > 0 {
			require.Error(t, err, "packed data comes with its size, and alone")
			return
		}
		require.NoError(t, err)
		require.Equal(t, size, got.Packed)
		if trace := get(m, "trace").Bytes(); len(trace) == len(got.Trace) {
			require.Equal(t, trace, got.Trace[:])
		}
		require.Equal(t, get(m, "id").Uint(), got.ID)
		require.Equal(t, get(m, "items").Uint(), got.Items)
		require.Equal(t, get(m, "attempt").Uint(), got.Attempt)
		if size > 0 {
			require.Equal(t, string(get(m, "packed").Bytes()), string(got.Data))
			return
		}
		var want, have []string
		for i := range get(m, "data").List().Len() {
			want = append(want, string(get(m, "data").List().Get(i).Bytes()))
		}
		for resource := range field(got.Data, otlpField, protowire.BytesType) {
			resource, _ = protowire.ConsumeBytes(resource) // its length may be encoded longer than necessary
			have = append(have, string(resource))
		}
		require.Equal(t, want, have)

		data := string(got.Data)
		require.NoError(t, ToStream(got.Data), "there is nothing else in it")
		var again Request
		require.NoError(t, again.Parse(got.encode()))
		require.Equal(t, data, string(again.Data))
	})
}

func FuzzResponse(f *testing.F) {
	f.Add((&Response{ID: 9, Code: FailedRetryable, Delay: 1500e6, Message: "busy", IDs: []uint64{10, 11}, Drain: true}).Append(nil))
	f.Add([]byte("\x90\x01\x05"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		m := oracleMessage("Response")
		var got Response
		err := got.Parse(wire)
		if proto.Unmarshal(wire, m) != nil {
			// Invalid UTF-8 is accepted in text: it is for people, and no reason to lose a response.
			require.True(t, err != nil || !utf8.ValidString(got.Message) || !utf8.Valid(wire))
			return
		}
		require.NoError(t, err)
		require.Equal(t, get(m, "id").Uint(), got.ID)
		require.Equal(t, get(m, "message").String(), got.Message)
		require.Equal(t, get(m, "drain").Bool(), got.Drain)
		require.Len(t, got.IDs, get(m, "ids").List().Len())
		for i, id := range got.IDs {
			require.Equal(t, get(m, "ids").List().Get(i).Uint(), id)
		}
		if code := get(m, "code").Uint(); code <= 2 {
			require.EqualValues(t, code, got.Code)
		} else {
			require.Equal(t, FailedRetryable, got.Code)
		}
		require.GreaterOrEqual(t, got.Delay, time.Duration(0))
		require.LessOrEqual(t, got.Delay, maxDelay)
	})
}
