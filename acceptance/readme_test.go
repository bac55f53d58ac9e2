package acceptance

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
	p, _ := start(t, "up", "../examples/thumbnails", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--port", freePort(t))
	done := 0
	p.await(t, "24 thumbnails were made", func(e event) bool {
		if e.Msg == "settled" && e.Outcome == "done" {
			done++
		}
		return done == 24
	})
	t.Logf("24 thumbnails after %v", time.Since(began).Round(100*time.Millisecond))
	files, err := filepath.Glob("../examples/thumbnails/out/0*.png")
	if err != nil {
		t.Fatal(err)
	}
	fresh := 0
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && info.ModTime().After(began) {
			fresh++
		}
	}
	if fresh < 24 {
		t.Errorf("%d fresh pictures in the example's out folder, want at least 24", fresh)
	}
	if code := p.terminate(t); code != 0 {
		t.Errorf("exit status %d after TERM\n%s", code, p.stderr)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
