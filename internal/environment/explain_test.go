package environment

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tendril/internal/observe/series"
	"tendril/queue"
)

// The app of one queue hangs and holds all slots.
func TestStatusNamesTheQueueThatHoldsAllSlots(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(app.Close)
	r := run(t, map[string]string{"queues": "payments,mail", "target": app.URL, "http-connections": "3"}, nil)
	t.Cleanup(func() { close(release) })
	send := func(name string, n int) {
		t.Helper()
		for range n {
			if _, err := r.queues.broker.Queue(name).Send(t.Context(), []queue.Outgoing{{Body: "work"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	send("payments", 5)
	eventually(t, "payments holds all slots", func() bool { return r.work.all[0].worker.Status().InWork == 3 })
	send("mail", 1)

	workers := r.Status().Workers
	if got := workers[0].Why; got != "at its maximum of 3 in flight" || workers[0].LongestMessageID == "" {
		t.Errorf("payments: %q, %+v", got, workers[0])
	}
	if got := workers[1]; got.State != "Waiting" || got.Why != "no free slot: payments holds 3 of 3" {
		t.Errorf("mail: %+v", got)
	}
	if err := r.work.pause("mail", newPause("audit", "owner")); err != nil {
		t.Fatal(err)
	}
	if got := r.Status().Workers[1].Why; !strings.HasPrefix(got, "by owner since ") || !strings.HasSuffix(got, " UTC: audit") {
		t.Errorf("mail is paused %q", got)
	}
}

func TestDrainTimeIsKnownOnlyForAShrinkingBacklog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		waiting  int64
		rate     series.Rate
		embedded bool
		want     float64
	}{
		"shrinks":              {100, series.Rate{In: 2, Out: 12}, true, 10},
		"grows":                {100, series.Rate{In: 12, Out: 2}, true, 0},
		"arrivals are unknown": {100, series.Rate{In: 12, Out: 10}, false, 10},
		"nothing is delivered": {100, series.Rate{}, true, 0},
		"nothing waits":        {0, series.Rate{Out: 3}, true, 0},
	} {
		if got := drainSeconds(c.waiting, c.rate, c.embedded); got != c.want {
			t.Errorf("%s: %v s, want %v", name, got, c.want)
		}
	}
}
