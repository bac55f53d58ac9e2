package deliver

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// exchangeBody is how many bytes of an answer's body an [Exchange] has at most.
const exchangeBody = 16 << 10

// Exchange is one POST and its answer as they were sent, but for the values of headers that may hold a secret.
type Exchange struct {
	// Head is the request line and the headers, each line without its end; Body is what follows.
	Head []string
	Body string
	// Answer is the status line and the headers of the answer, sorted; nil without one. AnswerBody is the first 16 KiB
	// of its body.
	Answer     []string
	AnswerBody string
	Began      time.Time
	Duration   time.Duration
	// Err is why there is no whole answer; nil where there is.
	Err error
}

// newExchange copies what happened, before the connection is used again.
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

// answerHeaders are the headers of an answer, with those that its parser took out.
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

// secretWords are parts of the names of headers whose values are not shown.
var secretWords = []string{"authorization", "cookie", "secret", "token", "signature", "password", "api-key", "apikey"}

// maskHeaders hides the values of headers that may hold a secret.
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
