package logging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tendril/internal/worker"
	"tendril/queue"
)

var sqsdTime = time.Date(2018, 9, 27, 8, 26, 57, 999e6, time.UTC)

// The expected lines are from real aws-sqsd logs.
func TestSqsdLinesMatchRealLogs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want string
		at   time.Time
		s    worker.Settled
	}{
		{"2018-09-27T08:26:57Z http-err: ae772911-9a93-4d3f-9092-fc1970fe3807 (3) 500 - 1.466", sqsdTime,
			worker.Settled{ID: "ae772911-9a93-4d3f-9092-fc1970fe3807", ReceiveCount: 3, Attempt: 1, Status: 500,
				Duration: 1466 * time.Millisecond}},
		{"2016-12-30T17:15:18Z http-err: ebe0986e-b879-407f-be8b-04c078b10a0b (362) 404 - 0.002",
			time.Date(2016, 12, 30, 18, 15, 18, 0, time.FixedZone("CET", 3600)),
			worker.Settled{ID: "ebe0986e-b879-407f-be8b-04c078b10a0b", ReceiveCount: 362, Status: 404,
				Duration: 2100 * time.Microsecond}},
		{"2017-04-30T02:01:25Z socket-err: 96055c97-fc82-41d0-a3ec-4aa000fb970e (2) Errno::ETIMEDOUT - 1798.986",
			time.Date(2017, 4, 30, 2, 1, 25, 0, time.UTC),
			worker.Settled{ID: "96055c97-fc82-41d0-a3ec-4aa000fb970e", ReceiveCount: 2, Err: os.ErrDeadlineExceeded,
				Duration: 1798986 * time.Millisecond}},
		{"2018-09-27T08:26:57Z socket-err: m (1) Errno::ECONNREFUSED - 0.000", sqsdTime,
			worker.Settled{ID: "m", ReceiveCount: 1, Outcome: queue.Unreached,
				Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}},
		{"2018-09-27T08:26:57Z socket-err: m (1) EOFError - 3.000", sqsdTime,
			worker.Settled{ID: "m", ReceiveCount: 1, Status: 200, Err: io.ErrUnexpectedEOF, Duration: 3 * time.Second}},
		{"2018-09-27T08:26:57Z http-err: m (1) 429 - 0.010", sqsdTime,
			worker.Settled{ID: "m", ReceiveCount: 1, Outcome: queue.Throttled, Status: 429, Duration: 10 * time.Millisecond}},
		{"", sqsdTime, worker.Settled{ID: "m", ReceiveCount: 1, Outcome: queue.Done, Status: 200}},
	} {
		if got := string(appendSqsdSettled(nil, tt.at, &tt.s)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	want := "before 2018-09-27T08:26:57Z message: sent to http://localhost:80/worker/queue"
	if got := string(appendSqsdSent([]byte("before "), sqsdTime, "http://localhost:80/worker/queue")); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSocketErrorsHaveRubysNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, "IOError"},
		{errors.New("the response is not HTTP"), "IOError"},
		{io.EOF, "EOFError"},
		{fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), "EOFError"},
		{context.DeadlineExceeded, "Errno::ETIMEDOUT"},
		{fmt.Errorf("reading: %w", os.ErrDeadlineExceeded), "Errno::ETIMEDOUT"},
		{syscall.ETIMEDOUT, "Errno::ETIMEDOUT"},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, "Errno::ECONNRESET"},
		{syscall.EPIPE, "Errno::EPIPE"},
		{syscall.EHOSTUNREACH, "Errno::EHOSTUNREACH"},
		{syscall.EMFILE, "Errno::EMFILE"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "app"}}, "SocketError"},
		{&net.DNSError{IsTimeout: true}, "SocketError"},
		{fmt.Errorf("stopped: %w", context.Canceled), "Interrupt"},
	} {
		if got := socketError(tt.err); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.err, got, tt.want)
		}
	}
}

func TestTargetAddress(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"http://localhost/":                     "http://localhost:80/",
		"http://localhost/worker/queue":         "http://localhost:80/worker/queue",
		"http://localhost:8080/a%2Fb":           "http://localhost:8080/a%2Fb",
		"https://app.example":                   "https://app.example:443",
		"http://[::1]/":                         "http://[::1]:80/",
		"http://user:secret@localhost/?k=v#f":   "http://localhost:80/",
		"unix:///run/app.sock":                  "unix:///run/app.sock",
		"arn:aws:lambda:eu-west-1:1:function:f": "arn:aws:lambda:eu-west-1:1:function:f",
		"":                                      "",
		"a\x00b":                                "a\x00b",
	} {
		if got := TargetAddress(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestSqsdLinesCanBeGrepped(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(
		`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (http-err: [0-9a-f-]+ \(\d+\) \d{3}|socket-err: [0-9a-f-]+ \(\d+\) [A-Z][A-Za-z:]+) - \d+\.\d{3}$`)
	rapid.Check(t, func(t *rapid.T) {
		s := worker.Settled{
			ID:           rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}`).Draw(t, "id"),
			ReceiveCount: rapid.IntRange(1, 5000).Draw(t, "receives"),
			Outcome:      rapid.SampledFrom([]queue.Outcome{queue.Failed, queue.Unreached, queue.Throttled}).Draw(t, "outcome"),
			Status:       rapid.SampledFrom([]int{0, 200, 301, 404, 500, 599}).Draw(t, "status"),
			Err:          rapid.SampledFrom([]error{nil, io.EOF, syscall.EPIPE, errors.New("a \n b")}).Draw(t, "err"),
			Duration:     time.Duration(rapid.Int64Range(0, int64(12*time.Hour)).Draw(t, "took")),
		}
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 0)
		if got := appendSqsdSettled(nil, at, &s); !pattern.Match(got) {
			t.Fatalf("%s", got)
		}
	})
}

func BenchmarkSqsdLine(b *testing.B) {
	s := worker.Settled{ID: "ae772911-9a93-4d3f-9092-fc1970fe3807", ReceiveCount: 3, Status: 500,
		Duration: 1466 * time.Millisecond}
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		buf = appendSqsdSettled(buf[:0], sqsdTime, &s)
	}
}
