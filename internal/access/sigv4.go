package access

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	terminator = "aws4_request"
	timeLayout = "20060102T150405Z"
	// maxSkew is how far the time of a signature may differ from this machine's clock.
	maxSkew = 15 * time.Minute
	// maxExpires is the maximum validity of a presigned request: seven days, in seconds.
	maxExpires = 7 * 24 * 60 * 60
)

// signature holds the parameters described in the IAM User Guide, "AWS Signature Version 4 for API requests".
type signature struct {
	keyID, day, region, service string
	signed                      []string // in lower case
	sum                         string   // hexadecimal
	date                        time.Time
	expires                     time.Duration // of a presigned request; 0 for a signature in a header
	token                       string
}

func readSignature(r *http.Request) (s signature, ok bool) {
	header, query := r.Header.Get("Authorization"), r.URL.Query()
	switch {
	case header != "" && !query.Has("X-Amz-Signature"):
		s, ok = readHeader(r, header)
	case header == "" && query.Has("X-Amz-Signature"):
		s, ok = readQuery(query)
	}
	return s, ok && s.day == s.date.Format("20060102") && slices.Contains(s.signed, "host")
}

func readHeader(r *http.Request, header string) (s signature, ok bool) {
	rest, ok := strings.CutPrefix(header, algorithm+" ")
	if !ok {
		return s, false
	}

	fields := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[name] = value
	}

	if s.date, ok = headerDate(r.Header); !ok {
		return s, false
	}
	s.sum = fields["Signature"]
	s.signed = strings.Split(fields["SignedHeaders"], ";")
	s.token = r.Header.Get("X-Amz-Security-Token")
	ok = s.parseCredential(fields["Credential"])
	return s, ok
}

func headerDate(header http.Header) (time.Time, bool) {
	if date := header.Get("X-Amz-Date"); date != "" {
		return parseDate(date)
	}
	date, err := http.ParseTime(header.Get("Date"))
	return date.UTC(), err == nil
}

func readQuery(query url.Values) (s signature, ok bool) {
	expires, err := strconv.Atoi(query.Get("X-Amz-Expires"))
	if err != nil || expires <= 0 || expires > maxExpires || query.Get("X-Amz-Algorithm") != algorithm {
		return s, false
	}
	if s.date, ok = parseDate(query.Get("X-Amz-Date")); !ok {
		return s, false
	}
	s.sum = query.Get("X-Amz-Signature")
	s.token = query.Get("X-Amz-Security-Token")
	s.signed = strings.Split(query.Get("X-Amz-SignedHeaders"), ";")
	s.expires = time.Duration(expires) * time.Second
	ok = s.parseCredential(query.Get("X-Amz-Credential"))
	return s, ok
}

func parseDate(text string) (time.Time, bool) {
	date, err := time.Parse(timeLayout, text)
	return date, err == nil
}

func (s *signature) parseCredential(credential string) bool {
	parts := strings.Split(credential, "/")
	if len(parts) != 5 || parts[4] != terminator {
		return false
	}
	s.keyID = parts[0]
	s.day = parts[1]
	s.region = parts[2]
	s.service = parts[3]
	return true
}

func (s *signature) isCurrent(now time.Time) bool {
	age := now.Sub(s.date)
	if s.expires > 0 {
		return age >= -maxSkew && age <= s.expires
	}
	return age.Abs() <= maxSkew
}

// X-Amz headers must be signed, because they change the meaning of a request.
func (s *signature) covers(header http.Header) bool {
	for name := range header {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "x-amz-") && !slices.Contains(s.signed, lower) {
			return false
		}
	}
	return true
}

func (s *signature) expected(r *http.Request, bodySum, secret string) string {
	scope := []string{s.day, s.region, s.service, terminator}
	text := strings.Join([]string{algorithm, s.date.Format(timeLayout), strings.Join(scope, "/"),
		hexSum([]byte(s.canonicalRequest(r, bodySum)))}, "\n")

	key := []byte("AWS4" + secret)
	for _, part := range scope {
		key = hmacOf(key, part)
	}
	return hex.EncodeToString(hmacOf(key, text))
}

func hmacOf(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func (s *signature) canonicalRequest(r *http.Request, bodySum string) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n" + canonicalPath(r.URL.EscapedPath()) + "\n" + canonicalQuery(r.URL.RawQuery) + "\n")
	for _, name := range s.signed {
		b.WriteString(name + ":" + canonicalHeader(r, name) + "\n")
	}
	b.WriteString("\n" + strings.Join(s.signed, ";") + "\n" + bodySum)
	return b.String()
}

// canonicalPath resolves dot segments and encodes the path a second time, as all services except S3 require.
func canonicalPath(escaped string) string {
	var kept []string
	for segment := range strings.SplitSeq(escaped, "/") {
		switch segment {
		case "", ".":
		case "..":
			kept = kept[:max(len(kept)-1, 0)]
		default:
			kept = append(kept, escape(segment))
		}
	}

	path := "/" + strings.Join(kept, "/")
	if len(kept) > 0 && strings.HasSuffix(escaped, "/") {
		path += "/"
	}
	return path
}

func canonicalQuery(raw string) string {
	type parameter struct{ name, value string }
	var all []parameter
	for part := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(part, "=")
		name, value = unescapeQuery(name), unescapeQuery(value)
		if part != "" && name != "X-Amz-Signature" {
			all = append(all, parameter{escape(name), escape(value)})
		}
	}

	slices.SortFunc(all, func(a, b parameter) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.value, b.value))
	})
	pairs := make([]string, len(all))
	for i, p := range all {
		pairs[i] = p.name + "=" + p.value
	}
	return strings.Join(pairs, "&")
}

// unescapeQuery keeps malformed text unchanged, so that it is signed too.
func unescapeQuery(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// Go stores three of the headers outside r.Header.
func canonicalHeader(r *http.Request, name string) string {
	values := r.Header.Values(name)
	switch name {
	case "host":
		values = []string{r.Host}
	case "content-length":
		values = []string{strconv.FormatInt(max(r.ContentLength, 0), 10)}
	case "transfer-encoding":
		values = r.TransferEncoding
	}

	folded := make([]string, len(values))
	for i, value := range values {
		folded[i] = strings.Join(strings.Fields(value), " ")
	}
	return strings.Join(folded, ",")
}

func escape(text string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

func equalSecrets(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func hexSum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}
