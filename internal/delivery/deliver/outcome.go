package deliver

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"tendril/queue"
)

const maxLocation = 80

type reasons struct {
	silent  string
	stalled string
	expired string
	dialing time.Duration
	path    string
}

func newReasons(opts *Options) reasons {
	path, _, _ := strings.Cut(opts.Path, "?")
	return reasons{
		silent:  "no answer within " + opts.InactivityTimeout.String(),
		stalled: "answer stalled for " + opts.InactivityTimeout.String(),
		expired: "deadline of " + opts.Deadline.String() + " passed",
		dialing: opts.ConnectTimeout,
		path:    path,
	}
}

// judge returns the result of an exchange for all messages of the request.
//
//	nothing sent, or TLS refused      unreached
//	no response, or not HTTP          failed
//	a success with incomplete body    failed
//	Tendril-Outcome                   as instructed
//	a success                         done
//	any other status                  failed
//
// A terminal status counts as an instruction only for a single message. In a batch, it could refer to any message.
func (c *Client) judge(ctx context.Context, a *answer, p *content, end time.Time) queue.Result {
	r := &c.reasons
	switch {
	case a.head == nil && !a.started && isRefusal(a.err):
		return queue.Result{Outcome: queue.Unreached, Reason: refusedReason, Err: a.err}
	case a.head == nil && !a.sent:
		return queue.Result{Outcome: queue.Unreached, Reason: r.unsentReason(ctx, end), Err: a.err}
	case a.head == nil:
		return queue.Result{Reason: r.unansweredReason(ctx, a, end), Err: a.err}
	case a.broken:
		return queue.Result{Status: a.head.StatusCode, Reason: r.unansweredReason(ctx, a, end), Err: a.err}
	}

	result := queue.Result{Outcome: queue.Done, Status: a.head.StatusCode}
	if !a.success {
		result.Outcome, result.Reason = queue.Failed, r.statusReason(a.head, p.run)
		result.Answer, result.Excerpt = answerHead(a.head.Header, a.first[:min(len(a.first), answerRead)])
		result.RetryAfter = retryAfter(a.head.Header.Get("Retry-After"), time.Now())
	}
	switch {
	case a.wanted.wish != wishNothing:
		return a.wanted.result("HTTP "+strconv.Itoa(a.head.StatusCode), result)
	case !a.success && len(p.batch) <= 1 && c.terminal.Has(result.Status):
		result.Instruction = queue.TerminalStatus
	case a.success && p.batch != nil:
		if problem := p.readFailures(a); problem != "" {
			return queue.Result{Status: result.Status, Reason: problem}
		}
	}
	return result
}

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

func (r *reasons) unsentReason(ctx context.Context, end time.Time) string {
	if bound := r.bound(ctx, end); bound != "" {
		return bound + " before anything was sent"
	}
	return "connection closed before anything was sent"
}

func (r *reasons) unconnected(ctx context.Context, err error, end time.Time) string {
	if r.bound(ctx, end) != "" {
		return r.unsentReason(ctx, end)
	}
	return connectReason(err, r.dialing)
}

func connectReason(err error, within time.Duration) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "too many open files (raise ulimit -n)"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "no local ports left"
	case errors.Is(err, errRefusedAddress):
		return "address refused (link-local or metadata)"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &name) && !name.IsTimeout:
		return "host name not found"
	case isTimeout(err):
		return "no connection within " + within.String()
	case errors.As(err, &certificate):
		return "certificate not trusted"
	case isRefusal(err):
		return refusedReason
	case errors.Is(err, errHandshake):
		return "TLS handshake failed"
	case errors.Is(err, syscall.ENOENT):
		return "socket does not exist"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return "no permission to connect"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "host not reachable"
	default:
		return "no connection"
	}
}

