package environment

import (
	"context"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/config"
)

// received returns the messages received so far.
func newSystemd(t *testing.T) (received func() []string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	address := &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"}
	conn, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", address.Name)
	return func() (list []string) {
		if _, err := conn.WriteTo([]byte("that was all"), address); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 8192)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			if string(buf[:n]) == "that was all" {
				return list
			}
			list = append(list, string(buf[:n]))
		}
	}
}

// Hooks and builds may take longer than the unit's timeout, but a startup that hangs before them may not.
func TestSystemdWaitsForBuilds(t *testing.T) {
	const preparing = "STATUS=preparing the app"
	for _, tt := range []struct {
		name   string
		flags  map[string]string
		change func(*Environment)
		end    func(e *Environment, stop func())
		want   []string
	}{
		{"the app's own time", map[string]string{"app-ready-timeout": "50s"}, nil, func(e *Environment, _ func()) {
			close(e.life.started)
		},
			[]string{preparing, "EXTEND_TIMEOUT_USEC=80000000", "EXTEND_TIMEOUT_USEC=80000000", "EXTEND_TIMEOUT_USEC=80000000"}},
		{"an app that may take for ever", map[string]string{"app-ready-timeout": "0"}, nil, func(e *Environment, _ func()) {
			e.life.beginDrain()
		},
			[]string{preparing, "EXTEND_TIMEOUT_USEC=90000000", "EXTEND_TIMEOUT_USEC=90000000", "EXTEND_TIMEOUT_USEC=90000000"}},
		{"no app", nil, func(e *Environment) { e.opts.Command = nil }, func(_ *Environment, stop func()) { stop() }, nil},
		{"queues that are not found", nil, func(e *Environment) {
			e.life.announced = make(chan struct{})
		}, func(_ *Environment, stop func()) { stop() }, nil},
		{"a start that is over", nil, func(e *Environment) {
			close(e.life.started)
		}, func(*Environment, func()) {}, []string{preparing}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			received := newSystemd(t)
			flags := map[string]string{"data-dir": "/nowhere"}
			maps.Copy(flags, tt.flags)
			cfg, err := config.Load(config.Sources{Flags: flags})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				e := New(Options{Config: cfg, Logger: discard(), Command: []string{"app"}})
				close(e.life.announced)
				if tt.change != nil {
					tt.change(e)
				}
				running, stop := context.WithCancel(t.Context())
				defer stop()
				over := make(chan struct{})
				go func() { e.systemd.extendStart(running); close(over) }()
				time.Sleep(25 * time.Second)
				tt.end(e, stop)
				<-over
			})
			if got := received(); !slices.Equal(got, tt.want) {
				t.Errorf("systemd received %q, want %q", got, tt.want)
			}
		})
	}
}
