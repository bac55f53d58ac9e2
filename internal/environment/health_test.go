package environment

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/app"
	"tendril/internal/observe/health"
	"tendril/internal/supervisor"
	"tendril/internal/worker"
	"tendril/queue"
)

func TestDeliveriesAreCountedByResult(t *testing.T) {
	t.Parallel()
	const ignored = health.Class(-1)
	for _, tt := range []struct {
		settled  worker.Settled
		function bool
		want     health.Class
	}{
		{worker.Settled{Outcome: queue.Done, Status: 200}, false, health.Success},
		{worker.Settled{Outcome: queue.Done, Status: 409}, false, health.Success},
		{worker.Settled{Outcome: queue.Failed, Status: 500}, false, health.Server},
		{worker.Settled{Outcome: queue.Failed, Status: 404}, false, health.Client},
		{worker.Settled{Outcome: queue.Failed}, false, health.NoAnswer},
		{worker.Settled{Outcome: queue.Failed, Unsent: true}, false, health.Unsent},
		{worker.Settled{Outcome: queue.Failed, Unsent: true}, true, health.Unsent},
		{worker.Settled{Outcome: queue.Failed, Status: 204}, false, health.Other},
		{worker.Settled{Outcome: queue.Failed, Status: 200}, true, health.FailedInside},
		{worker.Settled{Outcome: queue.Failed}, true, health.NoAnswer},
		{worker.Settled{Outcome: queue.Failed, Status: 500, Aborted: true}, false, ignored},
		{worker.Settled{Outcome: queue.Unreached}, false, health.Unreached},
		{worker.Settled{Outcome: queue.Throttled, Status: 429}, false, ignored},
		{worker.Settled{Outcome: queue.Postponed}, false, ignored},
	} {
		got, counts := deliveryClass(&tt.settled, tt.function)
		if !counts {
			got = ignored
		}
		if got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.settled, got, tt.want)
		}
	}
}

func TestGivenUpProcessIsRetried(t *testing.T) {
	t.Parallel()
	s, err := supervisor.New([]supervisor.Process{{Name: "mailer", Shell: "exit 7"}},
		&supervisor.Options{RestartLimit: -1, RetryAfter: app.RetryGivenUp})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop(t.Context())
	look := func() health.Process { return processStates(s.Status())[0] }
	eventually(t, "the mailer given up", func() bool { return look().GivenUp })
	if p := look(); p.RetryAfter != app.RetryGivenUp || p.LastExit != "exit status 7" {
		t.Errorf("the health takes it for %+v", p)
	}
}

func TestDeploymentsAsHealthSeesThem(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		name string
		d    *api.Deployment
		o    health.Operation
		last health.Deployment
	}{
		{"none", nil, health.Operation{}, health.Deployment{}},
		{"under way", &api.Deployment{State: api.DeployStarting, To: "version 2", Since: now},
			health.Operation{Name: "application deployment", Since: now, Limit: time.Hour}, health.Deployment{}},
		{"done", &api.Deployment{State: api.DeployDone, To: "version 2", Since: now, Ended: now.Add(time.Minute)},
			health.Operation{}, health.Deployment{Version: "version 2", Ended: now.Add(time.Minute)}},
		{"rolled back", &api.Deployment{State: api.DeployRolledBack, To: "version 2", Since: now, Ended: now,
			Error: "it ends"},
			health.Operation{}, health.Deployment{Version: "version 2", Ended: now, Failed: "it ends"}},
		{"aborted", &api.Deployment{State: api.DeployRolledBack, To: "version 2", Since: now, Ended: now,
			Error: "the deployment was aborted by owner", Aborted: true}, health.Operation{}, health.Deployment{}},
		{"a hook failed after it served",
			&api.Deployment{State: api.DeployFailed, To: "version 2", Since: now, Ended: now, Error: "a hook"},
			health.Operation{}, health.Deployment{Version: "version 2", Ended: now}},
	} {
		if o, last := deploymentStates(tt.d, time.Hour); o != tt.o || last != tt.last {
			t.Errorf("%s: %+v, %+v", tt.name, o, last)
		}
	}
}

func TestHealthOfAnEnvironment(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	status.Store(http.StatusOK)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(app.Close)
	r := run(t, map[string]string{"queue": "jobs", "target": app.URL, "max-retries": "100",
		"error-visibility-timeout": "0"}, nil)
	get := func(path string) (int, string) {
		t.Helper()
		res, err := http.Get("http://" + r.instance.address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, strings.TrimSpace(string(body))
	}
	eventually(t, "the app answered a probe", func() bool {
		code, _ := get("/readyz")
		return code == http.StatusOK
	})
	for path, want := range map[string]string{
		"/livez?verbose":    `{"status":"ok","checks":[{"name":"process","ok":true}]}`,
		"/readyz?verbose":   `{"ready":true,"checks":[{"name":"environment","ok":true},{"name":"app","ok":true},{"name":"queue","ok":true}]}`,
		"/startupz?verbose": `{"status":"ok","checks":[{"name":"app","ok":true},{"name":"queue","ok":true}]}`,
		"/api/v1/scale":     `{"queues":{"jobs":{"backlog":0,"oldestSeconds":0}},"backlog":0,"oldestSeconds":0,"desired":1}`,
	} {
		if code, got := get(path); code != http.StatusOK || got != want {
			t.Errorf("%s: %d %s, want %s", path, code, got, want)
		}
	}

	if err := r.work.pause("", newPause("a look", "")); err != nil {
		t.Fatal(err)
	}
	if q := r.work.queueStates(time.Now())[0]; !q.Paused || q.Receiving || len(q.NotReady) > 0 || !q.Known {
		t.Errorf("paused: %+v", q)
	}
	if got := strings.Join(r.observe.monitor.Report().Causes, " "); !strings.Contains(got, "Queue jobs is paused. A look.") {
		t.Errorf("paused: %s", got)
	}
	if in := r.scale.gauge(false).Read(); in.Hold != "receiving is paused" || in.Slots != 50 ||
		!in.Backlog.Known || !in.OldestAge.Known || !in.Busy.Known {
		t.Errorf("the load while paused: %+v", in)
	}
	if err := r.work.resume(""); err != nil {
		t.Fatal(err)
	}

	if r.observe.monitor.Report().Color != health.Green {
		t.Errorf("the health is %v", r.observe.monitor.Report())
	}

	status.Store(http.StatusInternalServerError)
	if _, err := r.queues.broker.Queue("jobs").Send(t.Context(), []queue.Outgoing{{Body: "work"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a dozen failures", func() bool { return r.work.all[0].worker.Status().Counts.Failed >= 12 })
	eventually(t, "a severe health", func() bool {
		code, got := get("/api/v1/health")
		return code == http.StatusOK && strings.Contains(got, `"status":"Severe"`) &&
			strings.Contains(got, ") are failing with HTTP 5xx.")
	})
	status.Store(http.StatusOK)
	eventually(t, "the message done", func() bool { l, _ := r.queues.broker.Ledger("jobs"); return l.Live == 0 })
	if code, got := get("/api/v1/health"); code != http.StatusOK || !json.Valid([]byte(got)) ||
		!strings.Contains(got, `"color"`) {
		t.Errorf("the health is %d %s", code, got)
	}

	// This check is last, because health stays Severe for a while.
	eventually(t, "a store of its own that fails", func() bool {
		r.observe.monitor.PollFailed("jobs", errors.New("the disk is full"), false) // the worker may report a success meanwhile
		code, got := get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(got, `"store"`)
	})
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}
