// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func somePprofiles(samples int) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("", "goose.fly")
	p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	for i := range samples {
		p.Samples().AppendEmpty().Values().Append(int64(i))
	}
	return pd
}

// profilesPayload returns profiles in stream form.
func profilesPayload(tb testing.TB, pd pprofile.Profiles) []byte {
	request, err := pprofileotlp.NewExportRequestFromProfiles(pd).MarshalProto()
	require.NoError(tb, err)
	b := append(otlpstream.AppendProfilesTag(nil, len(request)), request...)
	require.NoError(tb, otlpstream.ToStream(b))
	return b
}

func startProfiles(t *testing.T, to xconsumer.Profiles) *sharedReceiver {
	r, err := NewFactory().(xreceiver.Factory).CreateProfiles(t.Context(), settings(), testConfig(), to)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	return r.(*sharedReceiver)
}

func TestProfilesComeOnEachWay(t *testing.T) {
	to := new(consumertest.ProfilesSink)
	r := startProfiles(t, to)
	cc := grpcClient(t, r)
	pd := somePprofiles(3)
	arrived := func(n int) {
		t.Helper()
		require.Len(t, to.AllProfiles(), n)
		require.Equal(t, 3, to.AllProfiles()[n-1].SampleCount())
		require.Equal(t, "goose.fly", to.AllProfiles()[n-1].Dictionary().StringTable().At(1))
	}

	c := openGRPC(t, cc, otlpstream.AllCaps, otlpstream.Profiles.StreamMethod())
	require.NoError(t, c.send(&otlpstream.Request{ID: 1, Items: 3, Data: profilesPayload(t, pd)}))
	require.Equal(t, otlpstream.Success, c.answer().Code)
	arrived(1)

	var response otlpstream.Response
	require.NoError(t, cc.Invoke(testContext(t), "/"+otlpstream.UnaryService+"/"+otlpstream.Profiles.Method(),
		&otlpstream.Request{ID: 7, Items: 3, Data: profilesPayload(t, pd)}, &response, grpc.ForceCodecV2(otlpstream.Codec())))
	require.Equal(t, uint64(7), response.ID)
	arrived(2)

	_, err := pprofileotlp.NewGRPCClient(cc).Export(testContext(t), pprofileotlp.NewExportRequestFromProfiles(pd))
	require.NoError(t, err)
	arrived(3)

	for i, format := range []string{"application/x-protobuf", "application/json"} {
		body, err := pprofileotlp.NewExportRequestFromProfiles(pd).MarshalProto()
		if i == 1 {
			body, err = pprofileotlp.NewExportRequestFromProfiles(pd).MarshalJSON()
		}
		require.NoError(t, err)
		code, _, _ := post(t, r, "/v1development/profiles", format, body)
		require.Equal(t, 200, code)
		arrived(4 + i)
	}
	require.Equal(t, int64(15), r.inspection().Flow().Signals["profiles"].Out)
}

func TestAPayloadOfProfilesIsOneRequest(t *testing.T) {
	to := new(consumertest.ProfilesSink)
	r := startProfiles(t, to)
	c := openGRPC(t, grpcClient(t, r), otlpstream.AllCaps, otlpstream.Profiles.StreamMethod())
	two := append(profilesPayload(t, somePprofiles(1)), profilesPayload(t, somePprofiles(1))...)
	require.NoError(t, c.send(&otlpstream.Request{ID: 1, Items: 2, Data: two}))
	answer := c.answer()
	require.Equal(t, otlpstream.FailedNoneRetryable, answer.Code)
	require.Contains(t, answer.Message, "not one request")
	require.NoError(t, c.send(&otlpstream.Request{ID: 2}))
	require.Equal(t, otlpstream.Success, c.answer().Code, "what is empty is none")
	require.Empty(t, to.AllProfiles())
}

func TestWithoutAPipelineProfilesAreUnknown(t *testing.T) {
	r := start(t, &pipeline{})
	cc := grpcClient(t, r)
	_, err := pprofileotlp.NewGRPCClient(cc).Export(testContext(t), pprofileotlp.NewExportRequestFromProfiles(somePprofiles(1)))
	require.Equal(t, codes.Unimplemented, status.Code(err))
	st, _ := openGRPC(t, cc, otlpstream.AllCaps, otlpstream.Profiles.StreamMethod()).end()
	require.Equal(t, codes.Unimplemented, st.Code())
	code, _, _ := post(t, r, "/v1development/profiles", "application/x-protobuf", nil)
	require.Equal(t, 404, code)
}

type fussyProfiles struct{ consumertest.ProfilesSink }

func (*fussyProfiles) ConsumeProfiles(context.Context, pprofile.Profiles) error {
	return consumererror.NewPermanent(xconsumererror.NewProfiles(errors.New("too old"), somePprofiles(2)))
}

func TestAPartOfProfilesThatIsRefusedIsTold(t *testing.T) {
	r := startProfiles(t, &fussyProfiles{})
	cc := grpcClient(t, r)
	got, err := pprofileotlp.NewGRPCClient(cc).Export(testContext(t), pprofileotlp.NewExportRequestFromProfiles(somePprofiles(3)))
	require.NoError(t, err)
	require.Equal(t, int64(2), got.PartialSuccess().RejectedProfiles())
	require.Contains(t, got.PartialSuccess().ErrorMessage(), "too old")
}

func TestHollowProfilesAreRefused(t *testing.T) {
	const n = 200_000
	hollow := make([]byte, 0, 2*n)
	for range n {
		hollow = append(hollow, 0x12, 0x00) // an empty sample
	}
	wrap := func(tag byte, b []byte) []byte {
		return append(protowire.AppendVarint([]byte{tag}, uint64(len(b))), b...)
	}
	for name, data := range map[string][]byte{
		"samples":    wrap(0x0a, wrap(0x12, wrap(0x12, hollow))),
		"dictionary": wrap(0x12, hollow),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeProfiles(formatProto, data, nil)
			require.ErrorContains(t, err, "most of what they hold is empty")
		})
	}
	_, err := decodeProfiles(formatProto, mustMarshal(t, somePprofiles(1000)), nil)
	require.NoError(t, err)
}

func mustMarshal(tb testing.TB, pd pprofile.Profiles) []byte {
	b, err := pprofileotlp.NewExportRequestFromProfiles(pd).MarshalProto()
	require.NoError(tb, err)
	return b
}
