// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"reflect"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pipeline"
)

// pipelineOf returns the pipeline that an instance is started in. Each pipeline has an instance of its own, with limits and
// state of its own, and what it saves must find back to it: instances are made in no certain order.
//
// The Collector says it to nobody but the reporter of component status, which is the host that an instance is started with:
// in a field, that is exported, of a type that is not. A host without one has a single instance, as far as is known here.
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
	if several { // it is shared, and has one state
		return ""
	}
	return name
}
