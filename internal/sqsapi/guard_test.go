package sqsapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestGuardHosts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		host string
		want bool
	}{
		{"localhost", true},
		{"localhost:9324", true},
		{"LOCALHOST:1", true},
		{"localhost.:9324", true},
		{"127.0.0.1", true},
		{"127.0.0.1:9324", true},
		{"127.9.8.7:80", true},
		{"[::1]", true},
		{"[::1]:9324", true},
		{"[::ffff:127.0.0.1]:9324", true},

		{"queue.example", false},
		{"", false},
		{":9324", false},
		{"evil.example", false},
		{"evil.example:9324", false},
		{"localhost.evil.example", false},
		{"127.0.0.1.evil.example:9324", false},
		{"evil.localhost", false},
		{"0.0.0.0:9324", false},
		{"0:9324", false},
		{"2130706433", false},
		{"0x7f.1", false},
		{"127.1", false},
		{"10.0.0.1:9324", false},
		{"169.254.169.254", false},
		{"[::]:9324", false},
		{"[::1%25lo]:9324", false},
		{"[fe80::1]:9324", false},
		{"localhost:http", false},
		{"localhost:1:2", false},
		{"user@localhost", false},
		{"localhost/..", false},
		{"localhost..", false},
	}
	for _, test := range tests {
		if got := isLoopback(test.host); got != test.want {
			t.Errorf("isLoopback(%q) = %v, want %v", test.host, got, test.want)
		}
	}
}

