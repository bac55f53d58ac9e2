package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tendril/testpeer"
)

// TestReadmeFirstCommand runs what the README's first command runs, on other
// ports: thumbnails are made from queued jobs.
func TestReadmeFirstCommand(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "\n    go run ./cmd/tendril up examples/thumbnails\n") {
		t.Fatal("the README's first command is another one now: test that")
	}
	began := time.Now()
	p, _ := start(t, "up", "../examples/thumbnails", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console",
		"127.0.0.1:0", "--port", testpeer.FreePort(t))
	// A minute may begin meanwhile, and with it the example's periodic task: what
	// counts is pictures.
	p.await(t, "24 thumbnails were made", func(e event) bool {
		return e.Msg == "settled" && e.Outcome == "done" && thumbnailsSince(t, began) >= 24
	})
	t.Logf("24 thumbnails after %v", time.Since(began).Round(100*time.Millisecond))
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d after TERM", code)
	}
}

// thumbnailsSince counts the pictures in the example's folder that are newer.
func thumbnailsSince(t *testing.T, began time.Time) (fresh int) {
	t.Helper()
	files, err := filepath.Glob("../examples/thumbnails/out/0*.png")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && info.ModTime().After(began) {
			fresh++
		}
	}
	return fresh
}
