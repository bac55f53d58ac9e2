package environment

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tendril/internal/config"
	"tendril/internal/console/tokens"
)

func TestDeleteRemovesEveryFileOfTendril(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	r := run(t, map[string]string{"data-dir": dir, "target": "http://127.0.0.1:1/", "queue": "jobs"}, nil)
	settings := &config.Settings{DataDir: dir}
	if _, err := OpenDataDirectory(settings.DataDir); !errors.Is(err, ErrConflict) {
		t.Errorf("while the environment runs: %v", err)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "versions"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Create(dir, tokens.Token{Name: "ci", Scopes: []string{"read"}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app.version", "console-tokens.used.json", ".instance.json.123", "console.token"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenDataDirectory(settings.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Queues) != 2 || d.Queues[0].Name != "jobs" || d.Queues[1].Name != "jobs-dead" {
		t.Errorf("the queues are %v", d.Queues)
	}
	if _, err := OpenDataDirectory(settings.DataDir); !errors.Is(err, ErrConflict) {
		t.Errorf("while it is about to be deleted: %v", err)
	}
	if left, err := d.Delete(); len(left) > 0 || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	if d, err := OpenDataDirectory(settings.DataDir); err != nil || d.Path != "" {
		t.Errorf("a directory that does not exist: %+v, %v", d, err)
	}
}

func TestDeleteKeepsFilesOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("thesis.txt")
	write("lock")
	settings := &config.Settings{DataDir: dir}
	d, err := OpenDataDirectory(settings.DataDir)
	if err != nil || d.Path != "" {
		t.Fatalf("a directory on which nothing ran: %+v, %v", d, err)
	}
	write("instance.lock")
	write("console.token")
	write("console.tokens")
	if d, err = OpenDataDirectory(settings.DataDir); err != nil || d.Path != dir || len(d.Queues) > 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	left, err := d.Delete()
	if err != nil || len(left) != 2 || left[0] != "console.tokens" || left[1] != "thesis.txt" {
		t.Errorf("left %v, %v", left, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("it holds %v, %v", entries, err)
	}
}
