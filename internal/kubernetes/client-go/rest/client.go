// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// A Client asks an API.
type Client struct {
	base      *url.URL
	userAgent string
	http      *http.Client
}

// NewClient makes a client. It asks nothing yet.
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

// Collection is the objects of a kind, in a namespace or in all. What made makes takes each.
func (c *Client) Collection(group, namespace, resource string, made func() metav1.Object) Collection {
	if namespace != "" {
		resource = "namespaces/" + url.PathEscape(namespace) + "/" + resource
	}
	return Collection{client: c, path: path.Join(group, resource), made: made}
}

// A Collection is objects of one kind.
type Collection struct {
	client *Client
	path   string
	made   func() metav1.Object
}

// A List is the objects of a collection at a version.
type List struct {
	ResourceVersion string
	Items           []metav1.Object
}

const (
	// pageSize is how many objects are asked for at once.
	pageSize = 500
	// The API ends a watch after at least this time, and at most twice as much.
	watchTime = 5 * time.Minute
	// watchGrace is how much later the client ends it, whose API might be gone without a word.
	watchGrace = 30 * time.Second
)

// List reads all pages of a list. An object is decoded as it arrives.
func (c Collection) List(ctx context.Context, o metav1.ListOptions) (*List, error) {
	list := &List{}
	query := query(o)
	query.Set("limit", strconv.Itoa(pageSize))
	for {
		response, err := c.get(ctx, query)
		if err != nil {
			return nil, err
		}
		next, err := c.page(response.Body, list)
		_ = response.Body.Close() // all was read, or the error says why not
		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", c.path, err)
		}
		if next == "" {
			return list, nil
		}
		query.Set("continue", next)
		query.Del("resourceVersion") // it is in the other
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

// page adds the objects of a page to a list. It returns what the next page is asked by, "" if there is none.
func (c Collection) page(body io.Reader, list *List) (string, error) {
	var meta struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	}
	d := json.NewDecoder(body)
	if err := expect(d, json.Delim('{')); err != nil {
		return "", err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", err
		}
		switch key {
		case "metadata":
			err = d.Decode(&meta)
		case "items":
			err = c.items(d, list)
		default:
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return "", err
		}
	}
	list.ResourceVersion = meta.ResourceVersion
	return meta.Continue, expect(d, json.Delim('}')) // else the list was cut off
}

func (c Collection) items(d *json.Decoder, list *List) error {
	begin, err := d.Token()
	if begin == nil || err != nil {
		return err // null is a list without items
	}
	if begin != json.Delim('[') {
		return fmt.Errorf("found %v where a list was to begin", begin)
	}
	for d.More() {
		object := c.made()
		if err := d.Decode(object); err != nil {
			return err
		}
		list.Items = append(list.Items, object)
	}
	return expect(d, json.Delim(']'))
}

func expect(d *json.Decoder, want json.Delim) error {
	switch got, err := d.Token(); {
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case got != want:
		return fmt.Errorf("found %v where %v was to be", got, want)
	}
	return nil
}

// Watch follows what changes after a version.
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
	return &watcher{body: response.Body, decoder: json.NewDecoder(response.Body), made: c.made, cancel: cancel}, nil
}

// get asks for the collection. What is no success is an error.
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

// A StatusError is the API's refusal.
type StatusError struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Error implements error.
func (e *StatusError) Error() string { return e.Message }

// IsExpired tells that the version that was asked for is forgotten.
func (e *StatusError) IsExpired() bool {
	return e.Code == http.StatusGone || e.Reason == "Expired" || e.Reason == "Gone"
}

func statusOf(response *http.Response, of string) *StatusError {
	body, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // what can be read of a refusal
	status := &StatusError{}
	if json.Unmarshal(body, status) != nil || status.Message == "" {
		text := strings.TrimSpace(string(body[:min(len(body), 512)]))
		status.Message = strings.TrimSpace(fmt.Sprintf("the API answers %s to %s: %s", response.Status, of, text))
	}
	status.Code = response.StatusCode
	return status
}

// A watcher reads events one after the other.
type watcher struct {
	body    io.Closer
	decoder *json.Decoder
	made    func() metav1.Object
	cancel  context.CancelFunc
	frame   struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"` // its room is used again
	}
}

// Next implements watch.Interface.
func (w *watcher) Next() (watch.Event, error) {
	w.frame.Type, w.frame.Object = "", w.frame.Object[:0]
	if err := w.decoder.Decode(&w.frame); err != nil {
		return watch.Event{}, err
	}
	switch w.frame.Type {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		object := w.made()
		if err := json.Unmarshal(w.frame.Object, object); err != nil {
			return watch.Event{}, fmt.Errorf("cannot decode an object: %w", err)
		}
		return watch.Event{Type: w.frame.Type, Object: object}, nil
	case "ERROR":
		status := &StatusError{}
		if err := json.Unmarshal(w.frame.Object, status); err != nil {
			return watch.Event{}, fmt.Errorf("cannot decode a status: %w", err)
		}
		return watch.Event{}, status
	}
	return watch.Event{}, fmt.Errorf("%q is no event that is known", w.frame.Type)
}

// Stop implements watch.Interface.
func (w *watcher) Stop() {
	w.cancel()
	_ = w.body.Close() // nothing is read any more
}
