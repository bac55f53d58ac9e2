package console

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/observe/eventlog"
)

func TestMessageInNoQueueIsExplainedFromTheHistory(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ds := &Deliveries{size: 2}
	c := dial(t, &Options{Deliveries: ds, Status: func() api.Status { return api.Status{StartedAt: at.Add(-time.Hour)} }})
	find := func(c *api.Client, id string) error {
		_, err := c.FindMessage(t.Context(), id)
		return err
	}
	explains := func(id string, want ...string) {
		t.Helper()
		err := (*api.Error)(nil)
		if !errors.As(find(c, id), &err) {
			t.Fatalf("%s: no error of the API", id)
		}
		for _, text := range want {
			if !strings.Contains(err.Message+"; "+err.Hint, text) {
				t.Errorf("%s: %q, hint %q, want %q", id, err.Message, err.Hint, text)
			}
		}
	}
	explains("lost", "message lost not found in any queue", "it left its queue before 2026-01-02 02:04:05 UTC, when the history starts")
	ds.Record(api.Delivery{MessageID: "first", Queue: "jobs", Outcome: "done", At: at})
	ds.Record(api.Delivery{MessageID: "good", Queue: "jobs", Outcome: "done", At: at, Attempt: 2})
	ds.Record(api.Delivery{MessageID: "bad", Queue: "jobs", Outcome: "failed", At: at, Reason: "status 500", RetryAt: at})
	explains("good", "completed by jobs at 2026-01-02 03:04:05 UTC, attempt 2")
	explains("bad", "its last attempt in jobs ended failed at 2026-01-02 03:04:05 UTC: status 500", "deleted or has expired")
	explains("first", "it left its queue before 2026-01-02 03:04:05 UTC")
}

func TestSearchForAnotherInstanceEndsBeforeItsPatience(t *testing.T) {
	t.Parallel()
	own, peers := searchTime(caller{}), searchTime(caller{peer: true})
	if peers < 500*time.Millisecond || peers > api.PeerPatience*3/4 || own <= peers {
		t.Errorf("the search takes up to %s for another instance, which waits %s, and %s for others", peers, api.PeerPatience, own)
	}
}

// Messages that were not searched may have the same prefix.
func TestAbbreviatedIDIsNotCompletedFromPartOfTheMessages(t *testing.T) {
	t.Parallel()
	b, ds := newBroker(t), &Deliveries{}
	sendBodies(t, b, "jobs", "waiting")
	ds.Record(api.Delivery{MessageID: "efgh-1", Queue: "jobs", Outcome: "done", At: time.Now()})
	e := &environmentRoutes{opts: &Options{Broker: b, Deliveries: ds}}
	if found, err := e.fullID(t.Context(), "efgh", time.Hour); found.id != "efgh-1" || err != nil {
		t.Errorf("from all messages: %+v, %v", found, err)
	}
	refused := (*api.Error)(nil)
	if _, err := e.fullID(t.Context(), "efgh", -1); !errors.As(err, &refused) || refused.Status != http.StatusConflict ||
		!strings.HasPrefix(refused.Message, "only some of the waiting messages were searched") ||
		refused.Hint != "type the whole ID, such as efgh-1" {
		t.Errorf("from part of the messages: %v", err)
	}
	if found, err := e.fullID(t.Context(), "efgh-1", -1); found.id != "efgh-1" || err != nil {
		t.Errorf("the whole ID: %+v, %v", found, err)
	}
}

func TestMessageIsFoundByTheStartOfItsID(t *testing.T) {
	t.Parallel()
	endings := eventlog.OpenEndings(t.TempDir(), func(err error) { t.Error(err) })
	t.Cleanup(func() { endings.Close() })
	for _, id := range []string{"abcd-1", "abcd-2", "efgh-1"} {
		endings.Add(eventlog.Ending{MessageID: id, Queue: "jobs", Outcome: "done"})
	}
	ds := &Deliveries{}
	ds.Record(api.Delivery{MessageID: "ijkl-1", Queue: "jobs", Outcome: "done", At: time.Now()})
	c := dial(t, &Options{Deliveries: ds, Status: func() api.Status { return api.Status{} }, History: History{Endings: endings}})
	for start, want := range map[string]string{
		"efgh": "message efgh-1 not found in any queue: completed by jobs",
		"ijkl": "message ijkl-1 not found in any queue: completed by jobs",
		"abcd": `the IDs of several messages start with "abcd"; type more of the ID, such as abcd-1 or abcd-2`,
		"efg":  "message efg not found in any queue; type the whole ID, or at least 4 characters of it",
		"zzzz": "message zzzz not found in any queue; unless it waits on Amazon SQS or another server, where messages cannot be looked up by ID, it left",
	} {
		_, err := c.FindMessage(t.Context(), start)
		if e := (*api.Error)(nil); !errors.As(err, &e) || !strings.HasPrefix(e.Message+"; "+e.Hint, want) {
			t.Errorf("%s: %v, want %s", start, err, want)
		}
	}
}
