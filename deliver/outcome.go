package deliver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tendril/queue"
)

// maxLocation is how much of a redirect's path a reason shows.
const maxLocation = 80

// reasons are the words for the bounds of the settings, put together once.
type reasons struct {
	silent  string // no byte of an answer in the idle time
	stalled string // no further byte of it
	expired string // the deadline passed
	path    string // where ordinary messages go
}

func newReasons(opts *HTTPOptions) reasons {
	path, _, _ := strings.Cut(opts.Path, "?")
	return reasons{
		silent:  "no answer within " + opts.InactivityTimeout.String(),
		stalled: "answer stalled for " + opts.InactivityTimeout.String(),
		expired: "deadline of " + opts.Deadline.String() + " passed",
		path:    path,
	}
}

// judge says what an exchange means for the message.
//
//	nothing sent                      unreached
//	no answer, or not HTTP            failed
//	a success whose body broke off    failed
//	a success                         done
//	any other status                  failed
func (r *reasons) judge(ctx context.Context, a *answer, run *scheduledRun, end time.Time) queue.Result {
	switch {
	case a.head == nil && !a.sent:
		return queue.Result{Outcome: queue.Unreached, Reason: r.unsentReason(ctx, end), Err: a.err}
	case a.head == nil:
		return queue.Result{Reason: r.unansweredReason(ctx, a, end), Err: a.err}
	case a.broken:
		return queue.Result{Status: a.head.StatusCode, Reason: r.unansweredReason(ctx, a, end), Err: a.err}
	case a.success:
		return queue.Result{Outcome: queue.Done, Status: a.head.StatusCode}
	default:
		return queue.Result{
			Status:     a.head.StatusCode,
			Reason:     r.statusReason(a.head, run),
			Answer:     answerHead(a.head.Header, a.first),
			RetryAfter: retryAfter(a.head.Header.Get("Retry-After"), time.Now()),
		}
	}
}

// bound returns the words for the bound that ended a delivery; "" when none did.
func (r *reasons) bound(ctx context.Context, end time.Time) string {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "deadline passed"
	case ctx.Err() != nil:
		return "stopped"
	case !end.IsZero() && !time.Now().Before(end):
		return r.expired
	default:
		return ""
	}
}

// unsentReason says why an open connection took nothing, or why there was no
// time for one.
func (r *reasons) unsentReason(ctx context.Context, end time.Time) string {
	if bound := r.bound(ctx, end); bound != "" {
		return bound + " before anything was sent"
	}
	return "connection closed before anything was sent"
}

// unansweredReason says why a request that went out, at least in part, has no
// whole answer.
func (r *reasons) unansweredReason(ctx context.Context, a *answer, end time.Time) string {
	bound := r.bound(ctx, end)
	switch {
	case bound == "stopped":
		return "stopped before the app had answered"
	case bound != "":
		return bound
	case isLate(a.err) && a.started:
		return r.stalled
	case isLate(a.err):
		return r.silent
	case errors.Is(a.err, errHeadTooLong):
		return "answer headers longer than 64 KiB"
	case a.head == nil && isGarbled(a.err):
		return "answer is not HTTP"
	case a.started:
		return "answer broke off"
	case isClosed(a.err):
		return "connection closed without an answer"
	default:
		return "connection failed without an answer"
	}
}

// isClosed reports whether err is what a closed connection gives; a reset is
// the close of a peer that had not read everything.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// isLate reports whether one of the exchange's own bounds ended it, rather than
// the network's patience.
func isLate(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// statusReason says what a status that is no success means, at more length
// where it is one that puzzles.
func (r *reasons) statusReason(head *http.Response, run *scheduledRun) string {
	status := "status " + strconv.Itoa(head.StatusCode)
	switch code := head.StatusCode; {
	case code == http.StatusSwitchingProtocols:
		return status + " (the app wants another protocol)"
	case code >= 200 && code <= 299:
		return status + " (not among the success codes)"
	case code >= 300 && code <= 399:
		return status + redirectedTo(head.Header.Get("Location")) + " (redirects are not followed)"
	case code == http.StatusUnauthorized:
		return status + " (the app asks for a login)"
	case code == http.StatusForbidden:
		return status + " (refused; a CSRF or host check?)"
	case code == http.StatusNotFound && run != nil:
		return status + " (no route for the task's path)"
	case code == http.StatusNotFound:
		return status + " (no route for POST " + r.path + ")"
	case code == http.StatusMethodNotAllowed:
		return status + " (the path takes no POST)"
	case code == http.StatusRequestEntityTooLarge:
		return status + " (the message is too long for the app)"
	case code == http.StatusRequestHeaderFieldsTooLarge:
		return status + " (the attributes are too long for the app)"
	default:
		return status
	}
}

// redirectedTo shows where a redirect leads, without the parts of it that may hold
// a secret.
func redirectedTo(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	to := u.EscapedPath()
	if u.Host != "" && isHostName(u.Hostname()) {
		to = u.Hostname() + to
	}
	if to == "" || !isFieldValue(to) {
		return ""
	}
	if len(to) > maxLocation {
		to = to[:maxLocation] + "..."
	}
	return " to " + to
}

// retryAfter reads a Retry-After header: a number of seconds or a date. It is
// never negative and at most [queue.MaxVisibility]; 0 when there is none that
// can be read.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	const most = queue.MaxVisibility
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(most/time.Second) {
			return most
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), most)
}
