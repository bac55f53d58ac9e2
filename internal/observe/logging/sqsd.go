package logging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tendril/internal/worker"
	"tendril/queue"
)

// This file implements the log format of aws-sqsd, for tools that parse it:
//
//	2018-09-27T08:26:55Z message: sent to http://localhost:80/worker/queue
//	2018-09-27T08:26:57Z http-err: ae772911-9a93-4d3f-9092-fc1970fe3807 (3) 500 - 1.466
//	2017-04-30T02:01:25Z socket-err: 96055c97-fc82-41d0-a3ec-4aa000fb970e (2) Errno::ETIMEDOUT - 1798.986
//
// The first line is logged when a delivery starts. Failures are logged with the receive count and the duration in
// seconds.

func appendSqsdSent(b []byte, at time.Time, target string) []byte {
	b = append(at.UTC().AppendFormat(b, time.RFC3339), " message: sent to "...)
	return append(b, target...)
}

// Missing and truncated responses are socket-err.
func appendSqsdSettled(b []byte, at time.Time, s *worker.Settled) []byte {
	if s.Outcome == queue.Done {
		return b
	}
	kind, why := "http-err", strconv.Itoa(s.Status)
	if s.Status == 0 || s.Err != nil {
		kind, why = "socket-err", socketError(s.Err)
	}
	b = at.UTC().AppendFormat(b, time.RFC3339)
	return fmt.Appendf(b, " %s: %s (%d) %s - %.3f", kind, s.ID, s.ReceiveCount, why, s.Duration.Seconds())
}

var errnos = []syscall.Errno{syscall.ETIMEDOUT, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED,
	syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EADDRNOTAVAIL, syscall.EMFILE, syscall.ENOENT,
	syscall.EACCES}

// socketError returns the error's Ruby name, as in aws-sqsd's logs, which users search.
func socketError(err error) string {
	var name *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &name):
		return "SocketError"
	case errors.Is(err, context.Canceled):
		return "Interrupt"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "Errno::ETIMEDOUT"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "EOFError"
	}

	for _, errno := range errnos {
		if errors.Is(err, errno) {
			return "Errno::" + unix.ErrnoName(errno)
		}
	}

	return "IOError"
}

// TargetAddress returns an HTTP target with its port, and without user, query and fragment, which may be secret. It
// returns other targets unchanged.
func TargetAddress(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return target
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if u.Port() == "" {
		port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
		shown.Host = net.JoinHostPort(u.Hostname(), port)
	}
	return shown.String()
}
