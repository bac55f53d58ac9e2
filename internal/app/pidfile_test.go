package app

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func newTestPIDFile(t *testing.T) (f *pidFile, read func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.pid")
	log := &records{}
	f = newPIDFile(path, slog.New(log))
	t.Cleanup(func() {
		if failed := log.of("PID file not written"); len(failed) > 0 {
			t.Error(failed)
		}
	})
	return f, func() string {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		return string(text)
	}
}

func TestPIDFileContainsTheServingProcess(t *testing.T) {
	t.Parallel()
	f, read := newTestPIDFile(t)
	first, second, bad, next := &replica{}, &replica{}, &replica{}, &replica{}
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"nothing runs", func() {}, ""},
		{"the first copy starts", func() { f.started(first, 11) }, "11\n"},
		{"another one starts", func() { f.started(second, 12) }, "11\n"},
		{"the first ends", func() { f.ended(first) }, ""},
		{"the other one ends", func() { f.ended(second) }, ""},
		{"the first starts again", func() { f.started(first, 13) }, "13\n"},
		{"a new version starts beside it", func() { f.started(bad, 14) }, "13\n"},
		{"and is rolled back", func() { f.ended(bad) }, "13\n"},
		{"a better one starts beside it", func() { f.started(next, 15) }, "13\n"},
		{"and gets the messages", func() { f.setOwner(next) }, "15\n"},
		{"the old version ends", func() { f.ended(first) }, "15\n"},
		{"it is handed to one that is just down", func() { f.setOwner(second) }, ""},
		{"which comes up", func() { f.started(second, 16) }, "16\n"},
		{"the stop", func() { f.ended(second); f.ended(next) }, ""},
	} {
		step.do()
		if got := read(); got != step.want {
			t.Fatalf("%s: the file says %q, want %q", step.name, got, step.want)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(f.path)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPIDFileOfAnother(t *testing.T) {
	t.Parallel()
	f, read := newTestPIDFile(t)
	if err := os.WriteFile(f.path, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &replica{}
	f.started(c, 11)
	if info, err := os.Stat(f.path); err != nil || info.Mode().Perm() != 0o644 || read() != "11\n" {
		t.Errorf("%q, %v, %v: want 11 in a file for all to read", read(), info, err)
	}
	if err := os.WriteFile(f.path, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.ended(c)
	if read() != "1\n" {
		t.Errorf("%q, want it left alone", read())
	}
}

func TestPIDFileThatBecameAFIFO(t *testing.T) {
	t.Parallel()
	f, _ := newTestPIDFile(t)
	c := &replica{}
	f.started(c, 11)
	if err := errors.Join(os.Remove(f.path), syscall.Mkfifo(f.path, 0o600)); err != nil {
		t.Fatal(err)
	}
	f.ended(c)
	if info, err := os.Lstat(f.path); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("%v, %v, want the FIFO left alone", info, err)
	}
}
