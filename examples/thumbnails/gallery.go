package main

import (
	"html/template"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var page = template.Must(template.New("gallery").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>Thumbnails</title>
<style>
body { margin: 2rem; font: 16px/1.5 system-ui, sans-serif; background: #14161c; color: #e8e6e3 }
ul { display: grid; grid-template-columns: repeat(auto-fill, minmax(240px, 1fr)); gap: 1rem; padding: 0; list-style: none }
img { display: block; width: 100%; border-radius: 6px }
figure { margin: 0 } figcaption { opacity: .7; font-size: .8rem }
</style>
<h1>{{len .}} thumbnails</h1>
<p>Each came out of a job on the queue. The newest are first.</p>
<ul>{{range .}}<li><figure><img src="/thumbs/{{.Name}}?{{.Made}}" alt="{{.Name}}" width="240" height="160"><figcaption>{{.Name}}</figcaption></figure>{{end}}</ul>
`))

type picture struct {
	Name string
	Made int64
}

func (a *app) gallery(w http.ResponseWriter, _ *http.Request) {
	pictures, err := a.pictures()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := page.Execute(w, pictures); err != nil {
		log.Print(err) // the browser disconnected
	}
}

func (a *app) pictures() ([]picture, error) {
	files, err := filepath.Glob(filepath.Join(a.dir, "*.png"))
	if err != nil {
		return nil, err
	}

	var all []picture
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			all = append(all, picture{filepath.Base(file), info.ModTime().UnixNano() / int64(time.Millisecond)})
		}
	}

	slices.SortFunc(all, func(a, b picture) int {
		if a.Made != b.Made {
			return int(b.Made - a.Made)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all, nil
}
