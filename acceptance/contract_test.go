package acceptance

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"tendril/internal/testing/testpeer"
)

type posted struct {
	body     string
	header   http.Header
	count    int
	at       time.Time
	location string
	method   string
	from     string
}

type script struct {
	*httptest.Server
	mu    sync.Mutex
	posts []posted
	news  chan struct{}
}

func newScript(t *testing.T, act func(w http.ResponseWriter, r *http.Request, p posted)) *script {
	s := &script{news: make(chan struct{}, 1)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		count, _ := strconv.Atoi(r.Header.Get("X-Aws-Sqsd-Receive-Count"))
		p := posted{body: string(body), header: r.Header.Clone(), count: count, at: time.Now(), location: r.URL.RequestURI(),
			method: r.Method}
		p.from, _, _ = net.SplitHostPort(r.RemoteAddr)
		p.header.Set("Host", r.Host)
		p.header.Set("Content-Length", fmt.Sprint(r.ContentLength))
		s.mu.Lock()
		s.posts = append(s.posts, p)
		s.mu.Unlock()
		select {
		case s.news <- struct{}{}:
		default:
		}
		act(w, r, p)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *script) all() []posted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.posts)
}

// sinceFirstReceive is at most a second too long: the header has whole seconds. Times of requests would be too short
// if a process was paused between the receive and the request.
func (p posted) sinceFirstReceive(t *testing.T) time.Duration {
	t.Helper()
	first, err := time.Parse("2006-01-02T15:04:05Z", p.header.Get("X-Aws-Sqsd-First-Received-At"))
	if err != nil {
		t.Fatal(err)
	}
	return p.at.Sub(first)
}

func (s *script) await(t *testing.T, what string, done func([]posted) bool) []posted {
	t.Helper()
	return s.awaitWithin(t, waitsFor(), what, done)
}

func (s *script) awaitWithin(t *testing.T, limit time.Duration, what string, done func([]posted) bool) []posted {
	t.Helper()
	deadline := time.After(limit)
	for {
		if all := s.all(); done(all) {
			return all
		}
		select {
		case <-s.news:
		case <-deadline:
			t.Fatalf("it was not seen in time that %s; POSTs: %v", what, s.all())
		}
	}
}

func counts(all []posted, body string) []int {
	var list []int
	for _, p := range all {
		if p.body == body {
			list = append(list, p.count)
		}
	}
	return list
}

func endpoint(t *testing.T, name string, attrs map[string]string) (*sqs.Client, string) {
	t.Helper()
	_, started := start(t, "serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--console", "off")
	c := client(started.Endpoint)
	return c, createQueue(t, c, name, attrs)
}

