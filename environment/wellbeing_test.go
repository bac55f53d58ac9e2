package environment

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tendril/app"
	"tendril/config"
	"tendril/console"
	"tendril/health"
	"tendril/queue"
	"tendril/supervisor"
	"tendril/worker"
)

func TestRises(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		name   string
		before int64
		values []int64 // a minute between
		want   []int64
	}{
		{"all from the first call count", 0, []int64{2, 2, 3}, []int64{2, 2, 3}},
		{"what was before does not", 7, []int64{7, 8, 8}, []int64{0, 1, 1}},
		{"after five minutes it is over", 0, []int64{1, 1, 1, 1, 1, 1, 2, 2}, []int64{1, 1, 1, 1, 1, 0, 1, 1}},
		{"what falls begins anew", 0, []int64{4, 0, 1, 1, 1, 1, 1}, []int64{4, 4, 5, 5, 5, 1, 1}},
	} {
		var r rises
		var got []int64
		for i, v := range tt.values {
			got = append(got, r.within("one", tt.before, v, now.Add(time.Duration(i)*time.Minute)))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if len(r.byName["one"].past) > 8 {
			t.Errorf("%s: it remembers %d", tt.name, len(r.byName["one"].past))
		}
	}
}

func TestObserved(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		settled  worker.Settled
		function bool
		want     health.Requests
	}{
		{worker.Settled{Outcome: queue.Done, Status: 200}, false, health.Requests{Success: 1}},
		{worker.Settled{Outcome: queue.Done, Status: 409}, false, health.Requests{Success: 1}},
		{worker.Settled{Outcome: queue.Failed, Status: 500}, false, health.Requests{Server: 1}},
		{worker.Settled{Outcome: queue.Failed, Status: 404}, false, health.Requests{Client: 1}},
		{worker.Settled{Outcome: queue.Failed}, false, health.Requests{NoAnswer: 1}},
		{worker.Settled{Outcome: queue.Failed, Unsent: true}, false, health.Requests{Unsent: 1}},
		{worker.Settled{Outcome: queue.Failed, Unsent: true}, true, health.Requests{Unsent: 1}},
		{worker.Settled{Outcome: queue.Failed, Status: 204}, false, health.Requests{Other: 1}},
		{worker.Settled{Outcome: queue.Failed, Status: 200}, true, health.Requests{FailedInside: 1}},
		{worker.Settled{Outcome: queue.Failed}, true, health.Requests{NoAnswer: 1}},
		{worker.Settled{Outcome: queue.Failed, Status: 500, Aborted: true}, false, health.Requests{}},
		{worker.Settled{Outcome: queue.Unreached}, false, health.Requests{Unreached: 1}},
		{worker.Settled{Outcome: queue.Throttled, Status: 429}, false, health.Requests{}},
		{worker.Settled{Outcome: queue.Postponed}, false, health.Requests{}},
	} {
		var w wellbeing
		w.observe(tt.settled, tt.function, now)
		got := w.window.Requests(now)
		got.Percentiles = health.Percentiles{}
		if got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.settled, got, tt.want)
		}
	}
}

// TestAProcessGivenUpIsTriedAgain: and the health says how often.
func TestAProcessGivenUpIsTriedAgain(t *testing.T) {
	t.Parallel()
	s, err := supervisor.New([]supervisor.Process{{Name: "mailer", Shell: "exit 7"}},
		&supervisor.Options{RestartLimit: -1, KeepTrying: true, RetryAfter: retryGivenUp})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop(t.Context())
	var w wellbeing
	look := func() health.Process { return w.processes([]app.Replica{s}, time.Now())[0] }
	eventually(t, "the mailer given up", func() bool { return look().GivenUp })
	if p := look(); p.RetryAfter != retryGivenUp || p.LastExit != "exit status 7" {
		t.Errorf("the health takes it for %+v", p)
	}
}

