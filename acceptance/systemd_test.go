package acceptance

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

type systemd struct {
	t    *testing.T
	conn *net.UnixConn
	path string
}

func newSystemd(t *testing.T) *systemd {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // the length of socket paths is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &systemd{t, conn, path}
}

func (s *systemd) await(word string) (received []string) {
	s.t.Helper()
	s.conn.SetReadDeadline(time.Now().Add(time.Minute))
	buf := make([]byte, 8192)
	for {
		n, err := s.conn.Read(buf)
		if err != nil {
			s.t.Fatalf("systemd received %q, but no %s: %v", received, word, err)
		}
		received = append(received, string(buf[:n]))
		if strings.HasPrefix(received[len(received)-1], word) {
			return received
		}
	}
}

func (s *systemd) silent(word string) {
	s.t.Helper()
	s.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	buf := make([]byte, 8192)
	for {
		n, err := s.conn.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil || strings.Contains(string(buf[:n]), word) {
			s.t.Fatalf("systemd received %q, %v", buf[:n], err)
		}
	}
}

func TestSystemdIsNotified(t *testing.T) {
	t.Parallel()
	s, allowed := newSystemd(t), filepath.Join(t.TempDir(), "allowed")
	line := strings.Replace(appLine(filepath.Join(t.TempDir(), "journal"), "1"), "web: ",
		fmt.Sprintf("web: until [ -e %s ]; do sleep 0.05; done; ", allowed), 1)
	dir := writeBundle(t, map[string]string{"Procfile": line})
	p := launchWith(t, []string{"NOTIFY_SOCKET=" + s.path}, "up", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0",
		"--console", "127.0.0.1:0",
		"--port", testpeer.FreePort(t), "--app-ready-timeout", "50s", "--shutdown-timeout", "20s", "--app-grace", "5s", dir)
	if received := s.await("EXTEND"); received[len(received)-1] != "EXTEND_TIMEOUT_USEC=80000000" {
		t.Errorf("a start may take %q, want what the app has and half a minute", received)
	}
	s.silent("READY")
	if err := os.WriteFile(allowed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.await("READY=1\nSTATUS=working on 1 queue: 0 in flight, 0 done")
	p.cmd.Process.Signal(syscall.SIGHUP)
	s.await("RELOADING=1\nMONOTONIC_USEC=")
	s.await("READY=1\n")
	p.cmd.Process.Signal(syscall.SIGTERM)
	s.await("STOPPING=1")
	if received := s.await("EXTEND"); received[len(received)-1] != "EXTEND_TIMEOUT_USEC=60000000" {
		t.Errorf("the stop may take %q, want the shutdown, twice the grace and half a minute", received)
	}
	<-p.exited
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func TestSystemdIsNotNotifiedReadyWithoutAReadyApp(t *testing.T) {
	t.Parallel()
	s := newSystemd(t)
	p := launchWith(t, []string{"NOTIFY_SOCKET=" + s.path}, "up", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0",
		"--console", "off",
		"--port", testpeer.FreePort(t), "--app-ready-timeout", "1s",
		writeBundle(t, map[string]string{"Procfile": "web: sleep 1000\n"}))
	for _, received := range s.await("STOPPING=1") {
		if strings.HasPrefix(received, "READY") {
			t.Errorf("systemd received %q", received)
		}
	}
	<-p.exited
	if code := p.cmd.ProcessState.ExitCode(); code != 5 {
		t.Errorf("exit status %d, want 5", code)
	}
}

// The watchdog's signal must kill tendril with a stack trace. Exit status 2 would mean invalid settings and prevent a
// restart.
func TestAHangDoesNotExitLikeWrongSettings(t *testing.T) {
	t.Parallel()
	p, _ := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off")
	p.cmd.Process.Signal(syscall.SIGABRT)
	<-p.exited
	how := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !how.Signaled() || how.Signal() != syscall.SIGABRT || !strings.Contains(p.stderr.All(), "goroutine ") {
		t.Errorf("it ended with %v", p.cmd.ProcessState)
	}
}
