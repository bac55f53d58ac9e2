package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/queue"

	"github.com/google/go-cmp/cmp"
)

func TestAttemptsAreShownWithTheirMessage(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	ids := sendBodies(t, b, "jobs", "one", "two", "three")
	deadLetter(t, b, 3)
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for i, id := range ids[:2] {
		b.RecordAttempt("jobs", id, broker.Attempt{At: at, Instance: "here", Outcome: "failed", Status: 422,
			Reason: "HTTP 422", Answer: fmt.Sprint("no customer ", i), Duration: 1500 * time.Millisecond, ReceiveCount: 1,
			RetryAt: at.Add(time.Minute)})
	}
	c := dial(t, &Options{Broker: b})
	want := []api.Attempt{{At: at, Instance: "here", Outcome: "failed", Status: 422, Reason: "HTTP 422",
		Answer: "no customer 1", DurationMS: 1500, ReceiveCount: 1, RetryAt: at.Add(time.Minute)}}
	m, err := c.Message(t.Context(), "jobs-dead", ids[1])
	if diff := cmp.Diff(want, m.Attempts); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	groups, err := c.Reasons(t.Context(), "jobs-dead")
	if err != nil || len(groups) != 2 {
		t.Fatalf("groups %+v, %v", groups, err)
	}
	for i, reason := range []string{"HTTP 422 no customer #", ""} {
		g := groups[i]
		page, _, err := c.Messages(t.Context(), "jobs-dead", api.Filter{Selection: api.Selection{Reason: &g.Reason}})
		if err != nil || g.Reason != reason || len(page) != g.Count || g.Count != 2-i || g.Hours[22]+g.Hours[23] != 2-i {
			t.Errorf("group %+v: %d messages, %v", g, len(page), err)
		}
		for _, m := range page {
			if (len(m.Attempts) > 0) != (reason != "") {
				t.Errorf("%q shows %+v", reason, m)
			}
		}
	}
}

// The app's responses may quote the message.
func TestAnswersAreHiddenWithBodies(t *testing.T) {
	t.Parallel()
	opts, id := filled(t, Access{HideBodies: true})
	if _, err := opts.Broker.Queue("jobs").Receive(t.Context(), queue.ReceiveRequest{Max: 1}); err != nil {
		t.Fatal(err)
	}
	failed := broker.Attempt{At: time.Now(), Outcome: "failed", Status: 500, Answer: "bad plum"}
	opts.Broker.RecordAttempt("jobs", id, failed)
	s := New(opts)
	list := "/api/v1/queues/jobs/messages"
	for _, path := range []string{list, list + "?body=1", list + "/" + id, list + "/" + id + "?body=1"} {
		code, body := exchange(t, s, with(get(path), "Authorization", "Bearer "+testToken))
		got := fmt.Sprint(code, " ", body)
		if !strings.Contains(got, "status:500") || strings.Contains(got, "bad plum") != strings.Contains(path, "body=1") {
			t.Errorf("%s: %s", path, got)
		}
	}
	code, _ := exchange(t, s, get("/api/v1/queues/jobs/reasons"))
	if code != http.StatusUnauthorized {
		t.Errorf("reasons without a token: %d", code)
	}
}
