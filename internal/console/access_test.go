package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
	"tendril/broker"
	"tendril/queue"
)

func TestReadOnlyRefusesEveryAct(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken, Access: Access{ReadOnly: true}, Drain: func(context.Context) error { return nil }})
	for _, rt := range s.routes() {
		method, path := example(rt.pattern)
		r := post(path, "{}")
		r.Method = method
		code, body := exchange(t, s, r)
		refused := code == 403 && strings.Contains(fmt.Sprint(body["error"]), "read-only")
		if refused != (rt.kind.acts() && rt.kind != own) {
			t.Errorf("%s answered %d %v", rt.pattern, code, body)
		}
	}
}

func TestClearTextNeedsATrustedProxy(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}
	s := New(&Options{Token: testToken, Access: Access{TrustedProxies: trusted}})
	insecure := New(&Options{Token: testToken, Access: Access{TrustedProxies: trusted, ClearText: true}})
	for name, c := range map[string]struct {
		remote, proto  string
		want, wantOpen int
	}{
		"a program of this machine":           {"127.0.0.1:5", "", 409, 200},
		"a proxy of this machine that is not": {"127.0.0.1:5", "https", 403, 200},
		"the proxy, for HTTPS":                {"10.0.0.7:5", "https", 409, 200},
		"the proxy, in IPv6":                  {"[::ffff:10.0.0.7]:5", "https", 409, 200},
		"the proxy, for HTTP":                 {"10.0.0.7:5", "http", 403, 200},
		"the proxy, which does not tell":      {"10.0.0.7:5", "", 403, 200},
		"another machine":                     {"10.0.1.7:5", "", 403, 200},
		"another machine that claims HTTPS":   {"10.0.1.7:5", "https", 403, 200},
		"nobody knows who":                    {"", "https", 403, 200},
	} {
		ask := func(s *Server, path string) (int, map[string]any) {
			r := with(get(path), "Authorization", "Bearer "+testToken)
			r.RemoteAddr = c.remote
			if c.proto != "" {
				r.Header.Set("X-Forwarded-Proto", c.proto)
			}
			return exchange(t, s, r)
		}
		if code, body := ask(s, "/api/v1/environment"); code != c.want {
			t.Errorf("%s: %d %v, want %d", name, code, body, c.want)
		}
		if code, body := ask(s, "/livez"); code != c.wantOpen {
			t.Errorf("%s: a probe is answered %d %v", name, code, body)
		}
		if code, body := ask(insecure, "/api/v1/environment"); code != 409 {
			t.Errorf("%s, with clear text allowed: %d %v", name, code, body)
		}
	}
	edit := func(remote string) func(*http.Request) {
		return func(r *http.Request) {
			r.RemoteAddr = remote
			r.Header.Set("X-Forwarded-Proto", "https")
		}
	}
	link := s.Login()
	if answer := follow(s, link, edit("10.0.1.7:5")); answer.StatusCode != 403 {
		t.Errorf("a link followed in clear text answered %d", answer.StatusCode)
	}
	c := follow(s, link, edit("10.0.0.7:5")).Cookies()[0]
	if !c.Secure || !strings.HasPrefix(c.Name, "__Host-") {
		t.Errorf("by the proxy the cookie is %v", c)
	}
}

