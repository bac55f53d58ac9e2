package deliver

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// exchangeBody is the maximum size of the response body in an [Exchange].
const exchangeBody = 16 << 10

// Exchange is one POST and its response as sent, except that header values that may contain secrets are hidden.
type Exchange struct {
	// Head is the request line and headers, without line ends; Body is the request body.
	Head []string
	Body string
	// Answer is the status line and sorted headers of the response, nil without a response. AnswerBody is the first
	// 16 KiB of its body.
	Answer     []string
	AnswerBody string
	Began      time.Time
	Duration   time.Duration
	// Err is why the response is missing or incomplete, otherwise nil.
	Err error
}

// newExchange copies the exchange before the connection is reused.
func newExchange(r *request, a *answer) *Exchange {
	head := strings.TrimSuffix(string(r.head), "\r\n\r\n")
	x := &Exchange{Head: maskHeaders(strings.Split(head, "\r\n")), Body: r.body, Began: r.began,
		Duration: time.Since(r.began), Err: a.err}
	if a.head != nil {
		x.Answer = append([]string{a.head.Proto + " " + strings.TrimSpace(a.head.Status)}, answerHeaders(a.head)...)
		x.AnswerBody = string(a.first[:min(len(a.first), exchangeBody)])
	}
	return x
}

// answerHeaders returns the response headers, including those removed by the parser.
func answerHeaders(head *http.Response) (lines []string) {
	all := head.Header.Clone()
	if head.Close {
		all.Set("Connection", "close")
	}
	if len(head.TransferEncoding) > 0 {
		all["Transfer-Encoding"] = head.TransferEncoding
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, value := range all[name] {
			lines = append(lines, name+": "+value)
		}
	}
	return maskHeaders(lines)
}

// secretWords are parts of header names that indicate a secret value.
var secretWords = []string{"authorization", "cookie", "secret", "token", "signature", "password", "api-key", "apikey"}

func maskHeaders(lines []string) []string {
	for i, line := range lines {
		name, _, found := strings.Cut(line, ":")
		lower := strings.ToLower(name)
		for _, word := range secretWords {
			if found && strings.Contains(lower, word) {
				lines[i] = name + ": (hidden)"
			}
		}
	}
	return lines
}
