package deliver

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

const exchangeBody = 16 << 10

// Exchange is a POST request and its response. Header values that may be secret are masked.
type Exchange struct {
	// Head has the request line and headers, without line breaks.
	Head []string
	Body string
	// Answer is the response's status line and sorted headers, or nil. AnswerBody is truncated to 16 KiB.
	Answer     []string
	AnswerBody string
	Began      time.Time
	Duration   time.Duration
	// Err is the reason why the response is missing or why the body of a success is incomplete.
	Err error
}

// recorded returns a protocol that keeps what an [Exchange] shows.
func (p protocol) recorded() *protocol {
	p.keepBytes = max(p.keepBytes, exchangeBody)
	p.needHeaders = true
	return &p
}

func newExchange(r *request, a *response) *Exchange {
	head := strings.TrimSuffix(string(r.head), "\r\n\r\n")
	x := &Exchange{Head: maskHeaders(strings.Split(head, "\r\n")), Body: r.body, Began: r.began,
		Duration: time.Since(r.began), Err: a.err}
	if a.head != nil {
		x.Answer = append([]string{a.head.Proto + " " + strings.TrimSpace(a.head.Status)}, responseHeaders(a.head)...)
		x.AnswerBody = string(a.bodyStart[:min(len(a.bodyStart), exchangeBody)])
	}
	return x
}

func responseHeaders(head *http.Response) (lines []string) {
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
