package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

type app struct{ dir string }

func newApp(dir string) http.Handler {
	a := &app{dir}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{$}", a.work)
	mux.HandleFunc("POST /tidy", a.tidy)
	mux.HandleFunc("GET /{$}", a.gallery)
	mux.Handle("GET /thumbs/", http.StripPrefix("/thumbs/", http.FileServer(http.Dir(dir))))
	return guarded(mux)
}

// fileName matches image names, which must not be paths.
var fileName = regexp.MustCompile(`^[a-z0-9-]{1,60}\.png$`)

// work creates a thumbnail. It answers 200 once the file is on disk; until then the queue keeps the message. Like any
// handler behind a queue, it must be idempotent.
func (a *app) work(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	var j job
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&j); err != nil {
		http.Error(w, "the body is not a job: "+err.Error(), http.StatusBadRequest)
		return
	}

	if !fileName.MatchString(j.Image) || j.Width < 16 || j.Width > 1024 {
		http.Error(w, "a job has an image such as 007-noon.png and a width from 16 to 1024", http.StatusBadRequest)
		return
	}

	size, err := a.thumbnail(j)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, "there is no image "+j.Image, http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		log.Printf("made %s/%s (%dx%d) in %s", filepath.Base(a.dir), j.Image, size.X, size.Y,
			time.Since(begin).Round(time.Millisecond))
	}
}

func (a *app) thumbnail(j job) (image.Point, error) {
	f, err := os.Open(filepath.Join(a.dir, "source", j.Image))
	if err != nil {
		return image.Point{}, err
	}
	defer f.Close()
	source, err := png.Decode(f)
	if err != nil {
		return image.Point{}, fmt.Errorf("reading %s: %w", j.Image, err)
	}
	small := scale(source, j.Width)
	return small.Bounds().Size(), writePNG(filepath.Join(a.dir, j.Image), small)
}

func writePNG(path string, img image.Image) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	err = errors.Join((&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(f, img), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}

	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
