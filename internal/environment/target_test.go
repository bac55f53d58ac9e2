package environment

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tendril/internal/config"
	"tendril/internal/delivery"
	"tendril/internal/observe/telemetry"
	"tendril/internal/testing/testpeer"
	"tendril/internal/worker"
	"tendril/queue"
)

func openDelivery(t *testing.T, e *Environment, change func(*config.QueueSettings)) worker.Deliverer {
	t.Helper()
	set := e.settings.now().Queues[0]
	if change != nil {
		change(&set)
	}
	q := queueWith(*e.settings.now(), set)
	if err := e.openTargets(t.Context()); err != nil {
		t.Fatal(err)
	}
	to, err := e.work.targets.open(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(to.close)
	return to.deliverer
}

func queueWith(all config.Settings, queues ...config.QueueSettings) *workQueue {
	all.Queues = queues
	return &workQueue{inForce: newSettings(&config.Config{Settings: all})}
}

func unstarted(t *testing.T, flags map[string]string) *Environment {
	t.Helper()
	flags["data-dir"] = t.TempDir()
	cfg, err := config.Load(config.Sources{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{Config: cfg, Logger: discard()})
	e.observe.telemetry = telemetry.New(nil)
	return e
}

func TestIdleProbes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		set     config.QueueSettings
		checked bool
		want    time.Duration
	}{
		{"the app that runs here", config.QueueSettings{}, false, 0},
		{"a target", config.QueueSettings{PerQueue: config.PerQueue{Target: "http://app"}}, false, 10 * time.Second},
		{"a target with a health check", config.QueueSettings{PerQueue: config.PerQueue{Target: "http://app"}}, true,
			5 * time.Second},
		{"a function here", config.QueueSettings{PerQueue: config.PerQueue{Lambda: "fn"}}, false, 10 * time.Second},
		{"a function of AWS Lambda", config.QueueSettings{PerQueue: config.PerQueue{Function: "fn"}}, false, 0},
	} {
		if got := queueWith(config.Settings{}, tt.set).probeIdle(tt.checked); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	e := unstarted(t, map[string]string{"target": "http://localhost:8080/", "healthcheck": "HTTP:8080/health"})
	q := queueWith(*e.settings.now(), e.settings.now().Queues...)
	if err := e.openTargets(t.Context()); err != nil {
		t.Fatal(err)
	}
	to, err := e.work.targets.open(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer to.close()
	if got := q.probeIdle(to.checked); got != checkIdle {
		t.Errorf("the target of the settings is probed after %v", got)
	}
}

type uncalledFunction struct{ t *testing.T }

func (f uncalledFunction) Invoke(context.Context, []byte, func() bool) (queue.Invocation, error) {
	f.t.Error("the function was invoked")
	return queue.Invocation{}, nil
}

// A queue may be paused while a delivery waits, so the target checks again.
func TestPausedQueueSendsNothingToItsTarget(t *testing.T) {
	t.Parallel()
	e := unstarted(t, map[string]string{"target": "http://127.0.0.1:" + testpeer.FreePort(t)})
	if err := e.openTargets(t.Context()); err != nil {
		t.Fatal(err)
	}
	to := &target{queue: queueWith(*e.settings.now(), e.settings.now().Queues...)}
	to.queue.arn = "arn:aws:sqs:us-east-2:123456789012:jobs"
	to.paused.Store(true)
	app, err := e.work.targets.openHTTP(to, e.settings.now().Target, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	var function delivery.Options
	if err := e.work.targets.invokeBy(to, &function, uncalledFunction{t}); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]delivery.Target{"app": app, "function": function.Target} {
		if r := target.Deliver(t.Context(), &queue.Message{ID: "m"}); r.Outcome != queue.Postponed {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// The configured health check applies to the environment's target, but not to a queue's own.
func TestProbeOfATarget(t *testing.T) {
	t.Parallel()
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(sick.Close)
	well := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(well.Close)
	nobody := "http://127.0.0.1:" + testpeer.FreePort(t)
	check := func(server *httptest.Server) string {
		return fmt.Sprintf("HTTP:%d/health", server.Listener.Addr().(*net.TCPAddr).Port)
	}
	for _, tt := range []struct{ name, all, check, own, says string }{
		{"without a check", well.URL, "", "", ""},
		{"without a check, down", nobody, "", "", "refused"},
		{"the target of all", nobody, check(well), "", ""},
		{"the target of all, with a slash", well.URL, check(sick), well.URL + "/", "status 503"},
		{"the target of all is sick", well.URL, check(sick), "", "status 503"},
		{"its own, beside a well one", well.URL, check(well), nobody, "refused"},
		{"its own, beside a sick one", well.URL, check(sick), sick.URL, ""},
		{"its own, beside the app here", "", check(well), nobody, "refused"},
	} {
		flags := map[string]string{}
		for name, value := range map[string]string{"target": tt.all, "healthcheck": tt.check} {
			if value != "" {
				flags[name] = value
			}
		}
		c := openDelivery(t, unstarted(t, flags), func(q *config.QueueSettings) {
			if tt.own != "" {
				q.Target = tt.own
			}
		})
		switch err := c.Probe(t.Context()); {
		case tt.says == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%s: %v, want one that says %q", tt.name, err, tt.says)
		}
	}
}
