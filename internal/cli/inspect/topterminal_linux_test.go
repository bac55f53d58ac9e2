package inspect

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/console"
	"tendril/internal/testing/pseudoterminal"
)

func topEnvironment(t *testing.T) (client *api.Client, dial func() (*api.Client, error)) {
	t.Helper()
	var mu sync.Mutex
	paused := false
	set := func(to bool) {
		mu.Lock()
		defer mu.Unlock()
		paused = to
	}
	const token = "a-token-for-tests"
	srv := console.New(&console.Options{Environment: "shop", Token: token,
		Status: func() api.Status {
			mu.Lock()
			defer mu.Unlock()
			workers := []api.Worker{{Queue: "jobs", Concurrency: 5, Receiving: !paused, Progress: api.Progress{Paused: paused}}}
			api.Explain(workers, nil)
			return api.Status{State: api.StateRunning, Workers: workers, Queues: []api.Queue{{Name: "jobs"}}}
		},
		Receiving: console.Receiving{
			Pause: func(context.Context, string, api.Reason, string) (api.Paused, error) {
				set(true)
				return api.Paused{}, nil
			},
			Resume: func(context.Context, string, bool) (api.Paused, error) { set(false); return api.Paused{}, nil },
		}})
	server := httptest.NewServer(srv)
	dir := t.TempDir()
	instance := api.Instance{PID: os.Getpid(), Environment: "shop", Console: strings.TrimPrefix(server.URL, "http://")}
	release, err := api.Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = release() })
	if err := errors.Join(instance.Write(dir), api.WriteToken(dir, token)); err != nil {
		t.Fatal(err)
	}
	dial = func() (*api.Client, error) { return api.Dial(dir) }
	client, err = dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close(); server.Close() })
	return client, dial
}

// The test sends signals to its own process, so it is not parallel.
func TestTopLeavesTheTerminalAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(p *pseudoterminal.Terminal, cancel func())
		want error
	}{
		"q":         {func(p *pseudoterminal.Terminal, _ func()) { p.Press("q") }, nil},
		"control-C": {func(p *pseudoterminal.Terminal, _ func()) { p.Press("\x03") }, nil},
		"a signal":  {func(_ *pseudoterminal.Terminal, cancel func()) { cancel() }, context.Canceled},
		"hang-up":   {func(p *pseudoterminal.Terminal, _ func()) { _ = syscall.Kill(os.Getpid(), syscall.SIGHUP) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := pseudoterminal.Open(t)
			client, dial := topEnvironment(t)
			before := p.Modes()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			w := &topWatch{interval: 100 * time.Millisecond, client: client, dial: dial}
			go func() { ended <- w.run(ctx, p.File, p.File) }()

			p.Await("shop")
			if p.Modes() == before {
				t.Error("the terminal still waits for whole lines")
			}
			p.Press("p")
			p.Await("Pause all queues?")
			p.Press("y")
			p.Await("All queues paused.")
			p.Await("1 queue paused")
			p.Press("py")
			p.Await("All queues resumed.")
			p.Resize(40, 10)
			if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
				t.Fatal(err)
			}
			p.Await("IN FLIGHT  …")
			c.end(p, cancel)
			select {
			case err := <-ended:
				if !errors.Is(err, c.want) {
					t.Errorf("it ended with %v, want %v", err, c.want)
				}
			case <-time.After(pseudoterminal.Patience):
				t.Fatal("it did not end")
			}
			if after := p.Modes(); after != before {
				t.Errorf("the modes are %+v, were %+v", after, before)
			}
			p.Await(base.LeaveScreen)
		})
	}
}
