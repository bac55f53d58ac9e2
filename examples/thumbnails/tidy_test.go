package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTidyRemovesTheOldest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newest := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	for i := range kept + 3 { // 000 is the newest
		path := filepath.Join(dir, fmt.Sprintf("%03d-noon.png", i))
		if err := os.WriteFile(path, []byte("picture"), 0o600); err != nil {
			t.Fatal(err)
		}
		made := newest.Add(-time.Duration(i) * time.Minute)
		if err := os.Chtimes(path, made, made); err != nil {
			t.Fatal(err)
		}
	}
	app := newApp(dir)
	for range 2 {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "http://localhost/tidy", nil)
		r.Header.Set("X-Aws-Sqsd-Taskname", "tidy")
		if app.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		left, err := filepath.Glob(filepath.Join(dir, "*.png"))
		if err != nil || len(left) != kept || filepath.Base(left[kept-1]) != fmt.Sprintf("%03d-noon.png", kept-1) {
			t.Errorf("%d thumbnails are left (%v), want the newest %d", len(left), err, kept)
		}
	}
}

// A server error makes the queue retry the task.
func TestTidyThatFailsIsAnErrorOfTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range kept {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d-noon.png", i)), []byte("picture"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, old := filepath.Join(dir, "999-folder.png"), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.MkdirAll(filepath.Join(folder, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(folder, old, old); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	newApp(dir).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/tidy", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
