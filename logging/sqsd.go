package logging

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	"tendril/queue"
	"tendril/worker"
)

// The log of aws-sqsd, for people who have tools that read it:
//
//	2018-09-27T08:26:55Z message: sent to http://localhost:80/worker/queue
//	2018-09-27T08:26:57Z http-err: ae772911-9a93-4d3f-9092-fc1970fe3807 (3) 500 - 1.466
//	2017-04-30T02:01:25Z socket-err: 96055c97-fc82-41d0-a3ec-4aa000fb970e (2) Errno::ETIMEDOUT - 1798.986
//
// The time is in UTC and whole seconds. The first line is written when a delivery
// begins; a second one only when it fails, with the message's id and receive count,
// what it failed of, and the seconds it took. A success has no line of its own.

// appendSqsdSent appends the line for a delivery that begins at the given time,
// without a line feed. target is what [TargetAddress] returned.
func appendSqsdSent(b []byte, at time.Time, target string) []byte {
	b = appendSqsdTime(b, at)
	b = append(b, "message: sent to "...)
	return append(b, target...)
}

// appendSqsdSettled appends the line for a delivery that ended at the given time,
// without a line feed; nothing for one that is done. An answer that is no success
// is an http-err; where there was none, or it broke off, it is a socket-err.
func appendSqsdSettled(b []byte, at time.Time, s *worker.Settled) []byte {
	if s.Outcome == queue.Done {
		return b
	}
	b = appendSqsdTime(b, at)
	answered := s.Status != 0 && s.Err == nil
	if answered {
		b = append(b, "http-err: "...)
	} else {
		b = append(b, "socket-err: "...)
	}
	b = append(b, s.ID...)
	b = append(b, " ("...)
	b = strconv.AppendInt(b, int64(s.ReceiveCount), 10)
	b = append(b, ") "...)
	if answered {
		b = strconv.AppendInt(b, int64(s.Status), 10)
	} else {
		b = append(b, socketError(s.Err)...)
	}
	b = append(b, " - "...)
	return strconv.AppendFloat(b, s.Duration.Seconds(), 'f', 3, 64)
}

func appendSqsdTime(b []byte, at time.Time) []byte {
	return append(at.UTC().AppendFormat(b, time.RFC3339), ' ')
}

// errnoNames are the errors of the system that end a delivery, by the names that
// the log gives them.
var errnoNames = [...]struct {
	errno syscall.Errno
	name  string
}{
	{syscall.ETIMEDOUT, "Errno::ETIMEDOUT"},
	{syscall.ECONNREFUSED, "Errno::ECONNREFUSED"},
	{syscall.ECONNRESET, "Errno::ECONNRESET"},
	{syscall.ECONNABORTED, "Errno::ECONNABORTED"},
	{syscall.EPIPE, "Errno::EPIPE"},
	{syscall.EHOSTUNREACH, "Errno::EHOSTUNREACH"},
	{syscall.ENETUNREACH, "Errno::ENETUNREACH"},
	{syscall.EADDRNOTAVAIL, "Errno::EADDRNOTAVAIL"},
	{syscall.EMFILE, "Errno::EMFILE"},
	{syscall.ENOENT, "Errno::ENOENT"},
	{syscall.EACCES, "Errno::EACCES"},
}

// socketError names what ended a delivery without an answer, in the way of Ruby:
// the log is grepped for such names. What has none there is an IOError.
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
	for _, e := range errnoNames {
		if errors.Is(err, e.errno) {
			return e.name
		}
	}
	return "IOError"
}

// TargetAddress returns the address of an app as the log shows it: with its port, also
// when that is the scheme's own, and without user, password, query and fragment, which
// may hold secrets. Anything but an HTTP address is returned as it is.
func TargetAddress(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return target
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if u.Port() == "" {
		port := "80"
		if u.Scheme == "https" {
			port = "443"
		}
		shown.Host = net.JoinHostPort(u.Hostname(), port)
	}
	return shown.String()
}
