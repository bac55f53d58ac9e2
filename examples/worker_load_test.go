package examples

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tendril/internal/bundle"
	"tendril/internal/delivery/deliver"
	"tendril/internal/supervisor"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

// The supervisor runs the Python example's Procfile, and the deliverer posts the messages, fifty at a time, each of
// them twice.
func TestReportsUnderAWorker(t *testing.T) {
	t.Parallel()
	testpeer.Program(t, "python3")
	out := t.TempDir()
	app, port, ended := runBundle(t, "reports", "REPORTS_DIR="+out)
	http, err := deliver.NewClient(&deliver.Options{Target: fmt.Sprintf("http://127.0.0.1:%d/", port),
		QueueName: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	defer http.Close()
	for attempt := 1; attempt <= 2; attempt++ {
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				m := queue.Message{ID: fmt.Sprintf("order-%d", i), ReceiveCount: attempt,
					Body: `{"customer":"Ada","lines":[{"article":"gear","count":2,"cents":4500}]}`}
				if r := http.Deliver(t.Context(), &m); r.Outcome != queue.Done {
					t.Errorf("%s, attempt %d: %s, %s", m.ID, attempt, r.Outcome, r.Reason)
				}
			})
		}
		all.Wait()
	}
	if files, _ := filepath.Glob(filepath.Join(out, "*")); len(files) != 50 {
		t.Errorf("%d files, want a report for each of 50 orders", len(files))
	}
	for body, status := range map[string]int{
		`{"customer":"\ud800","lines":[]}`: 422,
		strings.Repeat("[", 100_000):       422,
		strings.Repeat(" ", 2<<20):         413,
	} {
		if r := http.Deliver(t.Context(), &queue.Message{ID: "bad", ReceiveCount: 1, Body: body}); r.Status != status {
			t.Errorf("%.40q: status %d (%s), want %d", body, r.Status, r.Reason, status)
		}
	}
	if r := http.Deliver(t.Context(), &queue.Message{ID: "../escape", ReceiveCount: 1, Body: "{}"}); r.Status != 400 {
		t.Errorf("a message id that is a path: status %d, want 400", r.Status)
	}
	if err := app.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if exit := <-ended; exit.Code != 0 {
		t.Errorf("asked to end, the app ended with %s, want status 0", exit)
	}
}

// runBundle runs the app in a folder until the end of the test, and returns when it is ready.
func runBundle(t *testing.T, dir string, env ...string) (app *supervisor.Supervisor, port int,
	ended <-chan supervisor.Exit) {
	t.Helper()
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	web, err := b.Web()
	if err != nil {
		t.Fatal(err)
	}
	ready, exits := make(chan struct{}), make(chan supervisor.Exit, 10)
	opts := &supervisor.Options{
		RestartLimit: -1,
		Output:       func(_, _ string, line []byte) { t.Logf("%s", line) },
		Events: supervisor.Events{
			Ready:  func(supervisor.Ready) { close(ready) },
			Exited: func(e supervisor.Exited) { exits <- e.Exit },
		},
	}
	text := testpeer.FreePort(t)
	if port, err = strconv.Atoi(text); err != nil {
		t.Fatal(err)
	}
	app, err = supervisor.New([]supervisor.Process{{Name: web.Name, Shell: web.Command, Dir: b.Dir, Port: port,
		Env: append(os.Environ(), append(env, "PORT="+text, "PYTHONDONTWRITEBYTECODE=1")...)}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := app.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case exit := <-exits:
		t.Fatal(exit)
	}
	return app, port, exits
}
