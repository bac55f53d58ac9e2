package main

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tendril/api"
	"tendril/internal/console"
)

// pseudoTerminal is a terminal of 80 by 24 and what was written on it.
type pseudoTerminal struct {
	*testing.T
	keyboard, terminal *os.File

	mu     sync.Mutex
	screen strings.Builder
}

func openTerminal(t *testing.T) *pseudoTerminal {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("SKIPPED: this machine has no pseudo-terminals: %v", err)
	}
	var number int
	conn, err := keyboard.SyscallConn()
	if err == nil {
		err = errors.Join(conn.Control(func(fd uintptr) {
			if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
				number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
			}
		}), err)
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pseudoTerminal{T: t, keyboard: keyboard, terminal: terminal}
	p.resize(80, 24)
	read := make(chan struct{})
	go func() {
		defer close(read)
		text := make([]byte, 4096)
		for {
			n, err := keyboard.Read(text)
			p.mu.Lock()
			p.screen.Write(text[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { keyboard.Close(); terminal.Close(); <-read })
	return p
}

func (p *pseudoTerminal) resize(width, height uint16) {
	p.Helper()
	size := &unix.Winsize{Col: width, Row: height}
	if err := unix.IoctlSetWinsize(int(p.terminal.Fd()), unix.TIOCSWINSZ, size); err != nil {
		p.Fatal(err)
	}
}

func (p *pseudoTerminal) modes() unix.Termios {
	p.Helper()
	modes, err := unix.IoctlGetTermios(int(p.terminal.Fd()), unix.TCGETS)
	if err != nil {
		p.Fatal(err)
	}
	return *modes
}

func (p *pseudoTerminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}

// awaitText waits until a text was written after what was there before.
func (p *pseudoTerminal) awaitText(text string) {
	p.Helper()
	if err := poll(func() error {
		if !strings.Contains(p.text(), text) {
			return errors.New("not written: " + text)
		}
		return nil
	}); err != nil {
		p.Fatalf("%v\n%q", err, p.text())
	}
	p.mu.Lock()
	p.screen.Reset()
	p.mu.Unlock()
}

func (p *pseudoTerminal) press(keys string) {
	p.Helper()
	if _, err := io.WriteString(p.keyboard, keys); err != nil {
		p.Fatal(err)
	}
}

// topEnvironment is a console whose environment can be paused.
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
			return api.Status{State: api.StateRunning, Workers: []api.Worker{{Queue: "jobs", Concurrency: 5,
				Receiving: !paused, Paused: paused}}, Queues: []api.Queue{{Name: "jobs"}}}
		},
		Receiving: console.Receiving{
			Pause:  func(string, string) error { set(true); return nil },
			Resume: func(string) error { set(false); return nil },
		}})
	server := httptest.NewServer(srv)
	dir := t.TempDir()
	instance := api.Instance{PID: os.Getpid(), Environment: "shop", Console: strings.TrimPrefix(server.URL, "http://")}
	claim(t, dir)
	if err := errors.Join(instance.Write(dir), api.WriteToken(dir, token)); err != nil {
		t.Fatal(err)
	}
	dial = func() (*api.Client, error) { return api.Dial(dir) }
	client, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close(); server.Close() })
	return client, dial
}

// TestTopLeavesTheTerminalAsItWas however it ends. The signals are those of this process, so it does not run beside
// others.
func TestTopLeavesTheTerminalAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(p *pseudoTerminal, cancel func())
		want error
	}{
		"q":         {func(p *pseudoTerminal, _ func()) { p.press("q") }, nil},
		"control-C": {func(p *pseudoTerminal, _ func()) { p.press("\x03") }, nil},
		"a signal":  {func(_ *pseudoTerminal, cancel func()) { cancel() }, context.Canceled},
		"hang-up":   {func(p *pseudoTerminal, _ func()) { _ = syscall.Kill(os.Getpid(), syscall.SIGHUP) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := openTerminal(t)
			client, dial := topEnvironment(t)
			before := p.modes()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			w := &topWatch{interval: 100 * time.Millisecond, client: client, dial: dial}
			go func() { ended <- w.run(ctx, p.terminal, p.terminal) }()

			p.awaitText("shop")
			if p.modes() == before {
				t.Error("the terminal still waits for whole lines")
			}
			p.press("p")
			p.awaitText("Pause all queues?")
			p.press("y")
			p.awaitText("All queues are paused.")
			p.awaitText("1 queue paused")
			p.press("py")
			p.awaitText("All queues are received from again.")
			p.resize(40, 10)
			if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
				t.Fatal(err)
			}
			p.awaitText("IN FLIGHT  …")
			c.end(p, cancel)
			select {
			case err := <-ended:
				if !errors.Is(err, c.want) {
					t.Errorf("it ended with %v, want %v", err, c.want)
				}
			case <-time.After(patience):
				t.Fatal("it did not end")
			}
			if after := p.modes(); after != before {
				t.Errorf("the modes are %+v, were %+v", after, before)
			}
			p.awaitText(leaveScreen)
		})
	}
}
