package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Each subtest has the ID of its row in docs/specification.md, and detects the code change for that row in
// docs/specification.yaml.

const principal = "AIDAIENQZJOLO23YVJ4VO"

type queueCall struct {
	action     string
	in, answer map[string]any
	at         time.Time
	answered   time.Time
}

func (c queueCall) number(name string) float64 {
	if n, ok := c.in[name].(float64); ok {
		return n
	}
	return -1
}

// watchedQueue records the calls of `tendril up` to `tendril serve`.
type watchedQueue struct {
	*sqs.Client
	url     string
	watched string
	server  string

	mu    sync.Mutex
	calls []queueCall
	open  int
}

func watchQueue(t *testing.T, name string, attrs map[string]string) *watchedQueue {
	t.Helper()
	c, own := endpoint(t, name, attrs)
	return watch(t, c, own)
}

func watch(t *testing.T, c *sqs.Client, own string) *watchedQueue {
	t.Helper()
	to, err := url.Parse(own)
	if err != nil {
		t.Fatal(err)
	}
	q := &watchedQueue{Client: c, url: own}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		call := queueCall{action: action, at: time.Now()}
		if action != "ReceiveMessage" {
			q.count(1)
			defer q.count(-1)
		}
		json.Unmarshal(body, &call.in)
		out, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+to.Host+r.URL.RequestURI(), bytes.NewReader(body))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		out.Header, out.Host = r.Header.Clone(), r.Host
		answer, err := transport.RoundTrip(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close()
		said, err := io.ReadAll(answer.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		// Amazon SQS returns the sender's principal ID, tendril the account.
		said = bytes.ReplaceAll(said, []byte(`"SenderId":"000000000000"`), []byte(`"SenderId":"`+principal+`"`))
		json.Unmarshal(said, &call.answer)
		call.answered = time.Now()
		q.mu.Lock()
		q.calls = append(q.calls, call)
		q.mu.Unlock()
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.WriteHeader(answer.StatusCode)
		w.Write(said)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		transport.CloseIdleConnections()
	})
	q.server = server.URL
	q.watched = server.URL + to.Path
	return q
}

func (q *watchedQueue) count(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open += n
}

func (q *watchedQueue) made(action string) (calls []queueCall) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.calls {
		switch c.action {
		case action:
			calls = append(calls, c)
		case action + "Batch":
			entries, _ := c.in["Entries"].([]any)
			for _, entry := range entries {
				in, _ := entry.(map[string]any)
				calls = append(calls, queueCall{action: action, in: in, at: c.at})
			}
		}
	}
	return calls
}

type receipt struct {
	handle string
	at     time.Time
}

func (q *watchedQueue) received(body string) (all []receipt) {
	for _, c := range q.made("ReceiveMessage") {
		messages, _ := c.answer["Messages"].([]any)
		for _, m := range messages {
			if m := m.(map[string]any); m["Body"] == body {
				all = append(all, receipt{m["ReceiptHandle"].(string), c.answered})
			}
		}
	}
	return all
}

func (q *watchedQueue) receipts(body string) (handles []string) {
	for _, r := range q.received(body) {
		handles = append(handles, r.handle)
	}
	return handles
}

func (q *watchedQueue) changes(body string) (calls []queueCall) {
	handles := q.receipts(body)
	for _, c := range q.made("ChangeMessageVisibility") {
		if handle, _ := c.in["ReceiptHandle"].(string); slices.Contains(handles, handle) {
			calls = append(calls, c)
		}
	}
	return calls
}

func (q *watchedQueue) put(t *testing.T, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		send(t, q.Client, &sqs.SendMessageInput{QueueUrl: &q.url, MessageBody: &body})
	}
}