func (r *reasons) unansweredReason(ctx context.Context, a *answer, end time.Time) string {
	bound := r.bound(ctx, end)
	switch {
	case bound == "stopped":
		return "stopped before the app had answered"
	case bound != "":
		return bound
	case isLate(a.err) && a.extended > 0:
		return "answer stalled for " + a.extended.String() + ", as the app requested"
	case isLate(a.err) && a.started:
		return r.stalled
	case isLate(a.err):
		return r.silent
	case errors.Is(a.err, errHeadTooLong):
		return "answer headers longer than 64 KiB"
	case a.head == nil && errors.Is(a.err, errGarbled):
		return "answer is not HTTP"
	case a.started:
		return "answer was cut off"
	case isClosed(a.err):
		return "connection closed without an answer"
	default:
		return "connection failed without an answer"
	}
}

func (r *reasons) statusReason(head *http.Response, run *scheduledRun) string {
	status := "HTTP " + strconv.Itoa(head.StatusCode)
	switch code := head.StatusCode; {
	case code == http.StatusSwitchingProtocols:
		return status + " (the app requires another protocol)"
	case code >= 200 && code <= 299:
		return status + " (not among the success codes)"
	case code >= 300 && code <= 399:
		return status + redirectedTo(head.Header.Get("Location")) + " (redirects are not followed)"
	case code == http.StatusUnauthorized:
		return status + " (the app requires a login)"
	case code == http.StatusForbidden:
		return status + " (refused; a CSRF or host check?)"
	case code == http.StatusNotFound && run != nil:
		return status + " (no route for the task's path)"
	case code == http.StatusMethodNotAllowed && run != nil:
		return status + " (the task's path does not accept POST)"
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		return status + " for POST " + r.path + " (http_path?)"
	case code == http.StatusRequestEntityTooLarge:
		return status + " (the message is too long for the app)"
	case code == http.StatusRequestHeaderFieldsTooLarge:
		return status + " (the attributes are too long for the app)"
	default:
		return status
	}
}

// redirectedTo omits the parts of a redirect's target that may be secret.
func redirectedTo(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	to := u.EscapedPath()
	if u.Host != "" && isHostName(u.Hostname()) {
		to = (&url.URL{Scheme: u.Scheme, Host: u.Host}).String() + to // often only the scheme or port differs
	}
	if to == "" || !isFieldValue(to) {
		return ""
	}
	if len(to) > maxLocation {
		to = to[:maxLocation] + "..."
	}
	return " to " + to
}

// retryAfter parses seconds or a date. It returns at most [queue.MaxVisibility], and 0 if the value is invalid.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	const most = queue.MaxVisibility
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(most/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), most)
}

// answerShown limits a displayed line in characters; answerExcerpt limits an excerpt in bytes.
const (
	answerShown   = 160
	answerExcerpt = 1 << 10
)

// answerHead returns the most informative line of an unsuccessful response, or "" if the body is not text: an HTML or
// XML page's message, the start of JSON, or a line of other text. excerpt is the start of the body, without HTML tags.
func answerHead(header http.Header, body []byte) (line, excerpt string) {
	if coding := header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return "", ""
	}

	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if kind == "" {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(body))
	}

	text := string(body)
	switch {
	case strings.HasSuffix(kind, "json"):
		line = printable(text)
	case kind == "text/html":
		line, text = pageText(body)
	case strings.HasSuffix(kind, "xml"):
		line, _ = pageText(body)
	case strings.HasPrefix(kind, "text/"):
		line = firstLine(text)
	default:
		return "", ""
	}

	return line, excerptBelow(line, text)
}

// excerptBelow returns the start of text, preceded by line if necessary, or "" if it adds nothing to line.
func excerptBelow(line, text string) string {
	text = strings.TrimSpace(text)
	begin := strings.TrimSpace(firstBytes(text))
	switch {
	case begin == line || line == "":
		return ""
	case firstLine(begin) == line || strings.HasPrefix(line, "{") && begin == text && json.Valid([]byte(text)):
		return begin
	}
	return firstBytes(line + "\n" + begin)
}

// firstLine returns the first line that does more than name a status, or else the first non-empty one.
func firstLine(text string) (first string) {
	for line := range strings.Lines(text) {
		line = printable(line)
		if line != "" && !namesStatus(line) {
			return line
		}
		first = cmp.Or(first, line)
	}
	return first
}

// printable truncates text to one line, normalizes white space and escapes unprintable characters.
func printable(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ") {
		n++
		if n > answerShown {
			return b.String() + "..."
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
