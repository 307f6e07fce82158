// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package page serves the files of a web page.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
)

// asset is a file of the page, plain and in gzip, each with its entity tag.
type asset struct {
	kind              string
	plain, packed     []byte
	plainTag, packTag string
}

// New serves the files of a folder with the page index.html. They are read and compressed at the first request.
func New(files fs.FS, folder string) http.Handler {
	return &page{assets: sync.OnceValue(func() map[string]*asset { return load(files, folder) })}
}

type page struct{ assets func() map[string]*asset } // by their paths

func load(files fs.FS, folder string) map[string]*asset {
	out := map[string]*asset{}
	_ = fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err == nil {
			out[strings.TrimPrefix(name, folder)] = newAsset(path.Ext(name), data)
		}
		return err
	})
	return out
}

func newAsset(extension string, data []byte) *asset {
	a := &asset{kind: mime.TypeByExtension(extension), plain: data}
	if known, ok := kinds[extension]; ok {
		a.kind = known // whatever the system's table says
	}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
	_, _ = w.Write(data)                                       // writes to memory do not fail
	_ = w.Close()
	if packed.Len() < len(data) {
		a.packed = packed.Bytes()
	}
	sum := sha256.Sum256(data)
	tag := hex.EncodeToString(sum[:8])
	a.plainTag, a.packTag = `"`+tag+`"`, `"`+tag+`-gzip"`
	return a
}

// ServeHTTP serves the files of the page. Browsers keep them, and ask each time whether they have changed.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		answer.Fail(w, http.StatusMethodNotAllowed, answer.CodeMethod, "use GET")
		return
	}
	name := path.Clean("/" + r.URL.Path)
	if name == "/" {
		name = "/index.html"
	}
	a := p.assets()[name]
	if a == nil {
		answer.Fail(w, http.StatusNotFound, answer.CodeNotFound, "there is no such page")
		return
	}
	a.serve(w, r)
}

func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	data, tag := a.plain, a.plainTag
	if a.packed != nil {
		h.Set("Vary", "Accept-Encoding")
		if takesGzip(r) {
			h.Set("Content-Encoding", "gzip")
			data, tag = a.packed, a.packTag
		}
	}
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", tag)
	if known := r.Header.Get("If-None-Match"); known != "" && hasWord(known, tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	answer.Write(w, a.kind, data)
}

// takesGzip reports whether the client accepts gzip.
func takesGzip(r *http.Request) bool {
	for word := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, weight, _ := strings.Cut(word, ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			q, _ := strings.CutPrefix(strings.TrimSpace(weight), "q=")
			return strings.Trim(q, "0.") != "" || q == ""
		}
	}
	return false
}

// hasWord reports whether a list of entity tags contains a tag, which a proxy may have made a weak one.
func hasWord(list, tag string) bool {
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); strings.TrimPrefix(word, "W/") == tag || word == "*" {
			return true
		}
	}
	return false
}

var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}
