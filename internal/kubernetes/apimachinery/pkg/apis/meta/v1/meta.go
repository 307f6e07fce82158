// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has the metadata of Kubernetes objects that service discovery reads. Other fields are not decoded, so an
// object only takes the memory of these.
package v1

// An Object is an object that the API lists and watches.
type Object interface {
	GetName() string
	GetNamespace() string
	GetResourceVersion() string
	GetOwnerReferences() []OwnerReference
}

// ObjectMeta is the metadata of an object.
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

// An OwnerReference refers to the owner of an object.
type OwnerReference struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Controller *bool  `json:"controller"`
}

// ListOptions select the objects to list or watch, and the version.
type ListOptions struct {
	LabelSelector   string
	FieldSelector   string
	ResourceVersion string
}