func (q *watchedQueue) awaitEmpty(t *testing.T, app *script) {
	t.Helper()
	eventually(t, "the queue is empty", func() bool {
		if !empty(t, q.Client, q.url)(nil) {
			return false
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.open == 0
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	eventuallyWithin(t, waitsFor(), what, holds)
}

func eventuallyWithin(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it was not seen in time that %s", what)
		}
	}
}

func (q *watchedQueue) up(t *testing.T, app *script, args ...string) *process {
	t.Helper()
	p, _ := start(t, append([]string{"up", "--queue-url", q.watched, "--target", app.URL, "--console", "off"}, args...)...)
	return p
}

func row(t *testing.T, id string, check func(t *testing.T)) {
	t.Helper()
	t.Run(id, check)
}

func expect(t *testing.T, id string, got, want any) {
	t.Helper()
	row(t, id, func(t *testing.T) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func between(t *testing.T, what string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s is %v, want %v to %v", what, got.Round(time.Millisecond), least, most)
	}
}

func text(v string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &v}
}

func TestSentencesRequest(t *testing.T) {
	t.Parallel()
	q := watchQueue(t, "orders", map[string]string{"VisibilityTimeout": "30"})
	app := newScript(t, func(http.ResponseWriter, *http.Request, posted) {})
	q.up(t, app, "--http-path", "/worker/queue", "--visibility-timeout", "77")
	body := "{\"order\":\t\"é…\"}\r\n"
	sent := time.Now()
	id := send(t, q.Client, &sqs.SendMessageInput{QueueUrl: &q.url, MessageBody: &body,
		MessageAttributes: map[string]types.MessageAttributeValue{"fooBar": text("x"), "FOOBAR": text("y"),
			"amount":  {DataType: aws.String("Number.int"), StringValue: aws.String("3")},
			"picture": {DataType: aws.String("Binary"), BinaryValue: []byte("pixels")}}})
	p := app.await(t, "the message came", func(all []posted) bool { return len(all) > 0 })[0]
	q.awaitEmpty(t, app)

	expect(t, "A1", p.method+" from "+p.from, "POST from 127.0.0.1")
	expect(t, "A2", p.body, body)
	expect(t, "A4", p.location, "/worker/queue")
	expect(t, "A5", p.header.Get("Content-Type"), "application/json")
	row(t, "A6", func(t *testing.T) {
		if len(q.made("CreateQueue")) > 0 || len(q.made("SetQueueAttributes")) > 0 || len(q.receipts(body)) != 1 {
			t.Error("the queue that was there was not used as it is")
		}
	})
	expect(t, "A8", len(app.all()), 1)
	row(t, "A10", func(t *testing.T) {
		deleted := q.made("DeleteMessage")
		if len(deleted) != 1 || deleted[0].in["ReceiptHandle"] != q.receipts(body)[0] || deleted[0].at.Before(p.at) {
			t.Errorf("deletes: %v", deleted)
		}
	})
	expect(t, "D14", len(q.made("DeleteMessage"))+len(q.made("ChangeMessageVisibility")), 1)
	row(t, "A16", func(t *testing.T) {
		var names []string
		for name := range p.header {
			names = append(names, name)
		}
		slices.Sort(names)
		want := "Content-Length Content-Type Host User-Agent X-Aws-Sqsd-Attr-Amount X-Aws-Sqsd-Attr-Dropped " +
			"X-Aws-Sqsd-Attr-Foobar X-Aws-Sqsd-First-Received-At X-Aws-Sqsd-Msgid X-Aws-Sqsd-Path X-Aws-Sqsd-Queue " +
			"X-Aws-Sqsd-Receive-Count X-Aws-Sqsd-Sender-Id X-Aws-Sqsd-Sent-At X-Tendril-Attempt"
		if got := strings.Join(names, " "); got != want {
			t.Errorf("the headers are\n%s, want\n%s", got, want)
		}
	})
	row(t, "A17", func(t *testing.T) {
		if agent := p.header.Get("User-Agent"); !strings.HasPrefix(agent, "aws-sqsd/") {
			t.Errorf("User-Agent is %q", agent)
		}
	})
	expect(t, "A18", p.header.Get("X-Aws-Sqsd-Msgid"), id)
	expect(t, "A19", p.header.Get("X-Aws-Sqsd-Queue"), "orders")
	row(t, "A20", func(t *testing.T) {
		at, err := time.Parse("2006-01-02T15:04:05Z", p.header.Get("X-Aws-Sqsd-First-Received-At"))
		if err != nil || at.Before(sent.Add(-2*time.Second)) || at.After(p.at.Add(2*time.Second)) {
			t.Errorf("X-Aws-Sqsd-First-Received-At is %v, %v", at, err)
		}
	})
	expect(t, "A21", p.header.Get("X-Aws-Sqsd-Receive-Count"), "1")
	row(t, "A22", func(t *testing.T) {
		if p.header.Get("X-Aws-Sqsd-Attr-Amount") != "3" || p.header.Get("X-Aws-Sqsd-Attr-Foobar") == "" {
			t.Errorf("attributes: %v", p.header)
		}
	})
	row(t, "A23", func(t *testing.T) {
		if got := fmt.Sprint(p.header); strings.Contains(strings.ToLower(got), "picture") || strings.Contains(got, "pixels") {
			t.Errorf("a binary attribute is a header: %v", got)
		}
	})
	expect(t, "A24", p.header.Values("Content-Type"), []string{"application/json"})
	expect(t, "A47", p.header.Get("X-Aws-Sqsd-Sender-Id"), principal)
	row(t, "B4", func(t *testing.T) {
		if all := p.header.Values("X-Aws-Sqsd-Attr-Foobar"); len(all) != 1 || p.header.Get("X-Aws-Sqsd-Attr-Dropped") != "1" {
			t.Errorf("two attributes whose headers differ in case only: %v", p.header)
		}
	})
	expect(t, "B6", p.from, "127.0.0.1")
	expect(t, "B8", p.header.Get("Authorization")+p.header.Get("Webhook-Signature"), "")
	for _, id := range []string{"A73", "D1"} {
		row(t, id, func(t *testing.T) {
			for _, c := range q.made("ReceiveMessage") {
				if c.number("VisibilityTimeout") != 77 {
					t.Errorf("a receive has VisibilityTimeout %v, and the daemon's is 77", c.in["VisibilityTimeout"])
				}
			}
		})
	}
	row(t, "B19", func(t *testing.T) {
		if len(app.all()) != 1 || id == "" {
			t.Error("a message of another program, sent with the SDK, did not come")
		}
	})
}

func TestSentencesErrors(t *testing.T) {
	t.Parallel()
	q := watchQueue(t, "orders", nil)
	app := newScript(t, func(w http.ResponseWriter, r *http.Request, p posted) {
		var status int
		switch _, err := fmt.Sscan(p.body, &status); {
		case p.count > 1:
		case err == nil:
			w.WriteHeader(status)
		case p.body == "silent":
			<-r.Context().Done()
		}
	})
	q.up(t, app, "--error-visibility-timeout", "2", "--inactivity-timeout", "7", "--visibility-timeout", "60")
	bodies := []string{"500", "504", "201", "204", "302", "404", "silent"}
	q.put(t, bodies...)
	app.awaitWithin(t, 7*time.Second+waitsFor(), "each came twice", func(all []posted) bool {
		return len(all) >= 2*len(bodies)
	})
	q.awaitEmpty(t, app)
	posts := func(body string) (list []posted) {
		for _, p := range app.all() {
			if p.body == body {
				list = append(list, p)
			}
		}
		return list
	}
	gap := func(body string) time.Duration { return posts(body)[1].at.Sub(posts(body)[0].at) }
	changed := func(t *testing.T, body string) {
		t.Helper()
		changes := q.changes(body)
		if len(changes) != 1 || changes[0].number("VisibilityTimeout") != 2 ||
			changes[0].in["ReceiptHandle"] != q.receipts(body)[0] {
			t.Errorf("changes of the visibility of %s: %v", body, changes)
		}
	}

	row(t, "A11", func(t *testing.T) {
		for _, body := range []string{"500", "201", "204", "302", "404"} {
			if got := counts(app.all(), body); fmt.Sprint(got) != "[1 2]" {
				t.Errorf("status %s: receive counts %v", body, got)
			}
		}
	})
	for _, id := range []string{"A12", "D16", "D8"} {
		row(t, id, func(t *testing.T) {
			between(t, "the pause after an error", gap("500"), 1900*time.Millisecond, 20*time.Second)
		})
	}
	row(t, "A13", func(t *testing.T) {
		if got := counts(app.all(), "silent"); fmt.Sprint(got) != "[1 2]" {
			t.Errorf("receive counts %v", got)
		}
	})
	row(t, "D7", func(t *testing.T) {
		pause := posts("silent")[1].at.Sub(q.received("silent")[0].at)
		between(t, "the pause after a receive whose error came 7 s later", pause, 8900*time.Millisecond, 30*time.Second)
	})
	row(t, "D17", func(t *testing.T) { changed(t, "silent") })
	row(t, "D18", func(t *testing.T) { changed(t, "silent") })
	row(t, "D6", func(t *testing.T) { changed(t, "500") })
	row(t, "D9", func(t *testing.T) { changed(t, "504") })
	for _, id := range []string{"D12", "A69"} {
		row(t, id, func(t *testing.T) {
			changes := q.changes("silent")
			if len(changes) == 0 {
				t.Fatal("no change of visibility")
			}
			between(t, "the time from the receive to the failure", changes[0].at.Sub(q.received("silent")[0].at),
				6900*time.Millisecond, 15*time.Second)
		})
	}
	row(t, "D11", func(t *testing.T) {
		for _, c := range q.made("ReceiveMessage") {
			if c.number("VisibilityTimeout") != 60 || len(q.made("SetQueueAttributes")) > 0 {
				t.Errorf("a receive has VisibilityTimeout %v", c.in["VisibilityTimeout"])
			}
		}
	})
	row(t, "D10", func(t *testing.T) {
		if again := posts("504")[1]; again.count != 2 || again.header.Get("X-Aws-Sqsd-Msgid") != posts("504")[0].header.Get("X-Aws-Sqsd-Msgid") {
			t.Errorf("the repeat has the headers %v", again.header)
		}
	})
}

func TestSentencesVisibility(t *testing.T) {
	t.Parallel()
	q := watchQueue(t, "orders", map[string]string{"VisibilityTimeout": "30"})
	app := newScript(t, func(w http.ResponseWriter, r *http.Request, p posted) {
		switch {
		case p.count > 1:
		case p.body == "silent":
			<-r.Context().Done()
		default:
			w.WriteHeader(500)
		}
	})
	q.up(t, app, "--visibility-timeout", "8", "--inactivity-timeout", "4")
	q.put(t, "error", "silent")
	first := app.await(t, "the first attempts", func(all []posted) bool { return len(all) >= 2 })
	hidden, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q.url, MaxNumberOfMessages: 10})
	if err != nil {
		t.Fatal(err)
	}
	app.awaitWithin(t, 8*time.Second+waitsFor(), "the second attempts", func(all []posted) bool { return len(all) >= 4 })
	q.awaitEmpty(t, app)
	gap := func(t *testing.T, body string) time.Duration {
		t.Helper()
		all := slices.DeleteFunc(app.all(), func(p posted) bool { return p.body != body })
		return all[1].sinceFirstReceive(t)
	}
	for _, id := range []string{"B9", "D4", "A65"} {
		row(t, id, func(t *testing.T) {
			between(t, "the time between attempts", gap(t, "error"), 8*time.Second, 20*time.Second)
		})
	}
	for _, id := range []string{"D15", "D5"} {
		row(t, id, func(t *testing.T) {
			if changes := q.changes("error"); len(changes) > 0 {
				t.Errorf("the visibility was changed: %v", changes)
			}
		})
	}
	row(t, "D2", func(t *testing.T) {
		if len(hidden.Messages) > 0 || time.Since(first[0].at) < 0 {
			t.Errorf("another receiver got %d messages that are in work", len(hidden.Messages))
		}
	})
	row(t, "D20", func(t *testing.T) {
		between(t, "the time between attempts", gap(t, "silent"), 8*time.Second, 20*time.Second)
	})
}

func TestSentencesExtension(t *testing.T) {
	t.Parallel()
	q := watchQueue(t, "orders", nil)
	app := newScript(t, func(http.ResponseWriter, *http.Request, posted) { time.Sleep(13 * time.Second) })
	q.up(t, app, "--visibility-timeout", "8")
	q.put(t, "long")
	app.await(t, "it is in work", func(all []posted) bool { return len(all) >= 1 })
	other, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q.url, WaitTimeSeconds: 11})
	if err != nil {
		t.Fatal(err)
	}
	row(t, "D19", func(t *testing.T) {
		if len(other.Messages) > 0 || len(q.changes("long")) == 0 {
			t.Errorf("another receiver got %d messages that are in work", len(other.Messages))
		}
	})
}
