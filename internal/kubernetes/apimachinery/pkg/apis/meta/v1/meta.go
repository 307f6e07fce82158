// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has what each object of Kubernetes says about itself, as far as service discovery reads it. Fields that nobody reads are
// not decoded, so that an object takes the memory of those that are.
package v1

// An Object is one of those that the API lists and watches.
type Object interface {
	GetName() string
	GetNamespace() string
	GetResourceVersion() string
	GetOwnerReferences() []OwnerReference
}

// ObjectMeta is in each object.
type ObjectMeta struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	UID             string            `json:"uid"`
	ResourceVersion string            `json:"resourceVersion"`
	Labels          map[string]string `json:"labels"`
	Annotations     map[string]string `json:"annotations"`
	OwnerReferences []OwnerReference  `json:"ownerReferences"`
}

// GetName implements Object.
func (m *ObjectMeta) GetName() string { return m.Name }

// GetNamespace implements Object.
func (m *ObjectMeta) GetNamespace() string { return m.Namespace }

// GetResourceVersion implements Object.
func (m *ObjectMeta) GetResourceVersion() string { return m.ResourceVersion }

// GetOwnerReferences implements Object.
func (m *ObjectMeta) GetOwnerReferences() []OwnerReference { return m.OwnerReferences }

// An OwnerReference names an object that owns another one.
type OwnerReference struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Controller *bool  `json:"controller"`
}

// ListOptions say which objects are listed or watched, and since when.
type ListOptions struct {
	LabelSelector   string
	FieldSelector   string
	ResourceVersion string
}