func TestPolls(t *testing.T) {
	t.Parallel()
	var p polls
	now := time.Unix(1_800_000_000, 0)
	p.answered("jobs") // changes nothing
	if _, failing := p.of("jobs"); failing {
		t.Error("nothing failed yet")
	}
	p.failed("jobs", worker.PollFailed{Err: errors.New("no route")}, now)
	p.failed("jobs", worker.PollFailed{Err: errors.New("denied"), Permanent: true}, now.Add(time.Minute))
	p.answered("others")
	if got, failing := p.of("jobs"); !failing || got != (pollTrouble{since: now, text: "denied", forGood: true}) {
		t.Errorf("%+v, failing %t", got, failing)
	}
	p.answered("jobs")
	if _, failing := p.of("jobs"); failing || p.failing.Load() != 0 {
		t.Error("it answered")
	}
}

func TestDeploymentHealth(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		name string
		d    *console.Deployment
		o    health.Operation
		last health.Deployment
	}{
		{"none", nil, health.Operation{}, health.Deployment{}},
		{"under way", &console.Deployment{State: console.DeployStarting, To: "version 2", Since: now},
			health.Operation{Name: "application deployment", Since: now, Limit: time.Hour}, health.Deployment{}},
		{"done", &console.Deployment{State: console.DeployDone, To: "version 2", Since: now, Ended: now.Add(time.Minute)},
			health.Operation{}, health.Deployment{Version: "version 2", Ended: now.Add(time.Minute), Took: time.Minute}},
		{"rolled back", &console.Deployment{State: console.DeployRolledBack, To: "version 2", Since: now, Ended: now,
			Error: "it ends"},
			health.Operation{}, health.Deployment{Version: "version 2", Ended: now, Failed: "it ends"}},
		{"a hook failed after it served",
			&console.Deployment{State: console.DeployFailed, To: "version 2", Since: now, Ended: now, Error: "a hook"},
			health.Operation{}, health.Deployment{Version: "version 2", Ended: now}},
	} {
		if o, last := deploymentHealth(tt.d, time.Hour); o != tt.o || last != tt.last {
			t.Errorf("%s: %+v, %+v", tt.name, o, last)
		}
	}
}

func TestHealthLevel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before, now health.Status
		want        slog.Level
	}{
		{health.Pending, health.Ok, slog.LevelInfo}, {health.Ok, health.Info, slog.LevelDebug},
		{health.Info, health.Ok, slog.LevelDebug},
		{health.Ok, health.Warning, slog.LevelWarn}, {health.Warning, health.Degraded, slog.LevelWarn},
		{health.Degraded, health.Severe, slog.LevelError},
		{health.Severe, health.Ok, slog.LevelInfo}, {health.Ok, health.NoData, slog.LevelWarn},
		{health.Warning, health.Info, slog.LevelInfo},
	} {
		if got := healthLevel(tt.before, tt.now); got != tt.want {
			t.Errorf("%s to %s: %s, want %s", tt.before, tt.now, got, tt.want)
		}
	}
}

