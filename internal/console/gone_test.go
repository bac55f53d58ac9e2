package console

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tendril/api"
)

func TestMessageInNoQueueIsExplainedFromTheHistory(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ds := NewDeliveries(2)
	c := dial(t, &Options{Deliveries: ds, Status: func() api.Status { return api.Status{StartedAt: at.Add(-time.Hour)} }})
	explains := func(id string, want ...string) {
		t.Helper()
		err := (*api.Error)(nil)
		if !errors.As(c.Gone(t.Context(), id), &err) {
			t.Fatalf("%s: no error of the API", id)
		}
		for _, text := range want {
			if !strings.Contains(err.Message+"; "+err.Hint, text) {
				t.Errorf("%s: %q, hint %q, want %q", id, err.Message, err.Hint, text)
			}
		}
	}
	explains("lost", "message lost not found in any queue", "or was delivered before 2026-01-02 02:04:05 UTC")
	ds.Record(api.Delivery{MessageID: "first", Queue: "jobs", Outcome: "done", At: at})
	ds.Record(api.Delivery{MessageID: "good", Queue: "jobs", Outcome: "done", At: at, Attempt: 2})
	ds.Record(api.Delivery{MessageID: "bad", Queue: "jobs", Outcome: "failed", At: at, Reason: "status 500", RetryAt: at})
	explains("good", "completed by jobs at 2026-01-02 03:04:05 UTC, attempt 2")
	explains("bad", "its last attempt in jobs ended failed at 2026-01-02 03:04:05 UTC: status 500", "deleted or has expired")
	explains("first", "was delivered before 2026-01-02 03:04:05 UTC")
}
