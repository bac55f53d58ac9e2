package environment

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/internal/cron/periodic"
	"tendril/internal/registry"
)

type skewed struct{ by atomic.Int64 }

// newSkewed starts just after a full minute, so that no run is due during the start of an environment.
func newSkewed() *skewed {
	var s skewed
	s.toNextMinute()
	return &s
}

func (s *skewed) now() time.Time { return time.Now().Add(time.Duration(s.by.Load())) }

func (s *skewed) toNextMinute() {
	now := s.now()
	s.by.Add(int64(now.Truncate(time.Minute).Add(61 * time.Second).Sub(now)))
}

func writeTasks(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "cron.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHealthNamesTasksThatFailOrArePaused(t *testing.T) {
	t.Parallel()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer app.Close()
	cron := writeTasks(t, `version: 1
cron:
  - {name: broken, url: /broken, schedule: "0 3 * * *"}
  - {name: idle, url: /idle, schedule: "0 3 * * *"}
`)
	clock := newSkewed()
	r := run(t, map[string]string{"cron": cron, "target": app.URL}, func(e *Environment) { e.cron.wall = clock.now })
	eventually(t, "a leader", r.cron.leads)
	for range 3 {
		if _, err := r.cron.tasks.Run(t.Context(), "broken"); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.cron.tasks.Pause(t.Context(), "idle", "too slow", "ann"); err != nil {
		t.Fatal(err)
	}

	eventually(t, "both in the health", func() bool {
		causes := strings.Join(r.observe.monitor.Report().Causes, "\n")
		return strings.Contains(causes, "The periodic task broken failed in its last 3 runs. HTTP 500.") &&
			strings.Contains(causes, "The periodic task idle is paused by ann. Too slow.")
	})
	status := r.cron.tasks.Status()
	first := status.First(2)
	if len(first) != 2 || first[0].Name != "broken" || first[0].State() != "Failing" || first[1].State() != "Paused" {
		t.Errorf("the tasks are %+v", first)
	}
	var found []string
	for _, f := range examineRunning(t.Context(), r.Environment).Findings {
		if f.ID == "health" {
			found = append(found, string(f.Level)+" "+f.What)
		}
	}
	if all := strings.Join(found, "\n"); !strings.Contains(all, "warning The periodic task broken failed") ||
		!strings.Contains(all, "ok The periodic task idle is paused") {
		t.Errorf("doctor found %s", all)
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

func TestOverlapIsSkipped(t *testing.T) {
	t.Parallel()
	clock := newSkewed()
	cron := writeTasks(t, `version: 1
cron:
  - {name: patient, url: /patient, schedule: "* * * * *", overlap: skip}
  - {name: patient elsewhere, url: /elsewhere, schedule: "* * * * *", overlap: skip, queue: others}
  - {name: eager, url: /eager, schedule: "* * * * *"}
`)
	r := run(t, map[string]string{"cron": cron, "target": "http://127.0.0.1:1/"}, func(e *Environment) {
		e.cron.wall = clock.now
	})
	eventually(t, "a leader", r.cron.leads)
	for n := 1; n <= 3; n++ {
		clock.toNextMinute()
		for _, task := range []string{"patient", "patient elsewhere", "eager"} {
			eventually(t, "a run of "+task, func() bool { return len(r.cron.tasks.History(task)) >= n })
		}
	}
	for task, want := range map[string]string{"patient": string(periodic.ReasonOverlap),
		"patient elsewhere": string(periodic.ReasonOverlap), "eager": ""} {
		runs := r.cron.tasks.History(task)
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

// On Amazon SQS, the registry records runs in progress on other instances.
func TestOverlapOfInstances(t *testing.T) {
	_, queueURL := onlyInstancePlace(t)
	clock := newSkewed()
	app, release := slowApp(t)
	cron := writeTasks(t,
		"version: 1\ncron:\n  - {name: patient, url: /patient, schedule: \"* * * * *\", overlap: skip}\n")
	flags := map[string]string{"queue-url": queueURL, "cron": cron, "registry-table": "registry",
		"target": "http://127.0.0.1:1/"}
	leads := run(t, flags, func(e *Environment) { e.cron.wall = clock.now })
	eventually(t, "a leader", leads.cron.leads)
	flags["target"] = app
	works := run(t, flags, nil)
	clock.toNextMinute()
	eventually(t, "the delivery of the first run", func() bool { return works.work.all[0].status().InWork == 1 })
	// next returns the result of the next run. The clock waits for the result, because it would otherwise skip runs.
	next := func() (reason string) {
		var last time.Time
		if runs := leads.cron.tasks.History("patient"); len(runs) > 0 {
			last = runs[0].ScheduledAt
		}
		clock.toNextMinute()
		eventually(t, "the next run", func() bool {
			runs := leads.cron.tasks.History("patient")
			if len(runs) == 0 || !runs[0].ScheduledAt.After(last) {
				return false
			}
			reason = runs[0].Skipped
			return true
		})
		return reason
	}
	eventually(t, "a run that is left out", func() bool { return next() == string(periodic.ReasonOverlap) })
	release()
	eventually(t, "a run after the end", func() bool { return next() == "" })
	for _, r := range []*running{works, leads} {
		if err := r.end(); err != nil {
			t.Errorf("the end: %v", err)
		}
	}
}

func TestTaskWithoutItsQueueUsesTheFirstOne(t *testing.T) {
	t.Parallel()
	cron := writeTasks(t, minutely)
	r := run(t, map[string]string{"cron": cron, "target": "http://127.0.0.1:1/", "queue": "jobs"}, nil)
	eventually(t, "a leader", r.cron.leads)
	if err := os.WriteFile(cron, []byte(`version: 1
cron:
  - {name: late, url: /late, schedule: "0 3 1 1 *", queue: others}
  - {name: tidy, url: /tidy, schedule: "0 3 1 1 *"}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.cron.tasks.Reload(); err != nil {
		t.Fatal(err)
	}
	for _, task := range r.cron.tasks.Status().Tasks {
		if late := task.Name == "late"; late != strings.Contains(task.Problem, "its runs go to jobs") ||
			late != (task.Queue == "others") {
			t.Errorf("the task is %+v", task)
		}
	}
	enqueued, err := r.cron.tasks.Run(t.Context(), "late")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.queues.broker.Message(t.Context(), "jobs", enqueued.MessageID); err != nil {
		t.Errorf("the run is not in the first queue: %v", err)
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

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
	works := run(t, map[string]string{"target": app.URL, "queue-url": schedules.queues.endpoint + "/000000000000/jobs",
		"periodic-trust": config.TrustRegistry}, nil)
	if _, err := schedules.cron.tasks.Run(context.Background(), "tidy"); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-seen:
		if got != "/tidy tidy" {
			t.Errorf("the app got %q", got)
		}
	case <-time.After(patience):
		t.Error("no delivery")
	}
	for _, r := range []*running{works, schedules} {
		if err := r.end(); err != nil {
			t.Errorf("the end: %v", err)
		}
	}
}

func onlyInstancePlace(t *testing.T) (table *aws.Table, queueURL string) {
	t.Helper()
	c := startCloud(t)
	table, err := aws.OpenTable(t.Context(), "registry", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	if err := table.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return table, makeQueue(t, c, 0)
}

// The table must contain no lease, and a restart must not enqueue the same runs again.
func TestOnlyInstanceWithATable(t *testing.T) {
	table, queueURL := onlyInstancePlace(t)
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(app.Close)
	runs, file := registry.NewSentRuns(table, registry.Scope{Name: "periodic:jobs"}, nil, nil), filepath.Join(t.TempDir(), "cron.yaml")
	cron := "version: 1\ncron:\n"
	enqueued := regexp.MustCompile(`"run_id":"([^"]+)"`)
	seen := map[string]int{}
	// The second start continues from an earlier process's record of the last three minutes, which proves that it uses
	// the table.
	for _, task := range []string{"audit", "mail"} {
		if _, err := runs.Since(t.Context(), 0,
			map[string]registry.Start{task: {At: time.Now().Add(-3 * time.Minute)}}); err != nil {
			t.Fatal(err)
		}
		cron += fmt.Sprintf("  - {name: %s, url: /a, schedule: \"* * * * *\", missed: all, grace: 1h}\n", task)
		if err := os.WriteFile(file, []byte(cron), 0o600); err != nil {
			t.Fatal(err)
		}
		r := run(t, map[string]string{"queue-url": queueURL, "target": app.URL, "registry-table": "registry",
			"leader": "local", "cron": file}, nil)
		eventually(t, "the runs of "+task+" that were missed", func() bool {
			return countEnqueued(r, task) >= 3
		})
		if err := r.end(); err != nil {
			t.Errorf("the end: %v", err)
		}
		for _, m := range enqueued.FindAllStringSubmatch(r.log.String(), -1) {
			if seen[m[1]]++; seen[m[1]] > 1 {
				t.Errorf("the run %s was enqueued again", m[1])
			}
		}
		if strings.Contains(r.log.String(), "registry refuses") {
			t.Error("a term was refused where none is checked")
		}
	}
}

func countEnqueued(r *running, task string) int {
	return len(regexp.MustCompile(`"msg":"scheduled run enqueued".*"task":"`+task+`"`).FindAllString(r.log.String(), -1))
}

func TestTimeToLiveOfAnExistingTable(t *testing.T) {
	table, queueURL := onlyInstancePlace(t)
	file := filepath.Join(t.TempDir(), "cron.yaml")
	if err := os.WriteFile(file, []byte("version: 1\ncron:\n  - {name: audit, url: /a, schedule: \"@yearly\"}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	const advice = "aws dynamodb update-time-to-live --table-name registry --time-to-live-specification " +
		"Enabled=true,AttributeName=expires"
	for _, step := range []struct {
		create         string
		reported, then bool
	}{{"false", true, false}, {"true", false, true}, {"false", false, true}} {
		r := run(t, map[string]string{
			"queue-url": queueURL, "target": "http://127.0.0.1:1", "registry-table": "registry",
			"registry-create": step.create, "leader": "local", "cron": file,
		}, nil)
		if err := r.end(); err != nil {
			t.Errorf("the end: %v", err)
		}
		if reported := strings.Count(r.log.String(), advice); reported > 1 || (reported == 1) != step.reported {
			t.Errorf("with registry-create=%s: it was reported %d times\n%s", step.create, reported, r.log)
		}
		if yes, _, err := table.Expires(t.Context()); yes != step.then || err != nil {
			t.Errorf("with registry-create=%s: on %v, %v", step.create, yes, err)
		}
	}
}

func TestScheduleChangedOverARestart(t *testing.T) {
	table, queueURL := onlyInstancePlace(t)
	runs, file := registry.NewSentRuns(table, registry.Scope{Name: "periodic:jobs"}, nil, nil), filepath.Join(t.TempDir(), "cron.yaml")
	before := time.Now().Add(-3 * time.Minute)
	if _, err := runs.Since(t.Context(), 0, map[string]registry.Start{"audit": {At: before, Schedule: "0 5 * * * UTC"},
		"mail": {At: before, Schedule: "* * * * * UTC"}}); err != nil {
		t.Fatal(err)
	}
	const task = "  - {name: %s, url: /a, schedule: \"* * * * *\", missed: all, grace: 1h}\n"
	if err := os.WriteFile(file, []byte("version: 1\ncron:\n"+fmt.Sprintf(task, "audit")+fmt.Sprintf(task, "mail")),
		0o600); err != nil {
		t.Fatal(err)
	}
	start := time.Now().UTC().Truncate(time.Second)
	r := run(t, map[string]string{"queue-url": queueURL, "target": "http://127.0.0.1:1", "registry-table": "registry",
		"leader": "local", "cron": file}, nil)
	eventually(t, "the runs of the task that stayed as it was", func() bool {
		return countEnqueued(r, "mail") >= 3
	})
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
	for _, m := range regexp.MustCompile(`"run_id":"audit@([^"]+)"`).FindAllStringSubmatch(r.log.String(), -1) {
		if at, err := time.Parse(time.RFC3339, m[1]); err != nil || at.Before(start) {
			t.Errorf("a run of %s was made up for, when the task had another schedule", m[1])
		}
	}
}
