package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/queue"
)

func deadLetters(t *testing.T, b *broker.Broker, tenant string, bodies ...string) (ids []string) {
	t.Helper()
	for _, body := range bodies {
		sent, err := b.Queue("jobs").Send(t.Context(), []queue.Outgoing{{Body: body,
			Attributes: []queue.Attribute{{Name: "tenant", Type: "String", Value: tenant}}}})
		if err != nil || sent[0].Err != nil {
			t.Fatal(err, sent)
		}
		ids = append(ids, sent[0].ID)
	}
	deadLetter(t, b, len(bodies))
	return ids
}

func ended(t *testing.T, c *api.Client, name string) api.MoveTask {
	t.Helper()
	for {
		task, err := c.RedriveTask(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if task.Status != string(broker.MoveRunning) {
			return task
		}
	}
}

func TestActsOnOneMessage(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	ctx, c := t.Context(), dial(t, &Options{Broker: b})
	id := sendBodies(t, b, "jobs", "one")[0]
	placed, err := c.Delay(ctx, "jobs", id, time.Hour)
	if err != nil || placed.ID != id || placed.State != api.MessageDelayed || time.Until(placed.VisibleAt) < 59*time.Minute {
		t.Errorf("delayed: %+v, %v", placed, err)
	}
	if placed, err = c.Retry(ctx, "jobs", id); err != nil || placed.State != api.MessageVisible || !placed.VisibleAt.IsZero() {
		t.Errorf("retried: %+v, %v", placed, err)
	}
	var refusal *api.Error
	if _, err := c.Delay(ctx, "jobs", id, 13*time.Hour); !errors.As(err, &refusal) || refusal.Status != 400 ||
		refusal.Hint == "" {
		t.Errorf("a delay of 13 hours: %v", err)
	}
	if _, err := c.Retry(ctx, "jobs", "nothing"); !errors.As(err, &refusal) || refusal.Status != 404 {
		t.Errorf("retrying what is not there: %v", err)
	}
	if _, err := c.Edit(ctx, "jobs", id, "", api.Outgoing{Body: "two"}); !errors.As(err, &refusal) || refusal.Status != 400 {
		t.Errorf("an edited message without a target: %v", err)
	}
	dead := deadLetters(t, b, "a", "broken")[0]
	edited, err := c.Edit(ctx, "jobs-dead", dead, "", api.Outgoing{Body: "mended"})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := c.Message(ctx, "jobs", edited); err != nil || m.Body != "mended" || m.ReceiveCount != 0 {
		t.Errorf("the edited message is %+v, %v", m, err)
	}
	if _, err := c.Message(ctx, "jobs-dead", dead); !errors.As(err, &refusal) || refusal.Status != 404 {
		t.Errorf("the old message is still there: %v", err)
	}
}

func TestDeadLettersAreChosenByFilter(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	ctx, c := t.Context(), dial(t, &Options{Broker: b})
	deadLetters(t, b, "a", "apple", "banana")
	deadLetters(t, b, "b", "apple pie", "cherry")
	apples := api.Selection{Match: "apple"}
	ofB := api.Selection{Attribute: "tenant", Value: "b"}
	for _, f := range []struct {
		sel  api.Selection
		want []string
	}{
		{api.Selection{}, []string{"apple", "banana", "apple pie", "cherry"}},
		{apples, []string{"apple", "apple pie"}},
		{ofB, []string{"apple pie", "cherry"}},
		{api.Selection{Attribute: "tenant"}, []string{"apple", "banana", "apple pie", "cherry"}},
		{api.Selection{DeadSince: time.Now().Add(time.Hour)}, nil},
		{api.Selection{DeadUntil: time.Now().Add(time.Hour), Match: "banana"}, []string{"banana"}},
	} {
		page, _, err := c.Messages(ctx, "jobs-dead", api.Filter{Selection: f.sel})
		if got := mapped(page, func(m api.Message) string { return m.Body }); err != nil || !slices.Equal(got, f.want) {
			t.Errorf("%+v: %q, %v, want %q", f.sel, got, err, f.want)
		}
		if total, err := c.Count(ctx, "jobs-dead", f.sel, 0); err != nil || total != (api.Total{N: int64(len(f.want)), Exact: true}) {
			t.Errorf("%+v: counted %+v, %v", f.sel, total, err)
		}
	}
	if _, err := c.Redrive(ctx, "jobs-dead", "", 0, api.Selection{Match: "banana"}, 0); err != nil {
		t.Fatal(err)
	}
	if task := ended(t, c, "jobs-dead"); task.Moved != 1 || !task.Filtered || task.Deletes {
		t.Errorf("redriven: %+v", task)
	}
	var refusal *api.Error
	for _, confirm := range []int64{0, 1, 3} {
		if _, err := c.DeleteMatching(ctx, "jobs-dead", apples, 0, confirm); !errors.As(err, &refusal) ||
			refusal.Status != http.StatusPreconditionRequired || refusal.Hint == "" {
			t.Errorf("confirmed %d of 2: %v", confirm, err)
		}
	}
	if _, err := c.DeleteMatching(ctx, "jobs-dead", apples, 0, 2); err != nil {
		t.Fatal(err)
	}
	if task := ended(t, c, "jobs-dead"); task.Moved != 2 || !task.Deletes {
		t.Errorf("deleted: %+v", task)
	}
	if _, err := c.DeleteMatching(ctx, "jobs-dead", ofB, 0, 0); err != nil {
		t.Errorf("deleting one: %v", err)
	}
	if task := ended(t, c, "jobs-dead"); task.Moved != 1 {
		t.Errorf("deleted: %+v", task)
	}
	if l, err := b.Ledger("jobs-dead"); err != nil || l.Live != 0 || l.Purged != 3 {
		t.Errorf("ledger %+v, %v", l, err)
	}
}

func TestAnAttributeFilterWithoutANameSelectsNothing(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	deadLetters(t, b, "a", "apple", "banana")
	ctx, c := t.Context(), dial(t, &Options{Broker: b})
	nameless := api.Selection{Value: "a", Match: "apple"}
	errs := map[string]error{"= alone": sendBare(t, c, http.MethodGet, "/api/v1/queues/jobs-dead/count?attribute==")}
	_, _, errs["list"] = c.Messages(ctx, "jobs-dead", api.Filter{Selection: nameless})
	_, errs["count"] = c.Count(ctx, "jobs-dead", nameless, 0)
	_, errs["redrive"] = c.Redrive(ctx, "jobs-dead", "", 0, nameless, 0)
	_, errs["delete"] = c.DeleteMatching(ctx, "jobs-dead", nameless, 0, 1)
	for act, err := range errs {
		if !api.HasStatus(err, http.StatusBadRequest) {
			t.Errorf("%s: %v", act, err)
		}
	}
	if l, err := b.Ledger("jobs-dead"); err != nil || l.Live != 2 {
		t.Errorf("ledger %+v, %v", l, err)
	}
}

func TestDeletingSeveralAsksForTheirNumber(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	ctx, c := t.Context(), dial(t, &Options{Broker: b})
	ids := sendBodies(t, b, "jobs", "one", "two", "three")
	var refusal *api.Error
	if _, err := c.Delete(ctx, "jobs", ids, 0); !errors.As(err, &refusal) ||
		refusal.Status != http.StatusPreconditionRequired {
		t.Errorf("unconfirmed: %v", err)
	}
	if n, err := c.Delete(ctx, "jobs", ids[:1], 0); n != 1 || err != nil {
		t.Errorf("one of them: %d, %v", n, err)
	}
	if n, err := c.Delete(ctx, "jobs", ids, 3); n != 2 || err != nil {
		t.Errorf("confirmed: %d, %v", n, err)
	}
}

func TestHiddenBodiesAreNotSearched(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	deadLetters(t, b, "a", "apple")
	c := dial(t, &Options{Broker: b, Access: Access{HideBodies: true}})
	var refusal *api.Error
	for _, sel := range []api.Selection{{Match: "apple"}, {Attribute: "tenant"}} {
		if _, _, err := c.Messages(t.Context(), "jobs-dead", api.Filter{Selection: sel}); !errors.As(err, &refusal) ||
			refusal.Status != http.StatusForbidden {
			t.Errorf("%+v: %v", sel, err)
		}
		if _, err := c.Count(t.Context(), "jobs-dead", sel, 0); !errors.As(err, &refusal) ||
			refusal.Status != http.StatusForbidden {
			t.Errorf("counting %+v: %v", sel, err)
		}
	}
	if page, _, err := c.Messages(t.Context(), "jobs-dead", api.Filter{}); err != nil || len(page) != 1 || page[0].Body != "" {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestChoosingByBodyNeedsTheScopeRead(t *testing.T) {
	t.Parallel()
	b, dir := newBroker(t), t.TempDir()
	deadLetters(t, b, "a", "apple", "banana")
	s := New(&Options{Broker: b, Token: testToken, Access: Access{TokenDir: dir}})
	t.Cleanup(s.Close)
	secret := create(t, dir, "bot", time.Time{}, api.ScopeAct)
	for _, c := range []struct {
		path, body string
		want       int
	}{
		{"delete", `{"filter":{"match":"apple"}}`, http.StatusForbidden},
		{"delete", `{"filter":{"attribute":"tenant"}}`, http.StatusForbidden},
		{"redrive", `{"filter":{"match":"apple"}}`, http.StatusForbidden},
		{"delete", `{"filter":{"match":"apple"},"ids":["a"]}`, http.StatusBadRequest},
		{"redrive", `{"filter":{"ids":[]}}`, http.StatusBadRequest},
		{"redrive", `{"filter":{"value":"a"}}`, http.StatusBadRequest},
		{"delete", `{"filter":{"value":"a"},"confirm":2}`, http.StatusBadRequest},
		{"delete", `{"filter":{}}`, http.StatusPreconditionRequired},
		{"delete", `{"filter":{},"confirm":2}`, http.StatusOK},
	} {
		r := with(post("/api/v1/queues/jobs-dead/"+c.path, c.body), "Authorization", "Bearer "+secret)
		if code, answer := exchange(t, s, r); code != c.want {
			t.Errorf("%s %s: %d %v, want %d", c.path, c.body, code, answer, c.want)
		}
	}
}

func TestActsOnManyMessagesAreBounded(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	ctx, c := t.Context(), dial(t, &Options{Broker: b})
	sendBodies(t, b, "jobs-dead", "apple", "banana")
	q, err := c.Queue(ctx, "jobs-dead")
	if err != nil || q.Newest != 2 {
		t.Fatalf("%+v, %v", q, err)
	}
	sendBodies(t, b, "jobs-dead", "apple pie")
	seen := api.Selection{Match: "apple", Through: q.Newest}
	if total, err := c.Count(ctx, "jobs-dead", seen, 0); err != nil || total != (api.Total{N: 1, Exact: true}) {
		t.Errorf("counted %+v, %v", total, err)
	}
	var refusal *api.Error
	if _, err := c.Redrive(ctx, "jobs-dead", "jobs", 0, api.Selection{Match: "apple"}, 1); !errors.As(err, &refusal) ||
		refusal.Status != http.StatusConflict || !strings.Contains(refusal.Message, "2 messages match, more than the 1") {
		t.Errorf("more than were seen: %v", err)
	}
	if _, err := c.Redrive(ctx, "jobs-dead", "jobs", 0, seen, 1); err != nil {
		t.Fatal(err)
	}
	if task := ended(t, c, "jobs-dead"); task.Moved != 1 {
		t.Errorf("redriven: %+v", task)
	}
	if _, err := c.DeleteMatching(ctx, "jobs-dead", api.Selection{Through: q.Newest}, 0, 1); err != nil {
		t.Fatal(err)
	}
	if task := ended(t, c, "jobs-dead"); task.Moved != 1 {
		t.Errorf("deleted: %+v", task)
	}
	if n, err := c.Purge(ctx, "jobs-dead", "jobs-dead", q.Newest); n != 0 || err != nil {
		t.Errorf("purged %d, %v", n, err)
	}
	if l, err := b.Ledger("jobs-dead"); err != nil || l.Live != 1 {
		t.Errorf("ledger %+v, %v", l, err)
	}
	for _, query := range []string{"through=x", "attribute=%3Dx"} {
		err = sendBare(t, c, http.MethodGet, "/api/v1/queues/jobs-dead/count?"+query)
		if !errors.As(err, &refusal) || refusal.Status != http.StatusBadRequest {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestInvalidUTF8IsRefusedInsteadOfReplaced(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	ctx, c := t.Context(), dial(t, &Options{Broker: b})
	var refusal *api.Error
	isRefused := func(err error) bool {
		return errors.As(err, &refusal) && refusal.Status == http.StatusBadRequest && strings.Contains(refusal.Message, "not valid UTF-8")
	}
	tenant := []queue.Attribute{{Name: "tenant", Type: "String", Value: "\xff"}}
	for _, bad := range []queue.Outgoing{{Body: "a\xffb"}, {Body: "a", Attributes: tenant}} {
		if _, err := c.Send(ctx, "jobs", []queue.Outgoing{{Body: "good"}, bad}); !isRefused(err) {
			t.Errorf("%+v sent: %v", bad, err)
		}
	}
	dead := deadLetters(t, b, "a", "broken")[0]
	if _, err := c.Edit(ctx, "jobs-dead", dead, "jobs", api.Outgoing{Body: "a\xffb"}); !isRefused(err) {
		t.Errorf("edited: %v", err)
	}
	if m, err := c.Message(ctx, "jobs-dead", dead); err != nil || m.Body != "broken" {
		t.Errorf("the dead letter is %+v, %v", m, err)
	}

	s := New(&Options{Broker: b, Token: testToken})
	t.Cleanup(s.Close)
	r := with(post("/api/v1/queues/jobs/messages", "{\"messages\":[{\"body\":\"a\xffb\"}]}"), "Authorization", "Bearer "+testToken)
	if code, answer := exchange(t, s, r); code != http.StatusBadRequest {
		t.Errorf("a request that is not UTF-8: %d %v", code, answer)
	}
	if l, err := b.Ledger("jobs"); err != nil || l.Live != 0 {
		t.Errorf("stored: %+v, %v", l, err)
	}
	bytes := []queue.Attribute{{Name: "data", Type: "Binary", Value: "\xff"}}
	if sent, err := c.Send(ctx, "jobs", []queue.Outgoing{{Body: "a", Attributes: bytes}}); err != nil || sent[0].Err != nil {
		t.Errorf("bytes as an attribute: %v, %v", sent, err)
	}
}