func send(t *testing.T, c *sqs.Client, in *sqs.SendMessageInput) string {
	t.Helper()
	out, err := c.SendMessage(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return *out.MessageId
}

func empty(t *testing.T, c *sqs.Client, url string) func([]posted) bool {
	return func([]posted) bool {
		a := attributes(t.Context(), t, c, url)
		return a["ApproximateNumberOfMessages"] == "0" && a["ApproximateNumberOfMessagesNotVisible"] == "0"
	}
}

func TestContractRequest(t *testing.T) {
	t.Parallel()
	app := newScript(t, func(http.ResponseWriter, *http.Request, posted) {})
	c, url := endpoint(t, "orders", nil)
	start(t, "up", "--queue-url", url, "--target", app.URL, "--http-path", "/worker/queue", "--console", "off")
	text := func(v string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &v}
	}
	body := "{\"order\":\t\"é…\"}\r\n"
	id := send(t, c, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body,
		MessageAttributes: map[string]types.MessageAttributeValue{
			"fooBar": text("x"), "amount": {DataType: aws.String("Number.int"), StringValue: aws.String("3")},
			"picture": {DataType: aws.String("Binary"), BinaryValue: []byte{1, 2}}, "lines": text("a\r\nb"),
		}})
	p := app.await(t, "the message came", func(all []posted) bool { return len(all) > 0 })[0]
	if p.body != body || p.location != "/worker/queue" {
		t.Errorf("posted %q to %s", p.body, p.location)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "X-Aws-Sqsd-Msgid": id, "X-Aws-Sqsd-Queue": "orders",
		"X-Aws-Sqsd-Receive-Count": "1",
		"X-Aws-Sqsd-Path":          "/worker/queue", "X-Aws-Sqsd-Sender-Id": "000000000000", "X-Aws-Sqsd-Attr-Foobar": "x",
		"X-Aws-Sqsd-Attr-Amount": "3", "X-Aws-Sqsd-Attr-Picture": "", "Content-Length": fmt.Sprint(len(body)),
	} {
		if got := p.header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"X-Aws-Sqsd-First-Received-At", "X-Aws-Sqsd-Sent-At"} {
		if _, err := time.Parse("2006-01-02T15:04:05Z", p.header.Get(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if ua := p.header.Get("User-Agent"); !strings.HasPrefix(ua, "aws-sqsd/") {
		t.Errorf("User-Agent = %q", ua)
	}
	if got := p.header.Get("X-Aws-Sqsd-Attr-Lines") + p.header.Get("X-Aws-Sqsd-Attr-Dropped"); got == "" ||
		strings.ContainsAny(got, "\r\n") {
		t.Errorf("an attribute with a line break arrived as %q: it must be made safe or counted as dropped", got)
	}
}

func TestContractOutcomes(t *testing.T) {
	t.Parallel()
	answer := func(status int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(status) }
	}
	hang := make(chan struct{})
	behaviours := map[string]struct {
		act     func(w http.ResponseWriter)
		retried bool
	}{
		"200":       {answer(200), false},
		"long body": {func(w http.ResponseWriter) { io.WriteString(w, strings.Repeat("x", 300<<10)) }, false},
		"early hint": {func(w http.ResponseWriter) {
			w.WriteHeader(103)
			w.WriteHeader(200)
		}, false},
		"201": {answer(201), true}, "204": {answer(204), true}, "301": {answer(301), true}, "304": {answer(304), true},
		"404": {answer(404), true}, "429": {answer(429), true}, "500": {answer(500), true}, "503": {answer(503), true},
		"redirect": {func(w http.ResponseWriter) { w.Header().Set("Location", "/elsewhere"); w.WriteHeader(307) }, true},
		"closes":   {func(w http.ResponseWriter) { hijack(t, w).Close() }, true},
		"breaks off": {func(w http.ResponseWriter) {
			conn := hijack(t, w)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			conn.Close()
		}, true},
		"stalls": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("half"))
			http.NewResponseController(w).Flush()
			<-hang
		}, true},
		"silent": {func(http.ResponseWriter) { <-hang }, true},
		"garbage": {func(w http.ResponseWriter) {
			conn := hijack(t, w)
			io.WriteString(conn, "what?\r\n\r\n")
			conn.Close()
		}, true},
	}
	app := newScript(t, func(w http.ResponseWriter, r *http.Request, p posted) {
		if b, ok := behaviours[p.body]; ok && p.count == 1 {
			b.act(w)
		}
	})
	t.Cleanup(func() { close(hang) })
	c, url := endpoint(t, "orders", nil)
	start(t, "up", "--queue-url", url, "--target", app.URL, "--console", "off",
		"--inactivity-timeout", "6", "--visibility-timeout", "60", "--error-visibility-timeout", "1")
	retried := 0
	for name, b := range behaviours {
		send(t, c, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &name})
		if b.retried {
			retried++
		}
	}
	all := app.await(t, "every failed message came again", func(all []posted) bool {
		return len(all) >= len(behaviours)+retried
	})
	for name, b := range behaviours {
		want := []int{1}
		if b.retried {
			want = []int{1, 2}
		}
		if diff := cmp.Diff(want, counts(all, name)); diff != "" {
			t.Errorf("%q: receive counts of its POSTs (-want +got)\n%s", name, diff)
		}
	}
	app.await(t, "the queue is empty", func(all []posted) bool {
		select {
		case app.news <- struct{}{}:
		default:
		}
		return empty(t, c, url)(all)
	})
	if n := len(app.all()); n != len(behaviours)+retried {
		t.Errorf("%d POSTs in all, want %d: one receive is one POST", n, len(behaviours)+retried)
	}
	for _, p := range all {
		if p.location != "/" {
			t.Errorf("a POST went to %s: redirects are not followed", p.location)
		}
	}
}

