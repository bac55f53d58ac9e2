package notify

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

const hangGuard = time.Minute

type systemdSocket struct {
	t    *testing.T
	conn *net.UnixConn
}

func newSystemdSocket(t *testing.T) *systemdSocket {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return listenAt(t, filepath.Join(dir, "notify"))
}

func listenAt(t *testing.T, address string) *systemdSocket {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", address)
	return &systemdSocket{t, conn}
}

func (m *systemdSocket) next() string {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(hangGuard)); err != nil {
		m.t.Fatal(err)
	}
	buf := make([]byte, 8192)
	n, err := m.conn.Read(buf)
	if err != nil {
		m.t.Fatalf("no message: %v", err)
	}
	return string(buf[:n])
}

func (m *systemdSocket) want(want string) {
	m.t.Helper()
	if got := m.next(); got != want {
		m.t.Errorf("systemd received %q, want %q", got, want)
	}
}

// newPatient returns a [Systemd] whose timeout is not exceeded on a slow machine.
func newPatient(events Events) *Systemd {
	s := New(events)
	s.timeout = hangGuard
	return s
}

func failOnError(t *testing.T) Events {
	return Events{SendFailed: func(err error) { t.Error(err) }}
}

// fill sends messages until systemd's socket takes no more.
func (m *systemdSocket) fill(message string) {
	m.t.Helper()
	conn, err := net.DialUnix("unixgram", nil, m.conn.LocalAddr().(*net.UnixAddr))
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		m.t.Fatal(err)
	}
	full := false
	err = raw.Write(func(fd uintptr) bool {
		for !full {
			_, err := syscall.Write(int(fd), []byte(message))
			full = err != nil
		}
		return true
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

func TestMessagesOfAWholeLife(t *testing.T) {
	m, s := newSystemdSocket(t), newPatient(failOnError(t))
	s.Extend(5 * time.Minute)
	m.want("EXTEND_TIMEOUT_USEC=300000000")
	s.Ready("2 queues")
	m.want("READY=1\nSTATUS=2 queues")
	s.Status("7 in work")
	m.want("STATUS=7 in work")
	s.Stopping()
	m.want("STOPPING=1")
	s.Extend(time.Nanosecond)
	m.want("EXTEND_TIMEOUT_USEC=1")
	s.Extend(0)
	s.Extend(-time.Second)
	s.Status("")
	m.want("STATUS=")
}

func TestReloadSendsItsTime(t *testing.T) {
	m, s := newSystemdSocket(t), newPatient(failOnError(t))
	s.Reloading()
	first, rest, _ := strings.Cut(m.next(), "\n")
	if first != "RELOADING=1" {
		t.Errorf("systemd received %q first", first)
	}
	if runtime.GOOS != "linux" {
		return
	}
	number, ok := strings.CutPrefix(rest, "MONOTONIC_USEC=")
	if usec, err := strconv.ParseInt(number, 10, 64); !ok || err != nil || usec <= 0 {
		t.Errorf("the time of the reload is %q", rest)
	}
}

func TestAbstractSocket(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("abstract sockets are Linux's")
	}
	m, s := listenAt(t, "@tendril-notify-"+strconv.Itoa(os.Getpid())), newPatient(failOnError(t))
	s.Ready("up")
	m.want("READY=1\nSTATUS=up")
}

func TestNothingIsSentWithoutSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	s := newPatient(failOnError(t))
	s.Ready("up")
	s.Reloading()
	s.Status("fine")
	s.Extend(time.Second)
	s.Stopping()
	s.Watchdog(t.Context(), func() bool { t.Error("alive was called"); return true })
}

func TestFirstFailureOfASeriesIsReported(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "gone"))
	var failures []string
	s := newPatient(Events{SendFailed: func(err error) { failures = append(failures, err.Error()) }})
	s.Status("customer 17 waits")
	s.Stopping()
	const want = "sending STATUS to systemd: "
	if len(failures) != 1 || !strings.HasPrefix(failures[0], want) || strings.Contains(failures[0], "customer") {
		t.Errorf("two failures were reported as %q", failures)
	}
	m := newSystemdSocket(t)
	s.Stopping()
	m.want("STOPPING=1")
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "gone"))
	s.Ready("again")
	if len(failures) != 2 || !strings.HasPrefix(failures[1], "sending READY=1 to systemd: ") {
		t.Errorf("after a success the next failure was reported as %q", failures)
	}
}

func TestCallsReturnWhenSystemdStopsReading(t *testing.T) {
	m := newSystemdSocket(t)
	var failures []error
	s := New(Events{SendFailed: func(err error) { failures = append(failures, err) }})
	s.timeout = 10 * time.Millisecond
	m.fill("STOPPING=1")
	s.Stopping()
	s.Status("sent while another message waits")
	if len(failures) != 1 || !errors.Is(failures[0], errNotReading) {
		t.Fatalf("a full socket was reported as %v", failures)
	}
	s.timeout = hangGuard
	sent := make(chan struct{})
	go func() { defer close(sent); s.Ready("up") }() // blocks until systemd reads again
	for got := m.next(); got != "READY=1\nSTATUS=up"; got = m.next() {
		if got != "STOPPING=1" {
			t.Fatalf("systemd received %q", got)
		}
	}
	<-sent
	if s.failing.Load() {
		t.Error("the last message arrived but counts as failed")
	}
}

func TestStatusLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "STATUS=",
		"a = b":                         "STATUS=a = b",
		"up\nREADY=1":                   "STATUS=up READY=1",
		"tab\tbell\a del\x7f nel\u0085": "STATUS=tab bell  del  nel ",
		"caf\xe9 über":                  "STATUS=caf\uFFFD über",
		strings.Repeat("x", 1025):       "STATUS=" + strings.Repeat("x", 1024),
		strings.Repeat("€", 400):        "STATUS=" + strings.Repeat("€", 341),
	} {
		if got := statusLine(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestStatusIsAlwaysOneValidLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := statusLine(string(rapid.SliceOf(rapid.Byte()).Draw(t, "text")))
		if strings.ContainsAny(line, "\n\r\x00") || !utf8.ValidString(line) || len(line) > len("STATUS=")+maxStatus {
			t.Errorf("a status became %q", line)
		}
	})
}
