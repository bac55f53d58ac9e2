package access

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"
)

// exampleSecret is the secret key in the AWS documentation.
const exampleSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

func parseRequest(t testing.TB, head, body string) *http.Request {
	t.Helper()
	text := strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n" + body
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The requests and signatures are from AWS's Signature Version 4 documentation and test suite.
func TestSignaturesOfAmazonsExamples(t *testing.T) {
	t.Parallel()
	const scope = "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/"
	const dated = "service/aws4_request, SignedHeaders=host;x-amz-date, Signature=0"
	const host = "\nHost: example.amazonaws.com\nX-Amz-Date: 20150830T123600Z\n"
	for name, c := range map[string]struct{ head, body, want string }{
		"the guide's, in headers": {"GET /?Action=ListUsers&Version=2010-05-08 HTTP/1.1\nHost: iam.amazonaws.com\n" +
			"Content-Type: application/x-www-form-urlencoded; charset=utf-8\nX-Amz-Date: 20150830T123600Z\n" +
			scope + "iam/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=00", "",
			"5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"},
		"the guide's, in the query": {"GET /?Action=ListUsers&Version=2010-05-08&X-Amz-Algorithm=AWS4-HMAC-SHA256&" +
			"X-Amz-Credential=AKIDEXAMPLE%2F20150830%2Fus-east-1%2Fiam%2Faws4_request&X-Amz-Date=20150830T123600Z&" +
			"X-Amz-Expires=60&X-Amz-SignedHeaders=content-type%3Bhost&X-Amz-Signature=00 HTTP/1.1\n" +
			"Host: iam.amazonaws.com\nContent-Type: application/x-www-form-urlencoded; charset=utf-8", "",
			"37ac2f4fde00b0ac9bd9eadeb459b1bbee224158d66e7ae5fcadb70b2d181d02"},
		"get-vanilla": {"GET / HTTP/1.1" + host + scope + dated, "",
			"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"get-vanilla-query-order-key-case": {"GET /?Param2=value2&Param1=value1 HTTP/1.1" + host + scope + dated, "",
			"b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		"get-header-value-trim": {"GET / HTTP/1.1\nHost: example.amazonaws.com\nMy-Header1:  value1\n" +
			"My-Header2:  \"a   b   c\"\nX-Amz-Date: 20150830T123600Z\n" + scope +
			"service/aws4_request, SignedHeaders=host;my-header1;my-header2;x-amz-date, Signature=0", "",
			"acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
		"post-vanilla": {"POST / HTTP/1.1" + host + scope + dated,
			"", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		"post-x-www-form-urlencoded": {"POST / HTTP/1.1\nContent-Type: application/x-www-form-urlencoded" + host + scope +
			"service/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=0", "Param1=value1",
			"ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := parseRequest(t, c.head, c.body)
			s, ok := readSignature(r)
			if got := s.expected(r, hexSum([]byte(c.body)), exampleSecret); !ok || got != c.want {
				t.Errorf("signature %s (well formed: %t), want %s", got, ok, c.want)
			}
		})
	}
}

func TestCanonicalPath(t *testing.T) {
	t.Parallel()
	for escaped, want := range map[string]string{
		"": "/", "/": "/", "//": "/", "/./a": "/a", "/a/..": "/", "/a/../b/": "/b/", "/../x": "/x",
		"/000000000000/jobs": "/000000000000/jobs", "/%E1%88%B4": "/%25E1%2588%25B4", "/a%20b": "/a%2520b",
	} {
		if got := canonicalPath(escaped); got != want {
			t.Errorf("%q: %q, want %q", escaped, got, want)
		}
	}
}

func testKeyring(now time.Time, pairs ...KeyPair) *Keyring {
	k := &Keyring{now: func() time.Time { return now }, checked: now}
	k.setPairs(pairs)
	return k
}

func sign(r *http.Request, body string, p KeyPair, at time.Time, signed ...string) {
	r.Header.Set("X-Amz-Date", at.Format(timeLayout))
	if p.SessionToken != "" {
		r.Header.Set("X-Amz-Security-Token", string(p.SessionToken))
		signed = append(signed, "x-amz-security-token")
	}
	s := signature{keyID: p.AccessKeyID, day: at.Format("20060102"), region: "us-east-1", service: "sqs", date: at,
		signed: append([]string{"host", "x-amz-date"}, signed...)}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+p.AccessKeyID+"/"+s.day+"/us-east-1/sqs/aws4_request, "+
		"SignedHeaders="+strings.Join(s.signed, ";")+", Signature="+
		s.expected(r, hexSum([]byte(body)), string(p.SecretAccessKey)))
}

// Each case changes one thing in a correctly signed request.
func TestVerify(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	pair := KeyPair{Name: "web", AccessKeyID: "TNDL1", SecretAccessKey: "0123456789abcdef", Allow: AllowAll}
	session := KeyPair{Name: "job", AccessKeyID: "TNDL2", SecretAccessKey: "0123456789abcdeg", SessionToken: "token",
		Allow: AllowAll, Expires: now.Add(time.Minute)}
	ring := testKeyring(now, pair, session)
	const body = `{"QueueUrl":"x"}`
	request := func(p KeyPair, at time.Time, signed ...string) *http.Request {
		r := parseRequest(t, "POST /000000000000/jobs HTTP/1.1\nHost: queue.internal:9324\nX-Amz-Target: AmazonSQS.X", "")
		sign(r, body, p, at, signed...)
		return r
	}
	const target = "x-amz-target"
	good := func() *http.Request { return request(pair, now, target) }
	// Claims accepts these requests; only Verify, which has the body, detects that they are not validly signed.
	bodyDecides := map[string]bool{"another secret": true, "another host": true, "another path": true,
		"another query": true, "another method": true, "another target": true, "an unsigned payload": true}
	for name, c := range map[string]struct {
		r  *http.Request
		ok bool
	}{
		"signed":                     {good(), true},
		"almost 15 minutes old":      {request(pair, now.Add(-899*time.Second), target), true},
		"15 minutes ahead":           {request(pair, now.Add(15*time.Minute), target), true},
		"more than 15 minutes old":   {request(pair, now.Add(-901*time.Second), target), false},
		"more than 15 minutes ahead": {request(pair, now.Add(901*time.Second), target), false},
		"with its session token":     {request(session, now, target), true},
		"target not signed":          {request(pair, now), false},
		"another key id": {request(KeyPair{AccessKeyID: "TNDL3", SecretAccessKey: pair.SecretAccessKey}, now, target),
			false},
		"another secret": {request(KeyPair{AccessKeyID: "TNDL1", SecretAccessKey: "fedcba9876543210"}, now, target), false},
		"another session token": {request(KeyPair{AccessKeyID: "TNDL2", SecretAccessKey: session.SecretAccessKey,
			SessionToken: "nekot"}, now, target), false},
		"no session token": {request(KeyPair{AccessKeyID: "TNDL2", SecretAccessKey: session.SecretAccessKey}, now, target),
			false},
		"a token that the pair does not have": {request(KeyPair{AccessKeyID: "TNDL1", SecretAccessKey: pair.SecretAccessKey,
			SessionToken: "token"}, now, target), false},
		"without Authorization": {change(good(), func(r *http.Request) { r.Header.Del("Authorization") }), false},
		"another host":          {change(good(), func(r *http.Request) { r.Host = "other:9324" }), false},
		"another path":          {change(good(), func(r *http.Request) { r.URL.Path = "/000000000000/other" }), false},
		"another query":         {change(good(), func(r *http.Request) { r.URL.RawQuery = "Action=DeleteQueue" }), false},
		"another method":        {change(good(), func(r *http.Request) { r.Method = "PUT" }), false},
		"another target": {change(good(), func(r *http.Request) { r.Header.Set("X-Amz-Target", "AmazonSQS.Y") }),
			false},
		"two signatures": {change(good(), func(r *http.Request) { r.URL.RawQuery = "X-Amz-Signature=1" }), false},
		"an unsigned payload": {change(good(), func(r *http.Request) {
			r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
			sign(r, body, pair, now, target, "x-amz-content-sha256")
		}), false},
		"the digest of the body": {change(good(), func(r *http.Request) {
			r.Header.Set("X-Amz-Content-Sha256", hexSum([]byte(body)))
			sign(r, body, pair, now, target, "x-amz-content-sha256")
		}), true},
		"another service": {change(good(), func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "/sqs/", "/sns/", 1))
		}), false},
		"another algorithm": {change(good(), func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "HMAC", "ECDSA", 1))
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caller, err := ring.Verify(c.r, []byte(body))
			if c.ok != (err == nil) || err != nil && err != error(errRefused) {
				t.Errorf("got %v, want accepted: %t", err, c.ok)
			}
			if c.ok != (caller != nil && caller.Name != "") {
				t.Errorf("caller %+v", caller)
			}
			if claims := c.ok || bodyDecides[name]; ring.Claims(c.r) != claims {
				t.Errorf("the header alone is acceptable: %t, want %t", !claims, claims)
			}
		})
	}
	if _, err := ring.Verify(good(), []byte(body+" ")); err == nil {
		t.Error("another body is accepted")
	}
	later := testKeyring(now.Add(2*time.Minute), session)
	if _, err := later.Verify(request(session, now, target), []byte(body)); err == nil {
		t.Error("a pair that has expired is accepted")
	}
}

