package environment

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/observe/eventlog"
	"tendril/queue"
)

func TestExpiredMessageIsNotDone(t *testing.T) {
	t.Parallel()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(app.Close)
	r := run(t, map[string]string{"queue": "jobs", "target": app.URL, "max-retries": "100",
		"error-visibility-timeout": "0"}, func(e *Environment) {
		e.settings.queue(0).RetentionPeriod = time.Millisecond
	})
	sent, err := r.queues.broker.Queue("jobs").Send(t.Context(), []queue.Outgoing{{Body: "work"}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message deleted", func() bool { l, _ := r.queues.broker.Ledger("jobs"); return l.Live == 0 })
	if l, _ := r.queues.broker.Ledger("jobs"); l.Sent != 1 || l.Done != 0 || l.Expired != 1 {
		t.Errorf("the ledger is %+v", l)
	}
	eventually(t, "it is a cause of the health", func() bool {
		return strings.Contains(strings.Join(r.observe.monitor.Report().Causes, " "),
			"1 message of jobs deleted in the last 5 minutes at the end of the retention period")
	})
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
	endings := eventlog.OpenEndings(r.settings.now().DataDir, func(err error) { t.Error(err) })
	if e, _, err := endings.Find(sent[0].ID, ""); err != nil || e.Outcome != api.MessageExpired || e.Queue != "jobs" {
		t.Errorf("after the end, the message's ending is %+v, %v", e, err)
	}
	if err := endings.Close(); err != nil {
		t.Error(err)
	}
}
