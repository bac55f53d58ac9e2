package broker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tendril/broker"
	"tendril/internal/cron/leader"
	"tendril/internal/cron/leader/leadertest"
	"tendril/queue"
)

var _ leader.Store = (*broker.Registry)(nil)

func openRegistry(t testing.TB, dir string) (*broker.Broker, *broker.Registry) {
	t.Helper()
	b, err := broker.Open(dir, &broker.Options{NoWaits: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil && !errors.Is(err, queue.ErrClosed) {
			t.Errorf("closing: %v", err)
		}
	})
	return b, b.Registry()
}

func TestRegistryIsALeaseStore(t *testing.T) {
	t.Parallel()
	_, r := openRegistry(t, t.TempDir())
	leadertest.Run(t, func(testing.TB) leadertest.Store { return r })
}

// What the registry holds is there after the file was opened again.
func TestRegistryIsDurable(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), context.Background()
	b, r := openRegistry(t, dir)
	lease := queue.Lease{Owner: "node", Version: "a", Term: 3, Duration: 15 * time.Second, Data: "http://127.0.0.1:1"}
	if _, _, err := r.Swap(ctx, "tasks", queue.Lease{}, lease); err != nil {
		t.Fatal(err)
	}
	if err := r.SetPaused(ctx, "report", "as long as the disk is full", true); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, r = openRegistry(t, dir)
	if got, err := r.Read(ctx, "tasks"); got != lease || err != nil {
		t.Errorf("read %+v, %v; want %+v", got, err, lease)
	}
	if got, err := r.Paused(ctx); len(got) != 1 || got["report"] != "as long as the disk is full" || err != nil {
		t.Errorf("paused %v, %v", got, err)
	}
}

func TestPaused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, r := openRegistry(t, t.TempDir())
	steps := []struct {
		task, reason string
		paused       bool
		want         string
	}{
		{"a", "why", true, "a=why"},
		{"b", "", true, "a=why b="},
		{"a", "another reason", true, "a=another reason b="},
		{"a", "", false, "b="},
		{"c", "never was", false, "b="},
		{"b", "", false, ""},
	}
	for i, s := range steps {
		if err := r.SetPaused(ctx, s.task, s.reason, s.paused); err != nil {
			t.Fatal(err)
		}
		got, err := r.Paused(ctx)
		if err != nil || got == nil {
			t.Fatal(got, err)
		}
		var all []string
		for _, task := range []string{"a", "b", "c"} {
			if reason, ok := got[task]; ok {
				all = append(all, task+"="+reason)
			}
		}
		if text := strings.Join(all, " "); text != s.want || len(all) != len(got) {
			t.Errorf("step %d: paused %v, want %s", i, got, s.want)
		}
	}
}

// What would not come back as it was written is refused, and what is out of
// proportion too.
func TestRegistryRefusesWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, r := openRegistry(t, t.TempDir())
	good := queue.Lease{Version: "a", Term: 1}
	with := func(change func(l *queue.Lease)) queue.Lease {
		l := good
		change(&l)
		return l
	}
	for name, try := range map[string]func() error{
		"no name":      func() error { _, _, err := r.Swap(ctx, "", queue.Lease{}, good); return err },
		"long name":    func() error { _, _, err := r.Swap(ctx, strings.Repeat("x", 513), queue.Lease{}, good); return err },
		"read no name": func() error { _, err := r.Read(ctx, ""); return err },
		"negative term": func() error {
			_, _, err := r.Swap(ctx, "l", queue.Lease{}, with(func(l *queue.Lease) { l.Term = -1 }))
			return err
		},
		"negative time": func() error {
			_, _, err := r.Swap(ctx, "l", queue.Lease{}, with(func(l *queue.Lease) { l.Duration = -1 }))
			return err
		},
		"not UTF-8": func() error {
			_, _, err := r.Swap(ctx, "l", queue.Lease{}, with(func(l *queue.Lease) { l.Owner = "\xff" }))
			return err
		},
		"zero byte": func() error {
			_, _, err := r.Swap(ctx, "l", queue.Lease{}, with(func(l *queue.Lease) { l.Data = "a\x00b" }))
			return err
		},
		"long data": func() error {
			_, _, err := r.Swap(ctx, "l", queue.Lease{}, with(func(l *queue.Lease) { l.Data = strings.Repeat("x", 16<<10+1) }))
			return err
		},
		"pause nothing":   func() error { return r.SetPaused(ctx, "", "", true) },
		"pause, bad text": func() error { return r.SetPaused(ctx, "a", "\x01", true) },
	} {
		err := try()
		if refusal := (&queue.Error{Code: queue.CodeInvalidParameterValue}); !errors.Is(err, refusal) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := r.Read(ctx, "l"); got != (queue.Lease{}) || err != nil {
		t.Errorf("stored is %+v, %v", got, err)
	}
}

func TestClosedRegistry(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, r := openRegistry(t, t.TempDir())
	if err := b.CreateQueue(ctx, "work", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, readErr := r.Read(ctx, "tasks")
	_, _, swapErr := r.Swap(ctx, "tasks", queue.Lease{}, queue.Lease{Version: "a"})
	_, _, enqueueErr := r.Enqueue(ctx, broker.RunRequest{Queue: "work", ID: "a", At: time.Unix(1, 0)},
		queue.Outgoing{Body: "x"})
	for what, err := range map[string]error{"read": readErr, "swap": swapErr, "run": enqueueErr} {
		if !errors.Is(err, queue.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
