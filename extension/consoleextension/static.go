// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed web/dist
var assets embed.FS

// asset is a file of the page, as it is and in gzip, each with the tag that browsers know it by.
type asset struct {
	kind              string
	plain, packed     []byte
	plainTag, packTag string
}

// static are the files of the page by their paths, made when the page is first asked for.
var static = sync.OnceValue(func() map[string]*asset {
	out := map[string]*asset{}
	const root = "web/dist"
	_ = fs.WalkDir(assets, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := assets.ReadFile(name)
		if err == nil {
			out[strings.TrimPrefix(name, root)] = newAsset(path.Ext(name), data)
		}
		return err
	})
	return out
})

func newAsset(extension string, data []byte) *asset {
	a := &asset{kind: mime.TypeByExtension(extension), plain: data}
	if known, ok := kinds[extension]; ok {
		a.kind = known // whatever the machine thinks
	}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // a level that there is
	_, _ = w.Write(data)                                       // to memory
	_ = w.Close()
	if packed.Len() < len(data) {
		a.packed = packed.Bytes()
	}
	sum := sha256.Sum256(data)
	tag := hex.EncodeToString(sum[:8])
	a.plainTag, a.packTag = `"`+tag+`"`, `"`+tag+`-gzip"`
	return a
}

// page serves the files of the page. Browsers keep them, and ask each time whether they are still what they were.
func page(w http.ResponseWriter, r *http.Request) {
	if !safe(r) {
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, http.StatusMethodNotAllowed, "method", "use GET")
		return
	}
	name := path.Clean("/" + r.URL.Path)
	if name == "/" {
		name = "/index.html"
	}
	a := static()[name]
	if a == nil {
		fail(w, http.StatusNotFound, "not_found", "there is no such page")
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
	write(w, a.kind, data)
}

// takesGzip says whether gzip is among what the client takes, and not ruled out.
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

// hasWord says whether a tag is in a list of them. A proxy may have made it a weak one.
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
