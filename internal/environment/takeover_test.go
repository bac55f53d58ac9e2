package environment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tendril/broker"
	"tendril/internal/config"
	"tendril/internal/observe/logging"
)

func TestTakeoverReplacesNoFile(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	environ := []string{"HOME=" + home, "XDG_STATE_HOME=" + home}
	cfg, err := config.Load(config.Sources{Flags: map[string]string{"name": "shop", "queue": "jobs"}, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	log := &safeBuffer{}
	o := &Options{Config: cfg, AppEnv: environ, Logger: logging.New(logging.Options{Out: log})}
	to, from := cfg.DataDir, o.stateFolder()
	if !strings.HasPrefix(to, from+"/") {
		t.Fatalf("%s is not in %s", to, from)
	}
	b, err := broker.Open(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.CreateQueue(t.Context(), "jobs", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	write := func(dir string, names ...string) {
		t.Helper()
		for _, name := range names {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(dir), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(from, claimFile, "console.token", "app-versions.json", "versions/1/shop/Procfile", "versions/2/shop/Procfile",
		"versions/2/shop/app.py", "versions/3")
	write(to, "app-versions.json", "versions/2/shop/Procfile", "versions/3/shop/Procfile")

	q := &queues{opts: o, settings: newSettings(cfg)}
	if err := q.takeOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app-versions.json", "versions/2/shop/Procfile", "versions/3"} {
		if text, err := os.ReadFile(filepath.Join(from, name)); string(text) != from || !strings.Contains(log.String(), filepath.Join(from, name)) {
			t.Errorf("%s in the old directory has %q, %v; the log: %s", name, text, err, log)
		}
	}
	for name, want := range map[string]string{"console.token": from, "versions/1/shop/Procfile": from, "versions/2/shop/app.py": from,
		"app-versions.json": to, "versions/2/shop/Procfile": to, "versions/3/shop/Procfile": to} {
		if text, err := os.ReadFile(filepath.Join(to, name)); string(text) != want {
			t.Errorf("%s in the new directory has %q, %v, want %q", name, text, err, want)
		}
		if want == from && exists(filepath.Join(from, name)) {
			t.Errorf("%s is still in the old directory", name)
		}
	}
	if stored, err := storedQueues(to); err != nil || len(stored) != 1 || exists(filepath.Join(from, databaseFile)) {
		t.Errorf("the queues are %+v, %v", stored, err)
	}
}
