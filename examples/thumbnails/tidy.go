package main

import (
	"errors"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
)

const kept = 60

// tidy handles the task in cron.yaml: it removes the oldest thumbnails. A periodic task is an ordinary POST without a
// body; a header names the task. Like any handler behind a queue, tidy is idempotent.
func (a *app) tidy(w http.ResponseWriter, r *http.Request) {
	removed, err := a.removeOldest(kept)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// Anyone can set these headers, so quote them.
	log.Printf("task %q for %q: %d old thumbnails removed",
		r.Header.Get("X-Aws-Sqsd-Taskname"), r.Header.Get("X-Aws-Sqsd-Scheduled-At"), removed)
}

func (a *app) removeOldest(keep int) (removed int, err error) {
	pictures, err := a.pictures()
	if err != nil {
		return 0, err
	}

	for _, p := range pictures[min(keep, len(pictures)):] {
		switch err := os.Remove(filepath.Join(a.dir, p.Name)); {
		case err == nil:
			removed++
		case !errors.Is(err, fs.ErrNotExist):
			return removed, err
		}
	}
	return removed, nil
}
