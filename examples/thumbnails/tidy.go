package main

import (
	"errors"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
)

// kept is how many thumbnails a tidying leaves.
const kept = 60

// tidy is what the task of cron.yaml asks for: it removes the oldest thumbnails
// beyond kept. A periodic task is a POST like any other, without a body; the
// header says which one it is. Doing it twice does no harm.
func (a *app) tidy(w http.ResponseWriter, r *http.Request) {
	removed, err := a.removeOldest(kept)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// Anybody may send a header: quote what is not ours.
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
		case !errors.Is(err, fs.ErrNotExist): // gone is what was wanted
			return removed, err
		}
	}
	return removed, nil
}
