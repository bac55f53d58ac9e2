package environment

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tendril/api"
	"tendril/internal/observe/logging"
	"tendril/internal/worker"
	"tendril/queue"
)

func TestConsoleShowsTheFateOfAMessage(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-answer
		http.Error(w, "no such order\nat line 3", http.StatusInternalServerError)
	}))
	t.Cleanup(app.Close)
	r := run(t, map[string]string{"queue": "jobs", "target": app.URL, "max-retries": "2",
		"error-visibility-timeout": "0"}, nil)
	sent, err := r.queues.broker.Queue("jobs").Send(t.Context(), []queue.Outgoing{{Body: "work"}})
	if err != nil {
		t.Fatal(err)
	}
	id := sent[0].ID
	var d api.Delivery
	eventually(t, "the attempt in work", func() bool {
		d, _ = r.work.inWork(id)
		return d.Outcome == api.InWork && d.Attempt == 1
	})
	answer <- struct{}{}
	if d, err = r.observe.shown.Wait(t.Context(), id); err != nil || d.Answer != "no such order" || d.RetryAt.IsZero() ||
		d.DeadLetterQueue != "" {
		t.Errorf("the first attempt: %+v, %v", d, err)
	}
	answer <- struct{}{}
	eventually(t, "the second attempt", func() bool { d = r.observe.shown.Recent(1)[0]; return d.Attempt == 2 })
	if d.DeadLetterQueue != "jobs-dead" || !d.RetryAt.IsZero() {
		t.Errorf("the last attempt: %+v", d)
	}
	res, err := http.Get("http://" + r.instance.address + "/api/v1/messages/" + id + "/outcome")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var open bytes.Buffer
	if _, err := open.ReadFrom(res.Body); err != nil || !strings.Contains(open.String(), "jobs-dead") ||
		strings.Contains(open.String(), "no such order") {
		t.Errorf("without the token: %s, %v", open.String(), err)
	}
	l := r.work.all[0]
	for _, tt := range []struct {
		name    string
		policy  string
		outcome queue.Outcome
		here    int
		says    queue.Instruction
		want    logging.Redelivery
	}{
		{"before the last", "", queue.Failed, 1, 0, logging.Redelivery{Known: true, MaxReceives: 2}},
		{"the last", "", queue.Failed, 2, 0, logging.Redelivery{Known: true, MaxReceives: 2, DeadLetterQueue: "jobs-dead"}},
		{"told at the first", "", queue.Failed, 1, queue.DeadLetterNow,
			logging.Redelivery{Known: true, MaxReceives: 2, DeadLetterQueue: "jobs-dead"}},
		{"told without a count that is known", "", queue.Failed, 0, queue.TerminalStatus,
			logging.Redelivery{Known: true, MaxReceives: 2, DeadLetterQueue: "jobs-dead"}},
		{"not received", "", queue.Unreached, 2, 0, logging.Redelivery{Known: true}},
		{"done", "", queue.Done, 2, 0, logging.Redelivery{}},
		{"a count that is not known", "", queue.Failed, 0, 0, logging.Redelivery{}},
		{"no policy", "none", queue.Failed, 2, 0, logging.Redelivery{Known: true}},
	} {
		if tt.policy == "none" {
			if err := r.queues.broker.SetAttributes(context.Background(), "jobs", map[string]string{"RedrivePolicy": ""}); err != nil {
				t.Fatal(err)
			}
		}
		settled := worker.Settled{Outcome: tt.outcome, ReceivesHere: tt.here, DeadLettering: tt.says != 0}
		settled.Instruction = tt.says
		if got := r.work.afterFailure(l.queue, &settled); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}
