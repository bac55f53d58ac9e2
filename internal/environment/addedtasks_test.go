package environment

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tendril/internal/bundle"
)

const minutely = "version: 1\ncron:\n  - {name: tidy, url: /tidy, schedule: \"* * * * *\"}\n"

func localKeys(t *testing.T) {
	t.Helper()
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"AWS_REGION": "us-east-1"} {
		t.Setenv(k, v)
	}
}

func TestTasksAddedAtRunTimeAreScheduled(t *testing.T) {
	t.Parallel()
	clock := newSkewed()
	r := run(t, map[string]string{"target": "http://127.0.0.1:1/"}, func(e *Environment) { e.cron.wall = clock.now })
	if err := r.cron.tasks.Adopt(t.Context(), writeTasks(t, minutely)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a leader", r.cron.leads)
	clock.toNextMinute()
	eventually(t, "a run", func() bool { return len(r.cron.tasks.History("tidy")) > 0 })
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
	if r.cron.leads() {
		t.Error("it still leads")
	}
}

func TestRunsBeforeATaskWasAddedAreNotCaughtUp(t *testing.T) {
	t.Parallel()
	clock := newSkewed()
	data, cron := t.TempDir(), writeTasks(t, minutely)
	flags := map[string]string{"data-dir": data, "queue": "jobs", "target": "http://127.0.0.1:1/"}
	change := func(e *Environment) { e.cron.wall = clock.now }
	r := run(t, flags, change)
	if err := r.cron.tasks.Adopt(t.Context(), cron); err != nil {
		t.Fatal(err)
	}
	clock.toNextMinute()
	eventually(t, "a run", func() bool { return len(r.cron.tasks.History("tidy")) > 0 })
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
	earlier := len(r.cron.tasks.History("tidy"))
	r = run(t, flags, change)
	for range 3 {
		clock.toNextMinute()
	}
	began := clock.now()
	if err := r.cron.tasks.Adopt(t.Context(), cron); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a leader", r.cron.leads)
	clock.toNextMinute()
	eventually(t, "a run of now", func() bool { return len(r.cron.tasks.History("tidy")) > earlier })
	runs := r.cron.tasks.History("tidy") // newest first
	for _, h := range runs[:len(runs)-earlier] {
		if h.ScheduledAt.Before(began) {
			t.Errorf("begun at %v, there is %+v", began, h)
		}
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

// The registry accepts a request and never responds.
func TestUnresponsiveRegistryDoesNotDelayShutdown(t *testing.T) {
	localKeys(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan struct{}, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			select {
			case asked <- struct{}{}:
			default:
			}
		}
	}()
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://"+l.Addr().String())
	served := run(t, map[string]string{"target": "http://127.0.0.1:1/", "queue": "jobs"}, nil)
	r := run(t, map[string]string{"target": "http://127.0.0.1:1/", "queue-url": served.queues.endpoint + "/000000000000/jobs",
		"registry-table": "registry", "shutdown-timeout": "1h"}, nil)
	began := make(chan error, 1)
	go func() { began <- r.cron.tasks.Adopt(t.Context(), writeTasks(t, minutely)) }()
	<-asked
	r.stop()
	select {
	case err := <-began:
		if err == nil || r.cron.tasks.Count() != 0 {
			t.Errorf("the beginning ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the beginning goes on")
	}
	for _, one := range []*running{r, served} {
		if err := one.end(); err != nil {
			t.Errorf("the end: %v", err)
		}
	}
}

func TestReloadSchedulesTasksOnceThereIsARegistry(t *testing.T) {
	localKeys(t)
	served := run(t, map[string]string{"target": "http://127.0.0.1:1/", "queue": "jobs"}, nil)
	u, err := url.Parse(served.queues.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	var there atomic.Bool
	proxy := httputil.NewSingleHostReverseProxy(u)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !there.Load() && !strings.HasPrefix(req.Header.Get("X-Amz-Target"), "AmazonSQS.") {
			http.NotFound(w, req)
			return
		}
		proxy.ServeHTTP(w, req)
	}))
	defer front.Close()
	dir := t.TempDir()
	r := run(t, map[string]string{"target": "http://127.0.0.1:1/", "queue-url": front.URL + "/000000000000/jobs",
		"registry-insecure": "true"}, // the proxy cannot prove that it knows the token
		func(e *Environment) {
			e.opts.Bundle = &bundle.Bundle{Dir: dir}
		})
	if err := os.WriteFile(filepath.Join(dir, "cron.yaml"), []byte(minutely), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		done, err := r.changes.reloadChanged(t.Context())
		if err != nil || done.Tasks != 1 || !strings.Contains(done.NotScheduled, "--registry-table") {
			t.Errorf("without a registry: %+v, %v", done, err)
		}
	}
	there.Store(true)
	if done, err := r.changes.reloadChanged(t.Context()); err != nil || done.Tasks != 1 || done.NotScheduled != "" {
		t.Errorf("with a registry: %+v, %v", done, err)
	}
	eventually(t, "a leader", r.cron.leads)
	for _, one := range []*running{r, served} {
		if err := one.end(); err != nil {
			t.Errorf("the end: %v", err)
		}
	}
}
