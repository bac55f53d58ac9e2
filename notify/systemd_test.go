package notify

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// hangGuard ends a test that would otherwise wait for ever.
const hangGuard = time.Minute

// manager is the service manager's end of a real socket.
type systemdSocket struct {
	t    *testing.T
	conn *net.UnixConn
}

// newManager listens where NOTIFY_SOCKET says from now on.
func newSystemdSocket(t *testing.T) *systemdSocket {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd") // a socket's path is short
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

// hears returns the next message.
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
		m.t.Errorf("systemd hears %q, want %q", got, want)
	}
}

// strict fails the test for whatever does not arrive.
func failOnUnsent(t *testing.T) *Options {
	return &Options{Events: Events{Unsent: func(u Unsent) { t.Errorf("unsent: %v", u.Err) }}}
}

func TestALifeIsTold(t *testing.T) {
	m, s := newSystemdSocket(t), New(failOnUnsent(t))
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
	m.want("STATUS=") // and nothing of the two before
}

func TestAReloadHasItsTime(t *testing.T) {
	m, s := newSystemdSocket(t), New(failOnUnsent(t))
	s.Reloading()
	first, rest, _ := strings.Cut(m.next(), "\n")
	if first != "RELOADING=1" {
		t.Errorf("systemd hears %q first", first)
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
	m, s := listenAt(t, "@tendril-notify-"+strconv.Itoa(os.Getpid())), New(failOnUnsent(t))
	s.Ready("up")
	m.want("READY=1\nSTATUS=up")
}

func TestWithoutSystemdNothingHappens(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	s := New(failOnUnsent(t))
	s.Ready("up")
	s.Reloading()
	s.Status("fine")
	s.Extend(time.Second)
	s.Stopping()
	s.Watchdog(t.Context(), func() bool { t.Error("asked"); return true })
}

func TestAFailureIsToldOnce(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "gone"))
	var unsent []string
	s := New(&Options{Events: Events{Unsent: func(u Unsent) { unsent = append(unsent, u.Message+": "+u.Err.Error()) }}})
	s.Status("customer 17 waits")
	s.Stopping()
	if len(unsent) != 1 || !strings.HasPrefix(unsent[0], "STATUS: telling systemd STATUS: ") || strings.Contains(unsent[0], "customer") {
		t.Errorf("two failures were told as %q", unsent)
	}
	m := newSystemdSocket(t)
	s.Stopping()
	m.want("STOPPING=1")
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "gone"))
	s.Ready("again")
	if len(unsent) != 2 || !strings.HasPrefix(unsent[1], "READY=1: ") {
		t.Errorf("after a success the next failure was told as %q", unsent)
	}
}

func TestADeafSystemdHoldsNobodyUp(t *testing.T) {
	m := newSystemdSocket(t)
	var unsent []Unsent
	s := New(&Options{Events: Events{Unsent: func(u Unsent) { unsent = append(unsent, u) }}})
	s.timeout = 10 * time.Millisecond
	for range 100_000 { // until the socket is full: 10 messages on old kernels, 512 on new ones
		if s.Stopping(); len(unsent) > 0 {
			break
		}
	}
	s.Status("told while another message waits")
	if len(unsent) != 1 || !errors.Is(unsent[0].Err, errNotReading) {
		t.Fatalf("a full socket was told as %v", unsent)
	}
	s.timeout = hangGuard
	told := make(chan struct{})
	go func() { defer close(told); s.Ready("up") }() // waits until systemd reads again
	for heard := m.next(); heard != "READY=1\nSTATUS=up"; heard = m.next() {
		if heard != "STOPPING=1" {
			t.Fatalf("systemd hears %q", heard)
		}
	}
	<-told
	if s.failing.Load() {
		t.Error("the last message arrived, and counts as failed")
	}
}

func TestAStatusIsOneLine(t *testing.T) {
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

func TestNoTextPassesForAMessage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := statusLine(string(rapid.SliceOf(rapid.Byte()).Draw(t, "text")))
		if strings.ContainsAny(line, "\n\r\x00") || !utf8.ValidString(line) || len(line) > len("STATUS=")+MaxStatus {
			t.Errorf("a status became %q", line)
		}
	})
}
