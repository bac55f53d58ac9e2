package environment

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"tendril/broker"
	"tendril/internal/observe/health"
	"tendril/queue"
)

func TestProblemsWithStoredMessagesAreReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(app.Close)
	flags := map[string]string{"data-dir": dir, "queue": "first", "target": app.URL}
	says := func(r *running, text string, want bool) {
		t.Helper()
		r.observe.problems.refresh()
		eventually(t, "an end of the start", func() bool { return r.observe.monitor.Report().Status != health.Pending })
		if all := fmt.Sprint(r.observe.problems.list()); strings.Contains(all, text) != want {
			t.Errorf("%q is among the problems: %v, want %v; there are %q", text, !want, want, all)
		}
		if !want {
			return // health reports it for another minute
		}
		if causes := strings.Join(r.observe.monitor.Report().Causes, " "); !strings.Contains(causes, text[1:]) {
			t.Errorf("%q is not in the health, which says %q", text, causes)
		}
		found := examineRunning(t.Context(), r.Environment)
		said := false
		for _, f := range found.Findings {
			said = said || strings.Contains(f.What, text[1:])
		}
		if !said {
			t.Errorf("doctor does not say %q", text)
		}
		if !strings.Contains(r.log.String(), text) {
			t.Errorf("the log does not say %q", text)
		}
	}
	r := run(t, flags, nil)
	if err := r.work.pause("first", newPause("", "")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.queues.broker.Queue("first").Send(t.Context(), []queue.Outgoing{{Body: "kept"}}); err != nil {
		t.Fatal(err)
	}
	const dead = "queue first: its dead-letter queue first-dead does not exist"
	says(r, dead, false)
	if err := r.queues.broker.DeleteQueue(t.Context(), "first-dead"); err != nil {
		t.Fatal(err)
	}
	says(r, dead, true)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}

	r = run(t, flags, nil) // start immediately, although SQS clients must wait a minute
	says(r, dead, false)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}

	const left = "1 message left in queue first, which this environment does not receive from"
	flags["queue"] = "second"
	r = run(t, flags, nil)
	says(r, left, true)
	if n, err := r.queues.broker.PurgeQueue(t.Context(), "first"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	says(r, left, false)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
}

func TestEmbeddedMessagesLeftAfterAMoveToSQSAreReported(t *testing.T) {
	localKeys(t)
	served := run(t, map[string]string{"target": "http://127.0.0.1:1/", "queue": "jobs"}, nil)
	dir := t.TempDir()
	b, err := broker.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.CreateQueue(t.Context(), "jobs-dead", nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Queue("jobs-dead").Send(t.Context(), []queue.Outgoing{{Body: "a"}, {Body: "b"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	r := run(t, map[string]string{"target": "http://127.0.0.1:1/", "data-dir": dir,
		"queue-url": served.queues.endpoint + "/000000000000/jobs"}, nil)
	r.observe.problems.refresh()
	want := "2 messages of the embedded queue jobs-dead in " + filepath.Clean(dir)
	if all := fmt.Sprint(r.observe.problems.list()); !strings.Contains(all, want) {
		t.Errorf("the problems are %q, want %q", all, want)
	}
	if !strings.Contains(r.log.String(), want) {
		t.Error("the log does not say it")
	}
	for _, one := range []*running{r, served} {
		if err := one.end(); err != nil {
			t.Errorf("the end: %v", err)
		}
	}
}