var browserAttacks = []struct {
	name    string
	method  string
	target  string
	host    string
	headers map[string]string
}{
	{"script of another site", "POST", "/", "127.0.0.1:9324",
		map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}},
	{"script without CORS", "POST", "/", "127.0.0.1:9324",
		map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Mode": "no-cors", "Content-Type": "text/plain"}},
	{"form of another site", "POST", "/?Action=DeleteQueue", "127.0.0.1:9324",
		map[string]string{"Origin": "https://evil.example", "Content-Type": "application/x-www-form-urlencoded"}},
	{"form in a sandbox", "POST", "/", "127.0.0.1:9324",
		map[string]string{"Origin": "null", "Content-Type": "application/x-www-form-urlencoded"}},
	{"empty origin", "POST", "/", "127.0.0.1:9324", map[string]string{"Origin": ""}},
	{"origin of this machine", "POST", "/", "localhost:9324", map[string]string{"Origin": "http://localhost:9324"}},
	{"image", "GET", "/000000000000/jobs?Action=PurgeQueue", "127.0.0.1:9324",
		map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"}},
	{"image in an old browser", "GET", "/000000000000/jobs?Action=PurgeQueue", "127.0.0.1:9324",
		map[string]string{"Referer": "https://evil.example/"}},
	{"link", "GET", "/?Action=DeleteQueue", "localhost:9324",
		map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-User": "?1"}},
	{"address bar", "GET", "/", "localhost:9324", map[string]string{"Sec-Fetch-Site": "none"}},
	{"client hint alone", "GET", "/", "localhost:9324", map[string]string{"Sec-Ch-Ua": `"Chromium"`}},
	{"form without a referrer, to a host that is not loopback", "POST", "/?Action=DeleteQueue", "queue.example:9324",
		map[string]string{"Accept-Language": "en", "Content-Type": "application/x-www-form-urlencoded"}},
	{"image without a referrer, to a host that is not loopback", "GET", "/000000000000/jobs?Action=PurgeQueue",
		"queue.example:9324", map[string]string{"Accept-Language": "de-CH,de;q=0.9"}},
	{"form of a page that sets its language, to a host that is not loopback", "POST", "/?Action=DeleteQueue",
		"queue.example:9324", map[string]string{"Accept-Language": "*"}},
	{"script that sets its language", "POST", "/?Action=DeleteQueue", "127.0.0.1:9324",
		map[string]string{"Accept-Language": "*", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "cross-site"}},
	{"mode and destination", "GET", "/?Action=DeleteQueue", "127.0.0.1:9324",
		map[string]string{"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}},
	{"mode and a person's language", "GET", "/?Action=DeleteQueue", "127.0.0.1:9324",
		map[string]string{"Sec-Fetch-Mode": "cors", "Accept-Language": "en"}},
	{"mode and referrer", "GET", "/?Action=DeleteQueue", "127.0.0.1:9324",
		map[string]string{"Sec-Fetch-Mode": "cors", "Referer": "https://evil.example/"}},
	{"mode of no script", "POST", "/?Action=DeleteQueue", "127.0.0.1:9324",
		map[string]string{"Sec-Fetch-Mode": "no-cors", "Accept-Language": "*"}},
	{"rebound name with the headers of Node's fetch", "POST", "/?Action=DeleteQueue", "evil.example:9324",
		map[string]string{"Sec-Fetch-Mode": "cors", "Accept-Language": "*"}},
	{"preflight", "OPTIONS", "/", "127.0.0.1:9324",
		map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "POST",
			"Access-Control-Request-Headers": "x-amz-target"}},
	{"preflight of a private network", "OPTIONS", "/", "127.0.0.1:9324",
		map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Private-Network": "true"}},
	{"WebSocket", "GET", "/", "127.0.0.1:9324",
		map[string]string{"Origin": "https://evil.example", "Upgrade": "websocket", "Connection": "Upgrade",
			"Sec-Websocket-Key": "x"}},
	{"rebound name", "POST", "/", "evil.example:9324",
		map[string]string{"Origin": "http://evil.example:9324", "Sec-Fetch-Site": "same-origin"}},
	{"rebound name, no other trace", "POST", "/", "evil.example:9324", nil},
	{"rebound name, GET", "GET", "/?Action=ListQueues", "evil.example:9324", nil},
	{"address that means this host", "POST", "/", "0.0.0.0:9324", map[string]string{"Origin": "https://evil.example"}},
	{"address that means this host, no other trace", "POST", "/", "0.0.0.0:9324", nil},
}

func TestBrowserAttacksAreRefused(t *testing.T) {
	t.Parallel()
	for _, attack := range browserAttacks {
		for _, sdk := range []string{"", "AmazonSQS.PurgeQueue"} {
			if sdk != "" && attack.headers["Accept-Language"] != "" {
				continue // scripts need a preflight to set X-Amz-Target
			}
			t.Run(attack.name+" "+sdk, func(t *testing.T) {
				t.Parallel()
				// Without a broker, a request that reaches an action panics.
				h := &Handler{actions: actions()}
				body := `{"QueueUrl":"jobs"}`
				if sdk == "" {
					body = "Action=PurgeQueue&QueueUrl=jobs"
				}
				r := httptest.NewRequest(attack.method, attack.target, strings.NewReader(body))
				r.Host = attack.host
				for name, value := range attack.headers {
					r.Header.Set(name, value)
				}
				if sdk != "" {
					r.Header.Set("X-Amz-Target", sdk)
				}
				w := serve(h, r)
				checkRefusal(t, w, sdk != "")
			})
		}
	}
}

func TestNodeFetchIsAccepted(t *testing.T) {
	t.Parallel()
	h := &Handler{}
	for _, language := range []string{"", "*"} {
		r := httptest.NewRequest("POST", "http://127.0.0.1:9324/", strings.NewReader("Action=ListQueues"))
		r.Header.Set("Sec-Fetch-Mode", "cors")
		if language != "" {
			r.Header.Set("Accept-Language", language)
		}
		if err := h.rejectBrowser(r); err != nil {
			t.Errorf("language %q: %v", language, err)
		}
	}
}

func checkRefusal(t *testing.T, w *httptest.ResponseRecorder, inJSON bool) {
	t.Helper()
	if w.Code != http.StatusForbidden {
		t.Errorf("status %d, want 403", w.Code)
	}
	body := w.Body.String()
	code, inHeader := "<Code>AccessDenied</Code>", ""
	if inJSON {
		code, inHeader = `{"__type":"com.amazonaws.sqs#AccessDenied"`, "AccessDenied;Sender"
	}
	if !strings.Contains(body, code) ||
		!strings.Contains(body, "browsers add") && !strings.Contains(body, "rejects requests for the host") {
		t.Errorf("the answer does not say why: %s", body)
	}
	if got := w.Header().Get("X-Amzn-Query-Error"); got != inHeader {
		t.Errorf("x-amzn-query-error %q", got)
	}
	for name := range w.Header() {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("the answer carries %s", name)
		}
	}
}

func TestProgramsAreAccepted(t *testing.T) {
	t.Parallel()
	headers := map[string]string{
		"User-Agent": "aws-sdk-go-v2/1.47.6", "Authorization": "AWS4-HMAC-SHA256 Credential=x",
		"X-Amz-Date":      "20260101T000000Z",
		"Amz-Sdk-Request": "attempt=1; max=3", "X-Amzn-Query-Mode": "true", "Content-Type": jsonType,
		"X-Forwarded-For": "127.0.0.1",
	}
	for _, host := range []string{"127.0.0.1:9324", "localhost:9324", "[::1]:9324"} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Host = host
		for name, value := range headers {
			r.Header.Set(name, value)
		}
		if err := new(Handler).rejectBrowser(r); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestRejectedHostsAreQuoted(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Host = "evil\"\x1b" + strings.Repeat("x", 1000)
	err := new(Handler).rejectBrowser(r)
	if err == nil || len(err.Error()) > 400 || strings.ContainsAny(err.Error(), "\x1b") {
		t.Errorf("rejectBrowser = %v", err)
	}
}