// TestHealthOfAnEnvironment runs one beside an app, and asks what a platform
// asks.
func TestHealthOfAnEnvironment(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	status.Store(http.StatusOK)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(app.Close)
	r := run(t, map[string]string{"queue": "jobs", "target": app.URL, "max-retries": "100",
		"error-visibility-timeout": "0"}, func(e *Environment) {
		e.well.host = health.NewHost("") // its disk and processors are not what is tried
	})
	get := func(path string) (int, string) {
		t.Helper()
		res, err := http.Get("http://" + r.address + path)
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

	r.well.polls.failed("jobs", worker.PollFailed{Err: errors.New("the disk is full")}, time.Now())
	if code, got := get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(got, `"store"`) {
		t.Errorf("a store of its own that fails: %d %s", code, got)
	}
	r.well.polls.answered("jobs")

	if err := r.pause("", "a look"); err != nil {
		t.Fatal(err)
	}
	if in := r.gatherHealth(time.Now()); !in.Paused || in.Queue.Failed != "" || !in.App.Checked || !in.App.Ready ||
		!in.App.WasReady || !in.Queue.Known {
		t.Errorf("paused: %+v", in)
	}
	if in, _ := r.instanceGauge().Read(t.Context()); in.Hold != "receiving is paused" || in.Slots != 50 ||
		!in.Backlog.Known || !in.OldestAge.Known || !in.Busy.Known {
		t.Errorf("the load while paused: %+v", in)
	}
	if err := r.resume(""); err != nil {
		t.Fatal(err)
	}

	if !r.isGreen() {
		t.Errorf("the health is %s", r.healthReport())
	}

	// Failures are Severe as soon as somebody asks.
	status.Store(http.StatusInternalServerError)
	if _, err := r.broker.Send(t.Context(), "jobs", []queue.Outgoing{{Body: "work"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a dozen failures", func() bool { return r.well.window.Requests(time.Now()).Server >= 12 })
	if code, got := get("/api/v1/health"); code != http.StatusOK || !strings.Contains(got, `"status":"Severe"`) ||
		!strings.Contains(got, ") are failing with HTTP 5xx.") {
		t.Errorf("the health is %d %s", code, got)
	}
	status.Store(http.StatusOK)
	eventually(t, "the message done", func() bool { l, _ := r.broker.Ledger("jobs"); return l.Live == 0 })
	if code, got := get("/api/v1/health"); code != http.StatusOK || !json.Valid([]byte(got)) ||
		!strings.Contains(got, `"color"`) {
		t.Errorf("the health is %d %s", code, got)
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

// TestSharedQueueFails: that a queue does not answer is told, and no reason to be
// out of use, unless the queue is this instance's own.
func TestSharedQueueFails(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	trouble := pollTrouble{since: now.Add(-2 * time.Minute), text: "no route"}
	queue := console.Check{Name: "queue", OK: true}
	shared := health.Inputs{Poll: health.Poll{Reached: true}}
	trouble.tell(&shared, "jobs", false)
	got := withQueue(nil, queue, health.Ready(shared, now))
	if shared.Poll.Error != "jobs: no route" || len(got) != 1 || !got[0].OK ||
		!strings.Contains(got[0].Detail, "it is shared") {
		t.Errorf("a shared one: %+v, %+v", shared.Poll, got)
	}
	own := health.Inputs{Poll: health.Poll{Reached: true}}
	trouble.tell(&own, "jobs", true)
	got = withQueue(nil, queue, health.Ready(own, now))
	if own.Queue.Failed != "no route" || len(got) != 2 || got[0].OK || !got[1].OK {
		t.Errorf("its own: %+v, %+v", own.Queue, got)
	}
	refused := console.Check{Name: "queue", Detail: "deletes are refused"}
	if got := withQueue(nil, refused, health.Ready(shared, now)); len(got) != 1 || got[0] != refused {
		t.Errorf("deletes that are refused: %+v", got)
	}
}

// TestHealthReport: what was judged long ago is not shown as if it were of now.
func TestHealthReport(t *testing.T) {
	t.Parallel()
	e := unstarted(t, map[string]string{})
	if r := e.healthReport(); r.Status != health.Pending {
		t.Errorf("before the first judgement: %s", r)
	}
	e.healthRound(time.Now())
	if r := e.healthReport(); r.Status != health.Pending || !e.liveChecks()[0].OK {
		t.Errorf("right after one: %s", r)
	}
	e.well.beat = time.Now().Add(-2 * time.Minute)
	if r := e.healthReport(); r.Status != health.NoData || r.Since != e.well.beat || e.isGreen() || e.liveChecks()[0].OK {
		t.Errorf("long after one: %s", r)
	}
}

// Whoever learns that the app is ready may rely on it: the workers' gates are open by then. Health, which
// is judged at that moment, would else report an app that is not ready.
func TestGatesAreOpenWhenTheAppIsReady(t *testing.T) {
	t.Parallel()
	e := &Environment{ready: make(chan struct{}), lifecycle: newLifecycle()}
	l := newLine(&config.QueueSettings{Name: "jobs"})
	opened := 0
	l.worker = worker.New(nil, nil, &worker.Options{Events: &worker.Events{GateChanged: func(g worker.GateChanged) {
		if opened++; e.wasReady() {
			t.Errorf("ready was announced before the gate changed: %+v", g)
		}
	}}})
	e.lines = []*line{l}
	if !l.settings().ToOwnApp() {
		t.Fatal("the line should lead to the app that runs here")
	}
	e.appGate(true, "")
	if opened == 0 || !e.wasReady() || len(l.worker.Status().Reasons) > 0 {
		t.Errorf("%d changes of the gate, ready %t, reasons %v", opened, e.wasReady(), l.worker.Status().Reasons)
	}
}
