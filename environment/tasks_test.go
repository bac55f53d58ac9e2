package environment

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tendril/config"
	"tendril/periodic"
)

// skewed is a clock that a test puts forward.
type skewed struct{ by atomic.Int64 }

func (c *skewed) now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

// toNextMinute puts it a second behind the next full minute.
func (c *skewed) toNextMinute() {
	now := c.now()
	c.by.Add(int64(now.Truncate(time.Minute).Add(61 * time.Second).Sub(now)))
}

func writeTasks(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "cron.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOverlapIsSkipped: while the message of a task's last run lies in its queue the next
// run is left out, where the task says so, and others go on.
func TestOverlapIsSkipped(t *testing.T) {
	t.Parallel()
	var clock skewed
	cron := writeTasks(t, `version: 1
cron:
  - {name: patient, url: /patient, schedule: "* * * * *", overlap: skip}
  - {name: patient elsewhere, url: /elsewhere, schedule: "* * * * *", overlap: skip, queue: others}
  - {name: eager, url: /eager, schedule: "* * * * *"}
`)
	r := run(t, map[string]string{"cron": cron, "target": "http://127.0.0.1:1/"}, func(e *Environment) {
		e.wall = clock.now
	})
	scheduler := r.cron.Load().scheduler
	eventually(t, "a leader", func() bool { _, term := scheduler.Status(); return term > 0 })
	for n := 1; n <= 3; n++ {
		clock.toNextMinute()
		for _, task := range []string{"patient", "patient elsewhere", "eager"} {
			eventually(t, "a run of "+task, func() bool { return len(scheduler.History(task)) >= n })
		}
	}
	for task, want := range map[string]periodic.Reason{"patient": periodic.ReasonOverlap,
		"patient elsewhere": periodic.ReasonOverlap, "eager": ""} {
		runs := scheduler.History(task)
		if first := runs[len(runs)-1]; first.MessageID == "" || first.Skipped != "" {
			t.Errorf("the first run of %s is %+v", task, first)
		}
		for _, run := range runs[:len(runs)-1] {
			if run.Skipped != want {
				t.Errorf("a later run of %s is %+v, want it left out for %q", task, run, want)
			}
		}
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

// TestTrustWithoutTasks: an instance that has no tasks knows the runs of those that have.
func TestTrustWithoutTasks(t *testing.T) {
	localKeys(t)
	seen := make(chan string, 1)
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost {
			seen <- req.URL.Path + " " + req.Header.Get("X-Aws-Sqsd-Taskname")
		}
	}))
	defer app.Close()
	cron := writeTasks(t, "version: 1\ncron:\n  - {name: tidy, url: /tidy, schedule: \"0 3 1 1 *\"}\n")
	schedules := run(t, map[string]string{"target": "http://127.0.0.1:1/", "cron": cron, "queue": "jobs"}, nil)
	works := run(t, map[string]string{"target": app.URL, "queue-url": schedules.endpoint + "/000000000000/jobs",
		"periodic-trust": config.TrustRegistry}, nil)
	if _, err := schedules.runTask(context.Background(), "tidy"); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-seen:
		if got != "/tidy tidy" {
			t.Errorf("the app got %q", got)
		}
	case <-time.After(20 * time.Second):
		t.Error("no delivery")
	}
	for _, r := range []*running{works, schedules} {
		if err := r.end(); err != nil {
			t.Errorf("the end: %v", err)
		}
	}
}

func TestTasksAreReadFromARegularFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cron.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTasks(path); !errors.Is(err, errIrregular) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}
