// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// A request for profiles has a dictionary beside its resources, which point into it. So where other payloads are a list of
// resources, that of profiles is a list of one: the whole request of standard OTLP, in the same field. All that is done with
// payloads of other signals works with it, but to join two of them.

// ProfilesOverhead returns how many bytes AppendProfilesTag appends for a request of that size.
func ProfilesOverhead(size int) int { return 1 + protowire.SizeVarint(uint64(size)) }

// AppendProfilesTag appends what stands before a request for profiles of that size in a payload in OTLP form.
func AppendProfilesTag(dst []byte, size int) []byte {
	return protowire.AppendVarint(append(dst, otlpTag), uint64(size))
}

// errProfiles is returned for a payload of profiles that is not a single request.
var errProfiles = errors.New("cannot read a payload of profiles: it is not one request of standard OTLP")

// OTLPRequest returns the request of standard OTLP that a payload, in either form, stands for.
func (s Signal) OTLPRequest(payload []byte) ([]byte, error) {
	if s != Profiles {
		return InOTLPForm(payload)
	}
	if len(payload) == 0 {
		return payload, nil
	}
	if payload[0] != otlpTag && payload[0] != streamTag {
		return nil, errProfiles
	}
	request, n := protowire.ConsumeBytes(payload[1:])
	if n != len(payload)-1 {
		return nil, errProfiles
	}
	return request, nil
}