func change(r *http.Request, how func(*http.Request)) *http.Request {
	how(r)
	return r
}

func TestSignatureInTheQueryExpires(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	pair := KeyPair{Name: "web", AccessKeyID: "TNDL1", SecretAccessKey: "0123456789abcdef", Allow: AllowAll}
	presigned := func(expires string) *http.Request {
		query := "Action=ListQueues&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=TNDL1%2F20261123%2Feu-west-1%2Fsqs%2F" +
			"aws4_request&X-Amz-Date=20261123T120000Z&X-Amz-Expires=" + expires + "&X-Amz-SignedHeaders=host"
		r := parseRequest(t, "GET /?"+query+"&X-Amz-Signature=00 HTTP/1.1\nHost: queue.internal:9324", "")
		s, _ := readSignature(r)
		r.URL.RawQuery = query + "&X-Amz-Signature=" + s.expected(r, hexSum(nil), string(pair.SecretAccessKey))
		return r
	}
	for name, c := range map[string]struct {
		expires string
		after   time.Duration
		ok      bool
	}{
		"at once":            {"3600", 0, true},
		"at its end":         {"3600", time.Hour, true},
		"after its end":      {"3600", time.Hour + time.Second, false},
		"from the future":    {"3600", -16 * time.Minute, false},
		"for a week":         {"604800", 6 * 24 * time.Hour, true},
		"longer than a week": {"604801", 0, false},
		"for no time":        {"0", 0, false},
		"for no number":      {"x", 0, false},
	} {
		_, err := testKeyring(at.Add(c.after), pair).Verify(presigned(c.expires), nil)
		if c.ok != (err == nil) {
			t.Errorf("%s: %v, want accepted: %t", name, err, c.ok)
		}
	}
}

