package acceptance

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/api"
)

// sharedQueue is a queue and registry of 'tendril serve', from which the instances of an environment receive.
type sharedQueue struct {
	endpoint string
	queue    *watchedQueue
	app      *script
	env      []string
}

func newSharedQueue(t *testing.T) *sharedQueue {
	t.Helper()
	const token = "0123456789abcdef-token"
	_, served := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off", "--registry-token", token)
	f := &sharedQueue{endpoint: served.Endpoint}
	c := client(served.Endpoint)
	f.queue = &watchedQueue{Client: c, url: createQueue(t, c, "jobs", nil)}
	f.app = newScript(t, func(http.ResponseWriter, *http.Request, posted) {})
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("fleet-key-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.env = []string{"TENDRIL_REGISTRY_TOKEN=" + token, "TENDRIL_FLEET_KEY_FILE=" + key}
	return f
}

// member is one of the instances.
type member struct {
	*process
	dir string
}

func (f *sharedQueue) up(t *testing.T, dir, endpoint string) *member {
	t.Helper()
	p, _ := startWith(t, f.env, "up", "--queue-url", strings.Replace(f.queue.url, f.endpoint, endpoint, 1), "--target", f.app.URL,
		"--data-dir", dir, "--console", "127.0.0.1:0", "--lease", "5s", "--registry-insecure")
	return &member{p, dir}
}

// tendril runs a command for the member, which must succeed, and returns its output.
func (m *member) tendril(t *testing.T, args ...string) string {
	t.Helper()
	out, err := program(t, append(args, "--data-dir", m.dir)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tendril %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// paused returns whether the member reports that its queue is paused, with the reason.
func (m *member) paused(t *testing.T) (paused bool, reason string) {
	t.Helper()
	var st api.Status
	if err := json.Unmarshal([]byte(m.tendril(t, "status", "-o", "json")), &st); err != nil {
		t.Fatal(err)
	}
	return st.Workers[0].Paused, st.Workers[0].Why
}

// A pause with a fleet key applies to all instances: the running ones, one that starts later, one that was cut off, and
// after the leader was killed. --this concerns one instance.
func TestPauseAppliesToAllInstances(t *testing.T) {
	long(t)
	t.Parallel()
	f := newSharedQueue(t)
	proxy := newFaultProxy(t, f.endpoint, 1)
	first, second := f.up(t, t.TempDir(), f.endpoint), f.up(t, t.TempDir(), f.endpoint)
	cut := f.up(t, t.TempDir(), proxy.URL)
	all := []*member{first, second, cut}
	allPaused := func(want bool) func() bool {
		return func() bool {
			return !slices.ContainsFunc(all, func(m *member) bool { paused, _ := m.paused(t); return paused != want })
		}
	}
	eventually(t, "all instances are known", func() bool {
		return strings.Count(first.tendril(t, "instances"), "running") == len(all)
	})

	out := first.tendril(t, "queues", "pause", "--reason", "database upgrade")
	if !strings.Contains(out, "applied by 3 instances") || !allPaused(true)() {
		t.Errorf("the pause printed %q; all are paused: %t", out, allPaused(true)())
	}
	for _, m := range all {
		if _, reason := m.paused(t); !strings.HasPrefix(reason, "by owner since ") || !strings.HasSuffix(reason, ": database upgrade") {
			t.Errorf("the reason is %q", reason)
		}
	}

	f.queue.put(t, "waits")
	all = append(all, f.up(t, t.TempDir(), f.endpoint))
	time.Sleep(3 * time.Second)
	if posts := f.app.all(); len(posts) > 0 || !allPaused(true)() {
		t.Errorf("while all are paused and one started later, %d messages were posted", len(posts))
	}

	proxy.inject(faultPlan{fault: silence, share: 1})
	for _, m := range []*member{first, second, all[3]} {
		if m.count(func(e event) bool { return e.Msg == "leadership acquired" }) > 0 {
			m.kill()
			all = slices.DeleteFunc(all, func(one *member) bool { return one == m })
			break
		}
	}
	connected := slices.DeleteFunc(slices.Clone(all), func(m *member) bool { return m == cut })
	resume := program(t, "queues", "resume", "--data-dir", connected[0].dir) // waits for the one that is cut off
	if err := resume.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resume.Process.Kill(); resume.Wait() })
	eventually(t, "the connected instances receive again", func() bool {
		return !slices.ContainsFunc(connected, func(m *member) bool { paused, _ := m.paused(t); return paused })
	})
	if paused, _ := cut.paused(t); !paused {
		t.Error("the instance that is cut off forgot its last known state")
	}
	proxy.inject(faultPlan{})
	eventually(t, "the instance that was cut off resumes", allPaused(false))
	eventually(t, "the message is posted", func() bool { return len(f.app.all()) == 1 })

	connected[0].tendril(t, "queues", "pause", "--this")
	time.Sleep(5 * time.Second)
	for _, m := range all {
		if paused, _ := m.paused(t); paused != (m == connected[0]) {
			t.Errorf("with --this on another instance, paused is %t", paused)
		}
	}
}