func hijack(t *testing.T, w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
	}
	return conn
}

func TestContractErrorWaitsOutVisibilityWhenNothingElseIsSet(t *testing.T) {
	t.Parallel()
	app := newScript(t, func(w http.ResponseWriter, _ *http.Request, p posted) {
		if p.count == 1 {
			w.WriteHeader(500)
		}
	})
	c, url := endpoint(t, "orders", nil)
	start(t, "up", "--queue-url", url, "--target", app.URL, "--console", "off", "--visibility-timeout", "3")
	send(t, c, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x")})
	all := app.await(t, "it came again", func(all []posted) bool { return len(all) == 2 })
	if gap := all[1].sinceFirstReceive(t); gap < 3*time.Second {
		t.Errorf("the second attempt came after %v; the visibility timeout of 3 s should have run out first", gap)
	}
}

func TestContractVisibilityIsExtendedWhileTheAppWorks(t *testing.T) {
	t.Parallel()
	app := newScript(t, func(w http.ResponseWriter, r *http.Request, _ posted) {
		select {
		case <-time.After(12 * time.Second):
		case <-r.Context().Done():
		}
	})
	c, url := endpoint(t, "orders", nil)
	p, _ := start(t, "up", "--queue-url", url, "--target", app.URL, "--console", "off", "--visibility-timeout", "8")
	for i := range 15 {
		send(t, c, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(fmt.Sprint(i))})
	}
	done := func(e event) bool { return e.Msg == "settled" && e.Outcome == "done" }
	p.await(t, "all are done", func(event) bool { return p.count(done) >= 15 })
	if all := app.all(); len(all) != 15 {
		t.Errorf("%d POSTs for 15 messages that each take longer than the visibility timeout", len(all))
	}
}

func TestContractAnOutageOfTheAppBurnsNoReceives(t *testing.T) {
	t.Parallel()
	address := "127.0.0.1:" + testpeer.FreePort(t)
	c, url := endpoint(t, "orders", nil)
	p, _ := start(t, "up", "--queue-url", url, "--target", "http://"+address, "--console", "off")
	for i := range 100 {
		send(t, c, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(fmt.Sprint(i))})
	}
	p.await(t, "it does not receive", func(e event) bool { return e.Msg == "receiving paused" })
	if a := attributes(t.Context(), t, c, url); a["ApproximateNumberOfMessages"] != "100" ||
		a["ApproximateNumberOfMessagesNotVisible"] != "0" {
		t.Errorf("while the app is down: %v", a)
	}
	app := newScript(t, func(http.ResponseWriter, *http.Request, posted) {})
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	go http.Serve(l, app.Config.Handler)
	t.Cleanup(func() { l.Close() })
	for _, p := range app.await(t, "all came", func(all []posted) bool { return len(all) >= 100 }) {
		if p.count != 1 {
			t.Errorf("message %s came with receive count %d, though the app was never there before", p.body, p.count)
		}
	}
}