func TestSenderBehindATrustedProxyIsNamed(t *testing.T) {
	t.Parallel()
	s := New(&Options{Access: Access{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.7/32")}}})
	for _, c := range []struct{ remote, forwarded, want string }{
		{"10.0.0.7:5", "", "10.0.0.7:5"},
		{"10.0.0.7:5", "192.0.2.1", "192.0.2.1"},
		{"10.0.0.7:5", "1.1.1.1, 192.0.2.1", "192.0.2.1"},
		{"10.0.0.7:5", "192.0.2.1, <script>", "10.0.0.7:5"},
		{"10.0.0.8:5", "192.0.2.1", "10.0.0.8:5"},
	} {
		r := get("/")
		r.RemoteAddr = c.remote
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := s.senderOf(r); got != c.want {
			t.Errorf("%v: %s", c, got)
		}
	}
}

func filled(t *testing.T, access Access) (opts *Options, id string) {
	t.Helper()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if err := b.CreateQueue(t.Context(), "jobs", nil, nil); err != nil {
		t.Fatal(err)
	}
	sent, err := b.Queue("jobs").Send(t.Context(), []queue.Outgoing{{Body: "plum",
		Attributes: []queue.Attribute{{Name: "who", Type: "String", Value: "ann"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return &Options{Token: testToken, Broker: b, Access: access}, sent[0].ID
}

func TestBodiesAreHiddenUntilAskedFor(t *testing.T) {
	t.Parallel()
	var acts []Act
	opts, id := filled(t, Access{HideBodies: true, Audit: func(a Act) { acts = append(acts, a) }})
	s := New(opts)
	ask := func(path string) string {
		t.Helper()
		code, body := exchange(t, s, with(get(path), "Authorization", "Bearer "+testToken))
		return fmt.Sprint(code, " ", body)
	}
	list, one := "/api/v1/queues/jobs/messages", "/api/v1/queues/jobs/messages/"+id
	for _, path := range []string{list, one, one + "?body=0"} {
		got := ask(path)
		if strings.Contains(got, "plum") || strings.Contains(got, "ann") || !strings.Contains(got, "body_hidden:true") {
			t.Errorf("%s: %s", path, got)
		}
	}
	if len(acts) != 0 {
		t.Errorf("%v was recorded", acts)
	}
	if got := ask(list + "?match=plum"); !strings.HasPrefix(got, "403 ") {
		t.Errorf("hidden bodies were searched: %s", got)
	}
	for _, path := range []string{list + "?body=1", one + "?body=1", list + "?match=plum&body=1", one + "?body=1"} {
		if got := ask(path); !strings.Contains(got, "plum") || !strings.Contains(got, "ann") {
			t.Errorf("%s: %s", path, got)
		}
	}
	for i := range acts {
		if acts[i].At.IsZero() || acts[i].RequestID == "" {
			t.Error("no time, or no id of the request")
		}
		acts[i].At, acts[i].RequestID = time.Time{}, ""
	}
	read := Act{Who: "owner", Remote: "192.0.2.1:1234", Method: "GET", Path: list, Text: "bodies read",
		Subject: "jobs", Read: true, Count: 1, Status: 200}
	readOne := read
	readOne.Path = one
	readOne.Text = "message read"
	readOne.Subject = id
	if diff := cmp.Diff([]Act{read, readOne, read}, acts); diff != "" {
		t.Errorf("recorded:\n%s", diff)
	}
}

// The drain token is stored in a platform's manifest, where others may read it.
func TestDrainTokenCanOnlyDrain(t *testing.T) {
	t.Parallel()
	const drainToken = "9d8e7f604f1b0c2a"
	s := New(&Options{Token: testToken, Drain: func(context.Context) error { return nil },
		Access: Access{DrainToken: drainToken}})
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/-/drain", http.StatusOK},
		{"POST", "/-/drain", http.StatusOK},
		{"GET", "/api/v1/doctor", http.StatusForbidden},
		{"POST", "/api/v1/queues/jobs/pause", http.StatusForbidden},
		{"POST", "/api/v1/drain", http.StatusForbidden},
		{"POST", "/api/v1/deploy", http.StatusForbidden},
		{"POST", "/-/reload", http.StatusForbidden},
		{"POST", "/api/v1/login", http.StatusForbidden},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.path, strings.NewReader("{}"))
			r.Host = "localhost"
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+drainToken)
			if status, answer := exchange(t, s, r); status != c.status {
				t.Errorf("status %d, want %d: %v", status, c.status, answer)
			}
		})
	}
}

func TestActsAreRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var acts []Act
		var log strings.Builder
		s := New(&Options{Token: testToken, Logger: textLogger(&log), Drain: func(context.Context) error { return nil },
			Access: Access{Audit: func(a Act) { acts = append(acts, a) }}})
		exchange(t, s, post("/api/v1/drain", "{}"))
		exchange(t, s, with(post("/api/v1/drain", "{}"), "Authorization", "Bearer wrong"))
		exchange(t, s, with(post("/api/v1/drain", "{}"), "Origin", "null"))
		exchange(t, s, post("/api/v1/deploy", "{}"))
		exchange(t, s, post("/api/v1/nothing", "{}"))
		exchange(t, s, get("/api/v1/status"))
		reader := signIn(t, s, api.ScopeRead)
		asked(t, s, post("/api/v1/drain", "{}"), reader)
		var got []string
		for _, a := range acts {
			got = append(got, fmt.Sprintf("%s %s %s: %d %s", a.Who, a.Method, a.Path, a.Status, a.Refused))
		}
		want := []string{
			"owner POST /api/v1/drain: 200 ",
			" POST /api/v1/drain: 401 this needs the console's token",
			"owner POST /api/v1/drain: 403 requests from pages of other sites are rejected",
			"owner POST /api/v1/deploy: 409 no app runs here, so its version cannot change",
			"session 1 GET /login: 200 ",
			"session 1 POST /api/v1/drain: 403 session 1 has the scope read; this needs act",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if lines := strings.Count(log.String(), "\n"); lines != len(want) {
			t.Errorf("%d lines were logged:\n%s", lines, &log)
		}
		acts = nil
		for range 10 * maxRefused {
			exchange(t, s, with(post("/api/v1/drain", "{}"), "Authorization", "Bearer wrong"))
		}
		if len(acts) >= maxRefused {
			t.Errorf("%d refused acts of one minute were recorded", len(acts))
		}
		time.Sleep(time.Minute)
		acts = nil
		exchange(t, s, with(post("/api/v1/drain", "{}"), "Authorization", "Bearer wrong"))
		if len(acts) != 1 {
			t.Errorf("%d refused acts of the next minute were recorded", len(acts))
		}
	})
}

func TestMessagesOfAnActAreCounted(t *testing.T) {
	t.Parallel()
	var acts []Act
	opts, id := filled(t, Access{Audit: func(a Act) { acts = append(acts, a) }})
	s := New(opts)
	send := func() *http.Request {
		return post("/api/v1/queues/jobs/messages", `{"messages":[{"body":"a"},{"body":""}]}`)
	}
	exchange(t, s, send())
	if len(acts) != 0 {
		t.Errorf("a program's send was recorded: %v", acts)
	}
	asked(t, s, send(), signIn(t, s))
	r := post("/api/v1/queues/jobs/messages/"+id, "")
	r.Method = http.MethodDelete
	exchange(t, s, r)
	exchange(t, s, post("/api/v1/queues", `{"name":"orders"}`))
	exchange(t, s, post("/api/v1/queues/jobs/messages/gone/retry", "{}"))
	exchange(t, s, post("/api/v1/queues/jobs/messages/gone/edit", `{"message":{"body":"a"},"to":"jobs"}`))
	var counts []int
	for _, a := range acts {
		counts = append(counts, a.Count)
	}
	if diff := cmp.Diff([]int{0, 1, 1, 0, 0, 0}, counts); diff != "" {
		t.Error(diff)
	}
	if acts[2].Subject != id {
		t.Errorf("the subject is %q", acts[2].Subject)
	}
	if acts[3].Subject != "orders" {
		t.Errorf("the subject of a created queue is %q", acts[3].Subject)
	}
}
