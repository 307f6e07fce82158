// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package k8sinventory replaces the module of its path in the full distribution: see docs/design/057.
//
// Contrib's receiver of Kubernetes objects is available as a module; the package that lists and watches for it is not. Package pull lists objects once
// in an interval, package watch follows changes. An Observer has one goroutine for each namespace that it is asked about; these
// end with their context, or when the channel that Start returns is closed. Objects belong to whoever receives them.
package k8sinventory

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// A Mode is how objects are observed.
type Mode string

const (
	// PullMode lists objects.
	PullMode Mode = "pull"
	// WatchMode follows changes.
	WatchMode Mode = "watch"
)

// Config selects the objects to observe.
type Config struct {
	// Gvr is the kind of the objects.
	Gvr schema.GroupVersionResource
	// Namespaces are the namespaces of the objects. Default all.
	Namespaces []string
	// LabelSelector and FieldSelector restrict them further.
	LabelSelector string
	FieldSelector string
	// ResourceVersion is the state to list, or to watch from. Default the latest.
	ResourceVersion string
}

// An Observer runs until its context ends, or until the channel that Start returns is closed.
type Observer interface {
	Start(ctx context.Context, running *sync.WaitGroup) chan struct{}
}

// A Place is the location of objects: a namespace, or all of them.
type Place struct {
	dynamic.ResourceInterface

	// Namespace is empty for all.
	Namespace string
}

// Places returns the places in a configuration.
func (c *Config) Places(client dynamic.Interface) []Place {
	all := client.Resource(c.Gvr)
	if len(c.Namespaces) == 0 {
		return []Place{{all, ""}}
	}
	var places []Place
	for _, namespace := range c.Namespaces {
		places = append(places, Place{all.Namespace(namespace), namespace})
	}
	return places
}

// pageSize is the number of objects in one request.
const pageSize = 500

// List passes the selected objects to handle, a page at a time, and returns their version.
func (p Place) List(ctx context.Context, c *Config, handle func(*unstructured.UnstructuredList)) (version string, _ error) {
	options := metav1.ListOptions{LabelSelector: c.LabelSelector, FieldSelector: c.FieldSelector, Limit: pageSize}
	if c.ResourceVersion != "" {
		options.ResourceVersion, options.ResourceVersionMatch = c.ResourceVersion, metav1.ResourceVersionMatchExact
	}
	for {
		page, err := p.ResourceInterface.List(ctx, options)
		if err != nil {
			return "", err
		}
		if len(page.Items) > 0 {
			handle(page)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return page.GetResourceVersion(), nil
		}
		options.ResourceVersion, options.ResourceVersionMatch = "", "" // the continue token contains them
	}
}

// Version returns the latest version of the selected objects.
func (p Place) Version(ctx context.Context, c *Config) (string, error) {
	page, err := p.ResourceInterface.List(ctx, metav1.ListOptions{LabelSelector: c.LabelSelector, FieldSelector: c.FieldSelector, Limit: 1})
	if err != nil {
		return "", err
	}
	return page.GetResourceVersion(), nil
}

// Run calls a function in a goroutine for each place. Its context ends with ctx, and when the channel is closed.
func Run(ctx context.Context, running *sync.WaitGroup, places []Place, do func(context.Context, Place)) chan struct{} {
	stop := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	running.Go(func() {
		defer cancel()
		select {
		case <-stop:
		case <-ctx.Done():
		}
	})
	for _, place := range places {
		running.Go(func() { do(ctx, place) })
	}
	return stop
}