// On the embedded queue, receives of messages behind a failing one do not count.
func TestContractFIFOFailureSparesItsGroup(t *testing.T) {
	t.Parallel()
	for name, elsewhere := range map[string]bool{"embedded": false, "elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := newScript(t, func(w http.ResponseWriter, _ *http.Request, p posted) {
				if p.body == "bad" {
					w.WriteHeader(500)
				}
			})
			flags := []string{"up", "--target", app.URL, "--error-visibility-timeout", "1", "--log-format", "json"}
			var c *sqs.Client
			var url string
			fill := func() {
				for _, body := range []string{"a1", "bad", "a3", "a4", "a5", "a6"} {
					send(t, c, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageGroupId: aws.String("g"),
						MessageDeduplicationId: &body})
				}
			}
			if elsewhere {
				c, url = endpoint(t, "jobs.fifo", map[string]string{"FifoQueue": "true"})
				dead := createQueue(t, c, "dead.fifo", map[string]string{"FifoQueue": "true"})
				arn := attributes(t.Context(), t, c, dead)["QueueArn"]
				_, err := c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url,
					Attributes: map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":3}`,
						arn)}})
				if err != nil {
					t.Fatal(err)
				}
				fill()
				start(t, append(flags, "--queue-url", url, "--console", "off")...)
			} else {
				dir := t.TempDir()
				args := append(flags, "--queue", "jobs.fifo", "--max-retries", "3", "--data-dir", dir, "--listen", "127.0.0.1:0",
					"--console", "off")
				p, _ := start(t, args...)
				p.terminate(t)
				p, started := start(t, "serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--console", "off")
				c = client(started.Endpoint)
				out, err := c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("jobs.fifo")})
				if err != nil {
					t.Fatal(err)
				}
				url = *out.QueueUrl
				fill()
				p.terminate(t)
				start(t, args...)
			}
			all := app.await(t, "the last of the group came", func(all []posted) bool { return len(counts(all, "a6")) > 0 })
			var order []string
			for _, p := range all {
				order = append(order, p.body)
				if !elsewhere && p.body != "bad" && p.count != 1 {
					t.Errorf("%s came with receive count %d, want 1", p.body, p.count)
				}
			}
			if diff := cmp.Diff([]string{"a1", "bad", "bad", "bad", "a3", "a4", "a5", "a6"}, order); diff != "" {
				t.Errorf("POSTs (-want +got)\n%s", diff)
			}
		})
	}
}

func TestContractFIFOKeepsOrderWithinAGroup(t *testing.T) {
	t.Parallel()
	app := newScript(t, func(w http.ResponseWriter, _ *http.Request, p posted) {
		if p.count == 1 && strings.HasSuffix(p.body, "2") {
			w.WriteHeader(500)
		}
	})
	c, url := endpoint(t, "orders.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
	for i := range 5 {
		for _, group := range []string{"a", "b", "c"} {
			send(t, c, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(fmt.Sprintf("%s%d", group, i)),
				MessageGroupId: &group})
		}
	}
	start(t, "up", "--queue-url", url, "--target", app.URL, "--console", "off", "--error-visibility-timeout", "1")
	all := app.await(t, "all came, and three of them twice", func(all []posted) bool { return len(all) == 18 })
	for _, group := range []string{"a", "b", "c"} {
		var order []string
		for _, p := range all {
			if strings.HasPrefix(p.body, group) {
				order = append(order, p.body)
			}
		}
		if diff := cmp.Diff([]string{group + "0", group + "1", group + "2", group + "2", group + "3", group + "4"},
			order); diff != "" {
			t.Errorf("group %s (-want +got)\n%s", group, diff)
		}
	}
}

func TestContractSuccessCodesWiden(t *testing.T) {
	t.Parallel()
	app := newScript(t, func(w http.ResponseWriter, _ *http.Request, p posted) {
		status, _ := strconv.Atoi(p.body)
		w.WriteHeader(status)
	})
	c, url := endpoint(t, "orders", nil)
	p, _ := start(t, "up", "--queue-url", url, "--target", app.URL, "--console", "off", "--success-codes", "2xx")
	for _, status := range []string{"200", "202", "204", "302"} {
		send(t, c, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &status})
	}
	p.await(t, "the redirect failed", func(e event) bool {
		return e.Outcome == "failed" && strings.HasPrefix(e.Reason, "HTTP 302")
	})
	app.await(t, "all came", func(all []posted) bool { return len(all) == 4 })
	if n := p.count(func(e event) bool { return e.Outcome == "failed" }); n != 1 {
		t.Errorf("%d of the four failed, want only the redirect", n)
	}
}
