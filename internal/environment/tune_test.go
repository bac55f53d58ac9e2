package environment

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tendril/internal/config"
)

func TestSharedConnectionsChangeAtTheNextStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags map[string]string
		live  bool
	}{
		{nil, true},
		{map[string]string{"rate": "100/s"}, true},
		{map[string]string{"sleep": "3"}, false},
		{map[string]string{"queues": "a,b"}, false},
		{map[string]string{"breaker": "50"}, false},
		{map[string]string{"adaptive-concurrency": "true"}, false},
		{map[string]string{"lambda": "cat", "target": ""}, false},
	} {
		flags := map[string]string{"target": "http://127.0.0.1:1/", "http-connections": "2"}
		for name, value := range c.flags {
			if flags[name] = value; value == "" {
				delete(flags, name)
			}
		}
		r := run(t, flags, nil)
		gauge := r.scale.gauge(false)
		flags["http-connections"], flags["deadline"], flags["data-dir"] = "9", "33s", r.settings.now().DataDir
		loaded, err := config.Load(config.Sources{Flags: flags})
		if err != nil {
			t.Fatal(err)
		}
		r.opts.Load = func(config.Sources) (*config.Config, error) { return loaded, nil }
		done, err := r.changes.reloadSettings(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := 2
		if c.live {
			want = 9
		}
		if slices.Contains(done.Settings, connections) != c.live || slices.Contains(done.Later, connections) == c.live ||
			!slices.Contains(done.Settings, "deadline") {
			t.Errorf("%v: in force %q, later %q", c.flags, done.Settings, done.Later)
		}
		if s := r.settings.now(); s.HTTPConnections != want || s.Queues[0].Concurrency != want || s.Deadline != 33*time.Second {
			t.Errorf("%v: %d and %d connections are in force, want %d", c.flags, s.HTTPConnections, s.Queues[0].Concurrency,
				want)
		}
		if got := gauge.Read().Slots; got != want {
			t.Errorf("%v: the load has %d slots, want %d", c.flags, got, want)
		}
		if err := r.end(); err != nil {
			t.Errorf("%v: the end: %v", c.flags, err)
		}
	}
}

func TestConnectionsLimitTheOnlyQueueWithAHigherMaximum(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tendril.yaml")
	if err := os.WriteFile(file, []byte("queues: [{name: jobs, max: 10}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := map[string]string{"config": file, "target": "http://127.0.0.1:1/", "http-connections": "3"}
	r := run(t, flags, nil)
	wantConnections := func(want int) {
		t.Helper()
		if got := r.work.all[0].worker.Status().Concurrency; got != want {
			t.Errorf("the worker has %d connections, want %d", got, want)
		}
	}
	wantConnections(3)

	flags["http-connections"], flags["data-dir"] = "2", r.settings.now().DataDir
	loaded, err := config.Load(config.Sources{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	r.opts.Load = func(config.Sources) (*config.Config, error) { return loaded, nil }
	if _, err := r.changes.reloadSettings(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	wantConnections(2)
	if err := r.end(); err != nil {
		t.Error(err)
	}
}
