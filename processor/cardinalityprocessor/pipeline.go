// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"reflect"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pipeline"
)

// pipelineOf returns the pipeline in which an instance is started. Each pipeline has an instance of its own, with its
// own limits and state, and must find its saved state again, although instances are made in no particular order.
//
// The Collector tells the pipeline only to the reporter of component status, which is the host that an instance is
// started with: in an exported field of an unexported type. With a host without that, the only instance is assumed.
func pipelineOf(host component.Host) string {
	of := reflect.ValueOf(host)
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return ""
	}
	field := of.FieldByName("InstanceID")
	if !field.IsValid() || !field.CanInterface() || field.Kind() == reflect.Pointer && field.IsNil() {
		return ""
	}
	instance, ok := field.Interface().(interface {
		AllPipelineIDs(func(id pipeline.ID) bool)
	})
	if !ok {
		return ""
	}
	name, several := "", false
	instance.AllPipelineIDs(func(id pipeline.ID) bool {
		several = name != ""
		name = id.String()
		return !several
	})
	if several { // a shared processor has one state
		return ""
	}
	return name
}
