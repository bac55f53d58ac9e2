package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/queue"

	"github.com/google/go-cmp/cmp"
)

func newBroker(t *testing.T) *broker.Broker {
	t.Helper()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil && !errors.Is(err, queue.ErrClosed) {
			t.Error(err)
		}
	})
	if err := b.CreateQueue(t.Context(), "jobs-dead", nil, nil); err != nil {
		t.Fatal(err)
	}
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"1"}`, b.ARN("jobs-dead"))
	if err := b.CreateQueue(t.Context(), "jobs", map[string]string{"RedrivePolicy": policy}, nil); err != nil {
		t.Fatal(err)
	}
	return b
}

func sendBodies(t *testing.T, b *broker.Broker, name string, bodies ...string) []string {
	t.Helper()
	var ids []string
	for _, body := range bodies {
		sent, err := b.Queue(name).Send(t.Context(), []queue.Outgoing{{Body: body}})
		if err != nil || sent[0].Err != nil {
			t.Fatal(err, sent)
		}
		ids = append(ids, sent[0].ID)
	}
	return ids
}

func deadLetter(t *testing.T, b *broker.Broker, n int) {
	t.Helper()
	for range 2 {
		for got := 0; got < n; {
			now, brief := time.Duration(0), time.Duration(0)
			msgs, err := b.Queue("jobs").Receive(t.Context(),
				queue.ReceiveRequest{Max: queue.MaxBatch, Wait: &now, Visibility: &brief})
			if err != nil {
				t.Fatal(err)
			}
			if len(msgs) == 0 {
				break
			}
			got += len(msgs)
		}
	}
}

func TestQueuesAreShownWithTheirLedger(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	sendBodies(t, b, "jobs", "one", "two")
	c := dial(t, &Options{Broker: b, Environment: "photos", Status: func() api.Status {
		return api.Status{Workers: []api.Worker{{Queue: "jobs", Progress: api.Progress{Paused: true, PauseReason: "deploy"}}}}
	}})
	queues, err := c.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := func(q api.Queue) string { return q.Name }
	if got := mapped(queues, names); !slices.Equal(got, []string{"jobs", "jobs-dead"}) {
		t.Fatalf("queues %v", got)
	}
	jobs := queues[0]
	if jobs.Ledger.Sent != 2 || jobs.Ledger.Visible != 2 || jobs.DeadLetterQueue != "jobs-dead" ||
		jobs.MaxReceives != 1 || !jobs.Paused || jobs.PauseReason != "deploy" {
		t.Errorf("jobs: %+v", jobs)
	}
	dead, err := c.Queue(t.Context(), "jobs-dead")
	if err != nil || !slices.Equal(dead.DeadLetterSources, []string{"jobs"}) ||
		dead.Attributes["VisibilityTimeout"] != "30" || dead.Paused {
		t.Errorf("jobs-dead: %+v, %v", dead, err)
	}
	if _, err := c.Queue(t.Context(), "nothing"); !errors.Is(err, queue.ErrNoQueue) {
		t.Errorf("an unknown queue: %v", err)
	}
	st, err := c.Status(t.Context())
	if err != nil || st.Backend != api.BackendEmbedded || st.Ledger == nil || st.Ledger.Sent != 2 || st.Ledger.Live != 2 ||
		len(st.Queues) != 2 {
		t.Errorf("status: %+v, %v", st, err)
	}
}

func mapped[T, U any](items []T, f func(T) U) []U {
	var out []U
	for _, item := range items {
		out = append(out, f(item))
	}
	return out
}

func TestLookingCountsNoReceive(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	ids := sendBodies(t, b, "jobs", "apple", "banana", "apple pie")
	c := dial(t, &Options{Broker: b})
	body := func(m api.Message) string { return m.Body }
	for range 3 {
		page, next, err := c.Messages(t.Context(), "jobs", api.Filter{Selection: api.Selection{Match: "apple"}})
		if err != nil || next != "" || !slices.Equal(mapped(page, body), []string{"apple", "apple pie"}) {
			t.Fatalf("matching: %v, %q, %v", page, next, err)
		}
	}
	m, err := c.Message(t.Context(), "jobs", ids[1])
	if err != nil || m.Body != "banana" || m.ReceiveCount != 0 || m.State != api.MessageVisible || m.SentAt.IsZero() {
		t.Errorf("message: %+v, %v", m, err)
	}
	var refusal *api.Error
	if _, err := c.Message(t.Context(), "jobs", "00000000-0000-0000-0000-000000000000"); !errors.As(err, &refusal) ||
		refusal.Status != 404 {
		t.Errorf("an unknown message: %v", err)
	}
	if page, _, err := c.Messages(t.Context(), "jobs", api.Filter{State: api.MessageInFlight}); err != nil || len(page) != 0 {
		t.Errorf("in flight: %v, %v", page, err)
	}
}

func TestPagesAddUpToTheQueue(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	var bodies []string
	for i := range 75 {
		bodies = append(bodies, fmt.Sprint("body ", i))
	}
	sendBodies(t, b, "jobs", bodies...)
	c := dial(t, &Options{Broker: b})
	for _, limit := range []int{0, 1, 10, 33, 75, 1000} {
		var got []string
		for f := (api.Filter{Limit: limit}); ; {
			page, next, err := c.Messages(t.Context(), "jobs", f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page {
				got = append(got, m.Body)
			}
			if f.After = next; next == "" {
				break
			}
		}
		if diff := cmp.Diff(bodies, got); diff != "" {
			t.Errorf("limit %d: (-want +got)\n%s", limit, diff)
		}
	}
	for _, limit := range []int{1, 10, 33} {
		if page, next, err := c.Messages(t.Context(), "jobs", api.Filter{Limit: limit}); len(page) != limit || next == "" ||
			err != nil {
			t.Errorf("a page of at most %d has %d messages, next %q, %v", limit, len(page), next, err)
		}
	}
	if _, _, err := c.Messages(t.Context(), "nothing", api.Filter{}); !errors.Is(err, queue.ErrNoQueue) {
		t.Errorf("an unknown queue: %v", err)
	}
}

func TestLargeMessagesEndAPageEarly(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	large := strings.Repeat("x", 600<<10)
	for range 12 {
		sendBodies(t, b, "jobs", large)
	}
	c := dial(t, &Options{Broker: b})
	page, next, err := c.Messages(t.Context(), "jobs", api.Filter{Limit: 1000})
	if err != nil || next == "" || len(page) == 0 || len(page) >= 12 {
		t.Errorf("a page of %d large messages, next %q, %v", len(page), next, err)
	}
}

func TestActsOnMessages(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	ctx := t.Context()
	c := dial(t, &Options{Broker: b})
	ids := sendBodies(t, b, "jobs", "one", "two", "three", "four")
	deadLetter(t, b, len(ids))
	if l, err := b.Ledger("jobs-dead"); err != nil || l.Live != 4 {
		t.Fatalf("buried %+v, %v", l, err)
	}
	dead, _, err := c.Messages(ctx, "jobs-dead", api.Filter{})
	if err != nil || len(dead) != 4 || !strings.HasSuffix(dead[0].DeadLetterSource, ":jobs") || dead[0].DeadAt.IsZero() {
		t.Fatalf("dead letters %+v, %v", dead, err)
	}
	if n, err := c.Move(ctx, "jobs-dead", "", []string{ids[0], ids[1], "gone"}); n != 2 || err != nil {
		t.Errorf("Move = %d, %v", n, err)
	}
	if n, err := c.Delete(ctx, "jobs-dead", []string{ids[2], "gone"}, 2); n != 1 || err != nil {
		t.Errorf("Delete = %d, %v", n, err)
	}
	deleteOne := func(id string) error {
		return sendBare(t, c, http.MethodDelete, "/api/v1/queues/jobs-dead/messages/"+id)
	}
	if err := deleteOne(ids[3]); err != nil {
		t.Errorf("DELETE message: %v", err)
	}
	var refusal *api.Error
	if err := deleteOne(ids[3]); !errors.As(err, &refusal) || refusal.Status != 404 {
		t.Errorf("deleting what is gone: %v", err)
	}
	if n, err := c.Purge(ctx, "jobs", "jobs", 0); n != 2 || err != nil {
		t.Errorf("Purge = %d, %v", n, err)
	}
	if _, err := c.Purge(ctx, "jobs", "jobs", 0); !errors.As(err, &refusal) || refusal.Status != http.StatusConflict ||
		refusal.Hint == "" {
		t.Errorf("a second purge: %v", err)
	}
	if l := b.TotalLedger(); l.Sent != 4 || l.Purged != 4 || l.Live != 0 {
		t.Errorf("ledger %+v", l)
	}
}

func TestQueuesAreDeletedUnlessTheyAreNeeded(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	ctx := t.Context()
	if err := b.CreateQueue(ctx, "scratch", nil, nil); err != nil {
		t.Fatal(err)
	}
	c := dial(t, &Options{Broker: b, Status: func() api.Status { return api.Status{Workers: []api.Worker{{Queue: "jobs"}}} }})
	if _, err := c.Send(ctx, "scratch", []queue.Outgoing{{Body: "a"}, {Body: "b"}}); err != nil {
		t.Fatal(err)
	}
	for _, refused := range []struct {
		name, confirm string
		status        int
		says          string
	}{
		{"nothing", "nothing", http.StatusNotFound, `queue "nothing" not found`},
		{"jobs", "jobs", http.StatusConflict, "uses queue jobs"},
		{"jobs-dead", "jobs-dead", http.StatusConflict, "is the dead-letter queue of jobs"},
		{"scratch", "", http.StatusPreconditionRequired, "confirm it with the name of the queue"},
		{"scratch", "jobs", http.StatusPreconditionRequired, "confirm it with the name of the queue"},
	} {
		var refusal *api.Error
		_, err := c.DeleteQueue(ctx, refused.name, refused.confirm)
		if !errors.As(err, &refusal) || refusal.Status != refused.status ||
			!strings.Contains(refusal.Message, refused.says) || refusal.Hint == "" {
			t.Errorf("deleting %s, confirmed with %q: %v", refused.name, refused.confirm, err)
		}
	}
	if n, err := c.DeleteQueue(ctx, "scratch", "scratch"); n != 2 || err != nil {
		t.Errorf("DeleteQueue = %d, %v", n, err)
	}
	if names := b.ListQueues(""); !slices.Equal(names, []string{"jobs", "jobs-dead"}) {
		t.Errorf("queues %q are left", names)
	}
}

func TestSendingThroughTheConsole(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	ctx := t.Context()
	c := dial(t, &Options{Broker: b})
	delay := 1500 * time.Millisecond
	sent, err := c.Send(ctx, "jobs", []queue.Outgoing{
		{Body: "héllo\n", Attributes: []queue.Attribute{{Name: "n", Type: "Number", Value: "3"},
			{Name: "raw", Type: "Binary", Value: "\x00\xff"}}},
		{Body: ""},
		{Body: "later", Delay: &delay},
	})
	if err != nil || len(sent) != 3 || sent[0].Err != nil || sent[1].Err == nil || sent[2].Err != nil {
		t.Fatalf("Send = %+v, %v", sent, err)
	}
	m, err := c.Message(ctx, "jobs", sent[0].ID)
	if err != nil || m.Body != "héllo\n" || len(m.Attributes) != 2 || m.Attributes[1].Value != "\x00\xff" {
		t.Errorf("message %+v, %v", m, err)
	}
	if m, err = c.Message(ctx, "jobs", sent[2].ID); err != nil || m.State != api.MessageDelayed ||
		m.VisibleAt.Sub(m.SentAt).Round(time.Second) != 2*time.Second {
		t.Errorf("delayed message %+v, %v", m, err)
	}
	if _, err := c.Send(ctx, "nothing", []queue.Outgoing{{Body: "x"}}); !errors.Is(err, queue.ErrNoQueue) {
		t.Errorf("sending to no queue: %v", err)
	}
	var refusal *api.Error
	if _, err := c.Send(ctx, "jobs", nil); !errors.As(err, &refusal) || refusal.Status != 400 {
		t.Errorf("sending nothing: %v", err)
	}
	ten := make([]queue.Outgoing, 10)
	for i := range ten {
		ten[i].Body = strings.Repeat("\"", 100<<10) // JSON escapes each byte
	}
	if sent, err := c.Send(ctx, "jobs", ten); err != nil || len(sent) != 10 || sent[9].Err != nil {
		t.Errorf("sending a full batch: %v", err)
	}
}

func TestCreatingAQueue(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	c := dial(t, &Options{Broker: b})
	arn, err := c.CreateQueue(t.Context(), "mail.fifo", map[string]string{"FifoQueue": "true"})
	if err != nil || arn != b.ARN("mail.fifo") {
		t.Errorf("CreateQueue = %q, %v", arn, err)
	}
	if q, err := c.Queue(t.Context(), "mail.fifo"); err != nil || !q.FIFO {
		t.Errorf("queue %+v, %v", q, err)
	}
	var refusal *api.Error
	if _, err := c.CreateQueue(t.Context(), "no/name", nil); !errors.As(err, &refusal) || refusal.Status != 400 {
		t.Errorf("a bad name: %v", err)
	}
	if _, err := c.CreateQueue(t.Context(), "jobs", map[string]string{"VisibilityTimeout": "7"}); !errors.As(err,
		&refusal) || refusal.Status != 409 {
		t.Errorf("another value: %v", err)
	}
}

func TestBadSelectionsAreRefused(t *testing.T) {
	t.Parallel()
	s := New(&Options{Broker: newBroker(t), Token: testToken})
	many := `{"ids":["` + strings.Repeat(`a","`, maxIDs) + `b"]}`
	for _, c := range []struct{ path, body string }{
		{"/api/v1/queues/jobs/move", `{}`}, {"/api/v1/queues/jobs/move", many}, {"/api/v1/queues/jobs/delete", `{"ids":[]}`},
		{"/api/v1/queues/jobs/delete", `{"ids":["a"],"to":"x"}`}, {"/api/v1/queues/jobs/purge", `{"confirmed":"jobs"}`},
		{"/api/v1/queues/jobs/messages", `{"messages":[]}`},
		{"/api/v1/queues/jobs/messages", `{"messages":[{"body":"x","attributes":{"a":null}}]}`},
	} {
		if code, body := exchange(t, s, post(c.path, c.body)); code != 400 || body["hint"] == nil {
			t.Errorf("%s %.40s: %d %v", c.path, c.body, code, body)
		}
	}
	for _, query := range []string{"state=dead", "limit=0", "limit=1001", "limit=x"} {
		r := with(httptest.NewRequest(http.MethodGet, "/api/v1/queues/jobs/messages?"+query, nil), "Authorization",
			"Bearer "+testToken)
		if code, body := exchange(t, s, r); code != 400 || body["hint"] == nil {
			t.Errorf("?%s: %d %v", query, code, body)
		}
	}
}

func TestStatusOutlivesTheQueues(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	s := New(&Options{Broker: b})
	if code, body := exchange(t, s, get("/api/v1/status")); code != 200 || len(body["queues"].([]any)) != 2 {
		t.Errorf("status: %d %v", code, body)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if code, body := exchange(t, s, get("/api/v1/status")); code != 200 || body["backend"] != "embedded" {
		t.Errorf("status of closed queues: %d %v", code, body)
	}
}

func TestMissingQueuesAreNamed(t *testing.T) {
	t.Parallel()
	c := dial(t, &Options{Broker: newBroker(t)})
	if _, err := c.Queue(t.Context(), "nothing"); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("a queue that is not there: %v", err)
	}
	if _, err := c.Move(t.Context(), "jobs-dead", "elsewhere", []string{"m1"}); err == nil ||
		!strings.Contains(err.Error(), `"elsewhere"`) {
		t.Errorf("a target that is not there: %v", err)
	}
}
