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
	noResponse      string
	responseStalled string
	deadlinePassed  string
	connectTimeout  time.Duration
	path            string
}

func newReasons(opts *Options) reasons {
	path, _, _ := strings.Cut(opts.Path, "?")
	return reasons{
		noResponse:      "no response within " + opts.InactivityTimeout.String(),
		responseStalled: "response stalled for " + opts.InactivityTimeout.String(),
		deadlinePassed:  "deadline of " + opts.Deadline.String() + " passed",
		connectTimeout:  opts.ConnectTimeout,
		path:            path,
	}
}

// judge returns one result for all messages of a request, except that p.failed gets those in batchItemFailures:
//
//	nothing sent, or the client
//	certificate refused               unreached
//	no response, or not HTTP          failed
//	a success with incomplete body    failed
//	Tendril-Outcome                   as instructed
//	a success                         done, unless the report of a batch is malformed
//	any other status                  failed
//
// With several messages, terminal statuses are ignored, because they could refer to any of them.
func (c *Client) judge(ctx context.Context, res *response, p *content, end time.Time) queue.Result {
	if res.head == nil || res.successCutOff {
		return c.reasons.judgeIncomplete(ctx, res, end)
	}

	result := queue.Result{Outcome: queue.Done, Status: res.head.StatusCode}
	if !res.success {
		result.Outcome = queue.Failed
		result.Reason = c.reasons.statusReason(res.head, p.run)
		result.Answer, result.Excerpt = summarize(res.head.Header, res.bodyStart[:min(len(res.bodyStart), failureRead)])
		result.RetryAfter = retryAfter(res.head.Header.Get("Retry-After"), time.Now())
	}

	switch {
	case res.instruction.verb != verbNone:
		return res.instruction.result("HTTP "+strconv.Itoa(res.head.StatusCode), result)
	case !res.success && len(p.batch) <= 1 && c.terminal.Has(result.Status):
		result.Instruction = queue.TerminalStatus
	case res.success && p.batch != nil:
		if problem := p.readFailures(res); problem != "" {
			return queue.Result{Status: result.Status, Reason: problem}
		}
	}
	return result
}

func (r *reasons) judgeIncomplete(ctx context.Context, res *response, end time.Time) queue.Result {
	switch {
	case res.head != nil:
		return queue.Result{Status: res.head.StatusCode, Reason: r.noResponseReason(ctx, res, end), Err: res.err}
	case !res.started && isRefusal(res.err):
		return queue.Result{Outcome: queue.Unreached, Reason: refusedReason, Err: res.err}
	case !res.sent:
		return queue.Result{Outcome: queue.Unreached, Reason: r.unsentReason(ctx, end), Err: res.err}
	}
	return queue.Result{Reason: r.noResponseReason(ctx, res, end), Err: res.err}
}

func (r *reasons) limitReached(ctx context.Context, end time.Time) string {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "deadline passed"
	case ctx.Err() != nil:
		return "stopped"
	case !end.IsZero() && !time.Now().Before(end):
		return r.deadlinePassed
	default:
		return ""
	}
}

func (r *reasons) unsentReason(ctx context.Context, end time.Time) string {
	if limit := r.limitReached(ctx, end); limit != "" {
		return limit + " before anything was sent"
	}
	return "connection closed before anything was sent"
}

func (r *reasons) unconnectedReason(ctx context.Context, err error, end time.Time) string {
	if r.limitReached(ctx, end) != "" {
		return r.unsentReason(ctx, end)
	}
	return connectReason(err, r.connectTimeout)
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

func (r *reasons) noResponseReason(ctx context.Context, res *response, end time.Time) string {
	switch limit := r.limitReached(ctx, end); {
	case limit == "stopped":
		return "stopped before the app had responded"
	case limit != "":
		return limit
	case isLate(res.err) && res.extended > 0:
		return "response stalled for " + res.extended.String() + ", as the app requested"
	case isLate(res.err) && res.started:
		return r.responseStalled
	case isLate(res.err):
		return r.noResponse
	case errors.Is(res.err, errHeadTooLong):
		return "response headers longer than 64 KiB"
	case res.head == nil && errors.Is(res.err, errGarbled):
		return "response is not HTTP"
	case res.started:
		return "response was cut off"
	case isClosed(res.err):
		return "connection closed without a response"
	default:
		return "connection failed without a response"
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
		return status + " for POST " + r.path + " (check http_path)"
	case code == http.StatusRequestEntityTooLarge:
		return status + " (the message is too long for the app)"
	case code == http.StatusRequestHeaderFieldsTooLarge:
		return status + " (the attributes are too long for the app)"
	default:
		return status
	}
}

// redirectedTo returns text such as " to https://example.com/login", without parts that may be secret, or "" if the
// location is invalid.
func redirectedTo(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	to := u.EscapedPath()
	if u.Host != "" && isHostName(u.Hostname()) {
		to = (&url.URL{Scheme: u.Scheme, Host: u.Host}).String() + to
	}
	if to == "" || !isFieldValue(to) {
		return ""
	}
	if len(to) > maxLocation {
		to = to[:maxLocation] + "..."
	}
	return " to " + to
}

// retryAfter parses seconds or a date, and returns at most [queue.MaxVisibility], or 0 if the value is invalid.
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

// Limits of a summary's line and excerpt.
const (
	shownCharacters = 160
	excerptBytes    = 1 << 10
)

// summarize returns the most informative line of an unsuccessful response: the message of HTML or XML, the start of
// JSON or a line of other text; "" for other bodies. excerpt is the start of the body, without HTML tags.
func summarize(header http.Header, body []byte) (line, excerpt string) {
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

func excerptBelow(line, text string) string {
	text = strings.TrimSpace(text)
	start := strings.TrimSpace(firstBytes(text))
	if start == line || line == "" {
		return ""
	}
	isWholeJSON := strings.HasPrefix(line, "{") && start == text && json.Valid([]byte(text))
	if isWholeJSON || firstLine(start) == line {
		return start
	}
	return firstBytes(line + "\n" + start)
}

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

func printable(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ") {
		n++
		if n > shownCharacters {
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
