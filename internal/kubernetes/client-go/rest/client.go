// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// A Client sends requests to an API.
type Client struct {
	base      *url.URL
	userAgent string
	http      *http.Client
}

// NewClient makes a client. It sends no requests yet.
func NewClient(c *Config) (*Client, error) {
	base, err := c.BaseURL()
	if err != nil {
		return nil, err
	}
	client, err := HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	return &Client{base: base, userAgent: c.UserAgent, http: client}, nil
}

// Collection returns the objects of a kind, in a namespace or in all. made makes an object to decode into.
func (c *Client) Collection(group, namespace, resource string, made func() metav1.Object) Collection {
	if namespace != "" {
		resource = "namespaces/" + url.PathEscape(namespace) + "/" + resource
	}
	return Collection{client: c, path: path.Join(group, resource), made: made, shape: shapeOf(reflect.TypeOf(made()))}
}

// A Collection is the objects of one kind.
type Collection struct {
	client *Client
	path   string
	made   func() metav1.Object
	shape  *shape // of the objects that made makes
}

// A List is the objects of a collection at a version.
type List struct {
	ResourceVersion string
	Items           []metav1.Object
}

const (
	// pageSize is the number of objects in one request.
	pageSize = 500
	// The API ends a watch after a random time from watchTime to twice that.
	watchTime = 5 * time.Minute
	// watchGrace is how much later the client ends it, in case the API has disappeared silently.
	watchGrace = 30 * time.Second
)

// List reads all pages of a list. An object is decoded as it arrives. If the API forgets the version of a list before
// all pages are read, List requests everything at once.
func (c Collection) List(ctx context.Context, o metav1.ListOptions) (*List, error) {
	list := &List{}
	query := query(o)
	query.Set("limit", strconv.Itoa(pageSize))
	for {
		response, err := c.get(ctx, query)
		if status := (*StatusError)(nil); query.Has("continue") && errors.As(err, &status) && status.IsExpired() {
			query.Del("continue")
			query.Del("limit")
			list = &List{}
			continue
		}
		if err != nil {
			return nil, err
		}
		next, err := c.page(response.Body, list)
		_ = response.Body.Close() // everything was read, or the error says why not
		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", c.path, err)
		}
		if next == "" {
			return list, nil
		}
		query.Set("continue", next)
		query.Del("resourceVersion") // the continue token contains it
	}
}

func query(o metav1.ListOptions) url.Values {
	q := url.Values{}
	for key, value := range map[string]string{"labelSelector": o.LabelSelector, "fieldSelector": o.FieldSelector, "resourceVersion": o.ResourceVersion} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return q
}

// page adds the objects of a page to a list. It returns the token for the next page, "" if there is none.
func (c Collection) page(body io.Reader, list *List) (string, error) {
	var meta struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	}
	r := newReader(body)
	err := r.object(func(from int) error {
		name := string(r.name(from))
		r.kept = r.kept[:0]
		switch name {
		case "metadata":
			if err := r.pass(true); err != nil {
				return err
			}
			return json.Unmarshal(r.kept, &meta)
		case "items":
			return c.items(r, list)
		}
		return r.pass(false)
	})
	list.ResourceVersion = meta.ResourceVersion
	return meta.Continue, err
}

func (c Collection) items(r *reader, list *List) error {
	if begin, err := r.peek(); err == nil && begin == 'n' {
		return r.pass(false) // null is a list without items
	}
	return r.elements('[', ']', func() error {
		r.kept = r.kept[:0]
		if err := r.keep(c.shape); err != nil {
			return err
		}
		object := c.made()
		list.Items = append(list.Items, object)
		return json.Unmarshal(r.kept, object)
	})
}

// Watch follows the changes after a version.
func (c Collection) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	lasts := watchTime + rand.N(watchTime) //nolint:gosec // it is no secret
	ctx, cancel := context.WithTimeout(ctx, lasts+watchGrace)
	query := query(o)
	query.Set("watch", "true")
	query.Set("allowWatchBookmarks", "true")
	query.Set("timeoutSeconds", strconv.Itoa(int(lasts.Seconds())))
	response, err := c.get(ctx, query) //nolint:bodyclose // Stop closes it
	if err != nil {
		cancel()
		return nil, err
	}
	return &watcher{body: response.Body, reader: newReader(response.Body), collection: c, cancel: cancel}, nil
}

// get requests the collection. An unsuccessful answer is an error.
func (c Collection) get(ctx context.Context, query url.Values) (*http.Response, error) {
	u := c.client.base.JoinPath(c.path)
	u.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", c.client.userAgent)
	response, err := c.client.http.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, statusOf(response, c.path)
	}
	return response, nil
}

// A StatusError is an error of the API.
type StatusError struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Error implements error.
func (e *StatusError) Error() string { return e.Message }

// IsExpired reports whether the API has forgotten the requested version.
func (e *StatusError) IsExpired() bool {
	return e.Code == http.StatusGone || e.Reason == "Expired" || e.Reason == "Gone"
}

func statusOf(response *http.Response, of string) *StatusError {
	body, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // as much as can be read
	status := &StatusError{}
	if json.Unmarshal(body, status) != nil || status.Message == "" {
		text := strings.TrimSpace(string(body[:min(len(body), 512)]))
		status.Message = strings.TrimSpace(fmt.Sprintf("the API answers %s to %s: %s", response.Status, of, text))
	}
	status.Code = response.StatusCode
	return status
}

// A watcher reads one event after the other.
type watcher struct {
	body       io.Closer
	reader     *reader
	collection Collection
	cancel     context.CancelFunc
}

// Next implements watch.Interface.
func (w *watcher) Next() (watch.Event, error) {
	if _, err := w.reader.peek(); err != nil {
		return watch.Event{}, err // here a watch may end
	}
	kind, text, err := w.frame()
	if err != nil {
		return watch.Event{}, err
	}
	switch kind {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		object := w.collection.made()
		if err := json.Unmarshal(text, object); err != nil {
			return watch.Event{}, fmt.Errorf("cannot decode an object: %w", err)
		}
		return watch.Event{Type: kind, Object: object}, nil
	case failure:
		status := &StatusError{}
		if err := json.Unmarshal(text, status); err != nil {
			return watch.Event{}, fmt.Errorf("cannot decode a status: %w", err)
		}
		return watch.Event{}, status
	}
	return watch.Event{}, fmt.Errorf("unknown event %q", kind)
}

// failure is the type of an event whose object is a status.
const failure watch.EventType = "ERROR"

// frame reads an event, and the part of the object's text that is decoded. The text is valid until the next call.
func (w *watcher) frame() (kind watch.EventType, text []byte, err error) {
	r := w.reader
	r.kept = r.kept[:0]
	err = r.object(func(from int) error {
		name := string(r.name(from))
		r.kept = r.kept[:from]
		switch name {
		case "type":
			if err := r.pass(true); err != nil {
				return err
			}
			err := json.Unmarshal(r.kept[from:], &kind)
			r.kept = r.kept[:from]
			return err
		case "object":
			// An object before its type is kept as a whole: it could be a status.
			of := w.collection.shape
			if kind == "" || kind == failure {
				of = nil
			}
			r.kept = r.kept[:0] // the last of two counts
			return r.keep(of)
		}
		return r.pass(false)
	})
	return kind, r.kept, err
}

// Stop implements watch.Interface.
func (w *watcher) Stop() {
	w.cancel()
	_ = w.body.Close() // nothing is read any more
}
