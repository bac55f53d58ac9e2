package deliver

import (
	"bytes"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode"
)

const (
	// answerRead is how many bytes of an answer that is no success are looked at,
	// answerShown how many characters of them are shown.
	answerRead  = 2 << 10
	answerShown = 160
)

// answerHead returns what an answer that is no success says first, on one line
// of printable text: the title of a page, the begin of JSON, the first line of any
// other text; "" for what is no text.
func answerHead(header http.Header, body []byte) string {
	if coding := header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return ""
	}
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if kind == "" {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(body))
	}
	switch {
	case kind == "text/html":
		return printable(title(body))
	case strings.HasSuffix(kind, "json"):
		return printable(string(body))
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "xml"):
		return firstLine(string(body))
	}
	return ""
}

// title returns the title of a page, as it is written.
func title(page []byte) string {
	lower := bytes.ToLower(page)
	_, after, found := bytes.Cut(lower, []byte("<title"))
	start := bytes.IndexByte(after, '>') + 1
	if !found || start == 0 || len(lower) != len(page) {
		return ""
	}
	end := bytes.Index(after[start:], []byte("</title"))
	if end < 0 {
		return ""
	}
	start += len(page) - len(after)
	return string(page[start : start+end])
}

// firstLine returns the first line of a text that is not blank.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return printable(line)
}

// printable returns the begin of a text with white space as single blanks and
// everything else that is not printed escaped.
func printable(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ") {
		if n++; n > answerShown {
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
