package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"
)

//go:embed static third_party
var files embed.FS

// An asset's path contains the hash of its content, so browsers can cache it forever.
type asset struct {
	name, path, kind string
	content          []byte
}

var assets = sync.OnceValue(func() []*asset {
	return []*asset{
		newAsset("app", ".js", "text/javascript; charset=utf-8", "third_party/htmx/htmx.min.js",
			"third_party/htmx/hx-sse.min.js", "third_party/uplot/uPlot.iife.min.js", "static/app.js"),
		newAsset("app", ".css", "text/css; charset=utf-8", "third_party/uplot/uPlot.min.css", "static/app.css"),
		newAsset("icon", ".svg", "image/svg+xml", "static/icon.svg"),
	}
})

func newAsset(name, extension, kind string, parts ...string) *asset {
	var content bytes.Buffer
	for _, part := range parts {
		text, err := files.ReadFile(part)
		if err != nil {
			panic(err)
		}
		content.Write(text)
		content.WriteByte('\n')
	}
	sum := sha256.Sum256(content.Bytes())
	return &asset{name: name + extension, kind: kind, content: content.Bytes(),
		path: "/assets/" + name + "-" + hex.EncodeToString(sum[:6]) + extension}
}

func assetPath(name string) string {
	for _, a := range assets() {
		if a.name == name {
			return a.path
		}
	}
	panic("there is no asset " + name)
}

func serveAsset(w http.ResponseWriter, r *http.Request) {
	for _, a := range assets() {
		if strings.TrimPrefix(a.path, "/assets/") == r.PathValue("file") {
			w.Header().Set("Content-Type", a.kind)
			w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.content))
			return
		}
	}
	http.NotFound(w, r)
}