func TestEveryParameterIsSigned(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	pair := KeyPair{Name: "web", AccessKeyID: "TNDL1", SecretAccessKey: "0123456789abcdef", Allow: AllowAll}
	ring := testKeyring(now, pair)
	for added, ok := range map[string]bool{"": true, "&": true, "&Action=PurgeQueue": false,
		"&Action=Purge%zzQueue": false, "&%zz": false, "&x": false, "&Action;b=c": false} {
		r := parseRequest(t, "GET /000000000000/jobs?Action=ListQueues HTTP/1.1\nHost: queue.internal", "")
		sign(r, "", pair, now)
		r.URL.RawQuery += added
		if _, err := ring.Verify(r, nil); ok != (err == nil) {
			t.Errorf("with %q added: %v", added, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	now := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	ring := testKeyring(now, KeyPair{Name: "web", AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: Secret(randomKey(30)),
		Allow: AllowAll})
	f.Add("GET", "/", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/sqs/aws4_request, SignedHeaders=host, "+
		"Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31", "20150830T123600Z", "")
	f.Add("POST", "/a/b/../c?X-Amz-Signature=0&X-Amz-Expires=5&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-SignedHeaders=host&"+
		"X-Amz-Date=20150830T123600Z&X-Amz-Credential=AKIDEXAMPLE%2F20150830%2Fus-east-1%2Fsqs%2Faws4_request", "", "", "x")
	f.Fuzz(func(t *testing.T, method, target, authorization, date, body string) {
		r, err := http.NewRequest(method, "http://queue.internal"+target, strings.NewReader(body))
		if err != nil {
			return
		}
		r.Header.Set("X-Amz-Date", date)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		if caller, err := ring.Verify(r, []byte(body)); err == nil || caller != nil {
			t.Errorf("accepted as %+v", caller)
		}
	})
}
