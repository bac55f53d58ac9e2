package environment

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/config"
	"tendril/queue"
)

func TestWaitForAQueuedMessageEndsOnceTheWorkersHaveStopped(t *testing.T) {
	t.Parallel()
	r := run(t, map[string]string{"target": "http://127.0.0.1:1/"}, nil)
	name := r.work.all[0].queue.name
	sent, err := r.queues.broker.Queue(name).Send(t.Context(), []queue.Outgoing{{Body: "queued"}})
	if err != nil || sent[0].Err != nil {
		t.Fatal(err, sent)
	}
	c, err := api.Dial(r.settings.now().DataDir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var early, late error
	wait := func(ctx context.Context) error {
		_, _, err := c.Outcome(ctx, sent[0].ID, time.Hour)
		return err
	}
	workers := slices.IndexFunc(r.life.steps, func(s step) bool { return s.name == "the workers" })
	r.life.steps = slices.Insert(r.life.steps, workers+1, step{"a wait that ends itself", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		early = wait(ctx)
		return nil
	}})
	r.life.steps = slices.Insert(r.life.steps, workers, step{"the wait", func(ctx context.Context) error {
		late = wait(ctx)
		return nil
	}})
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if !errors.Is(early, context.DeadlineExceeded) {
		t.Errorf("before the workers have stopped, the wait ended with %v", early)
	}
	if !api.HasStatus(late, http.StatusConflict) {
		t.Errorf("the wait ended with %v", late)
	}
}

func TestDrainLimit(t *testing.T) {
	t.Parallel()
	const most = 14 * time.Minute
	silent := config.QueueSettings{PerQueue: config.PerQueue{InactivityTimeout: 3 * time.Minute}}
	bounded, elsewhere, function := silent, silent, silent
	bounded.Deadline = 5 * time.Minute
	long := bounded
	long.Deadline = time.Hour
	elsewhere.Target, function.Lambda = "http://localhost:1/", "./function"
	for _, tt := range []struct {
		name     string
		queues   []config.QueueSettings
		shutdown time.Duration
		want     time.Duration
	}{
		{"no deadline, so that an app that streams may take any time", []config.QueueSettings{silent}, 30 * time.Second,
			most},
		{"a deadline", []config.QueueSettings{bounded}, 30 * time.Second, 5 * time.Minute},
		{"one of two has none", []config.QueueSettings{bounded, silent}, 30 * time.Second, most},
		{"the other one goes elsewhere", []config.QueueSettings{bounded, elsewhere, function}, 30 * time.Second,
			5 * time.Minute},
		{"a deadline beyond that of a deployment", []config.QueueSettings{long}, 30 * time.Second, most},
		{"a stop may take longer", []config.QueueSettings{bounded}, 7 * time.Minute, 7 * time.Minute},
		{"nothing goes to the app", []config.QueueSettings{elsewhere}, 0, time.Second},
	} {
		all := queueWith(config.Settings{ShutdownTimeout: tt.shutdown}, tt.queues...).inForce
		p := pipelines{settings: all, queues: &queues{}}
		for i := range tt.queues {
			p.queues.all = append(p.queues.all, &workQueue{inForce: all, index: i})
		}
		limit := p.drainLimit
		if got := limit(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		reloaded := tt.queues[0]
		reloaded.Deadline = 8 * time.Minute
		all.change(&config.Change{Live: []string{"deadline"}, Settings: &config.Settings{ShutdownTimeout: tt.shutdown,
			Queues: append([]config.QueueSettings{reloaded}, tt.queues[1:]...)}})
		if got, want := limit(), max(tt.want, 8*time.Minute); p.queues.all[0].settings().ToOwnApp() && tt.want < 8*time.Minute &&
			got != want {
			t.Errorf("%s, after a reload: %s, want %s", tt.name, got, want)
		}
	}
	for want, set := range map[time.Duration]*config.QueueSettings{
		silent.InactivityTimeout: &silent, bounded.Deadline: &bounded, time.Second: &function,
	} {
		if got := deliveryLimit(set, time.Second); got != want {
			t.Errorf("health compares deliveries with %s, want %s", got, want)
		}
	}
}
