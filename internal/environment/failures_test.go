package environment

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/console"
	"tendril/internal/observe/eventlog"
	"tendril/internal/sqsapi"
	"tendril/queue"
)

func standInForSQS(t *testing.T, name, dead string) (*broker.Broker, string) {
	t.Helper()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	h := sqsapi.New(b, &sqsapi.Options{})
	server := httptest.NewServer(h)
	t.Cleanup(func() { h.Stop(); server.Close() })
	attributes := map[string]string{}
	if queue.IsFIFO(name) {
		attributes["FifoQueue"] = "true"
	}
	for _, q := range []string{dead, name} {
		if err := b.CreateQueue(t.Context(), q, attributes, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.SetAttributes(t.Context(), name, map[string]string{"RedrivePolicy": fmt.Sprintf(
		`{"deadLetterTargetArn":%q,"maxReceiveCount":2}`, b.ARN(dead))}); err != nil {
		t.Fatal(err)
	}
	for variable, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_REGION": "us-east-1", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"} {
		t.Setenv(variable, value)
	}
	return b, server.URL + "/000000000000/" + name
}

func failingApp(t *testing.T) string {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no such order", http.StatusUnprocessableEntity)
	}))
	t.Cleanup(app.Close)
	return app.URL
}

func deadLetters(t *testing.T, b *broker.Broker, name string, n int) (found []queue.Message) {
	t.Helper()
	eventually(t, "the dead letters", func() bool {
		ledger, err := b.Ledger(name)
		return err == nil && ledger.Live >= int64(n)
	})
	found, err := b.Queue(name).Receive(t.Context(), queue.ReceiveRequest{Max: queue.MaxBatch})
	if err != nil || len(found) != n {
		t.Fatalf("%d dead letters, %v", len(found), err)
	}
	return found
}

func TestDeadLetterOnSQSContainsTheFailureReason(t *testing.T) {
	b, url := standInForSQS(t, "jobs", "jobs-dead")
	r := run(t, map[string]string{"queue-url": url, "target": failingApp(t), "error-visibility-timeout": "0",
		"dead-letter-reasons": "true"}, nil)
	<-r.work.depths.askedOnce()
	body := "{\"order\":\t7}\r\n\u00e9"
	attributes := []queue.Attribute{{Name: "blob", Type: "Binary", Value: "\x00\xff"}, {Name: "n", Type: "Number.int",
		Value: "7"}}
	sent, err := b.Queue("jobs").Send(t.Context(), []queue.Outgoing{{Body: body, Attributes: attributes,
		TraceHeader: "Root=1-67891233-abcdef012345678912345678"}})
	if err != nil || sent[0].Err != nil {
		t.Fatal(err, sent)
	}
	m := deadLetters(t, b, "jobs-dead", 1)[0]
	others, f := queue.CutReason(m.Attributes)
	if f == nil || f.Reason != "HTTP 422" || f.Status != 422 || f.Answer != "no such order" || f.Attempts != 2 ||
		f.Receives != 2 || f.MessageID != sent[0].ID || f.Source != b.ARN("jobs") || f.Instance == "" ||
		time.Since(f.FailedAt) > patience || f.SentAt.IsZero() {
		t.Errorf("the reason: %+v", f)
	}
	if diff := cmp.Diff(attributes, others); diff != "" || m.Body != body ||
		m.TraceHeader != "Root=1-67891233-abcdef012345678912345678" || m.DeadLetterSource != "" {
		t.Errorf("the dead letter: %+v\n%s", m, diff)
	}
	eventually(t, "the original to be deleted", func() bool {
		ledger, err := b.Ledger("jobs")
		return err == nil && ledger.Live == 0 && ledger.Done == 1 && ledger.DeadLettered == 0
	})
	if log := r.log.String(); !strings.Contains(log, "message dead-lettered") {
		t.Error("the dead letter is not logged")
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

func TestStatusCountsDeadLettersOnSQS(t *testing.T) {
	b, url := standInForSQS(t, "jobs", "jobs-dead")
	for name, n := range map[string]int{"jobs": 3, "jobs-dead": 2} {
		if _, err := b.Queue(name).Send(t.Context(), slices.Repeat([]queue.Outgoing{{Body: "work"}}, n)); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, map[string]string{"queue-url": url, "target": "http://127.0.0.1:1/"}, nil)
	<-r.work.depths.askedOnce()
	shown := map[string][2]int64{}
	for _, q := range r.Status().Queues {
		shown[q.Name+" to "+q.DeadLetterQueue+" at "+q.URL] = [2]int64{q.Ledger.Live, q.Ledger.Visible}
	}
	want := map[string][2]int64{"jobs to jobs-dead at " + url: {3, 3}, "jobs-dead to  at " + url + "-dead": {2, 2}}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Error(diff)
	}

	if err := b.DeleteQueue(t.Context(), "jobs-dead"); err != nil {
		t.Fatal(err)
	}
	r.work.depths.updateFromSQS(t.Context(), r.work.depths.queues["jobs"])
	if q := r.Status().Queues; len(q) != 1 || q[0].Problem() != "its dead-letter queue jobs-dead does not exist" ||
		len(r.observe.problems.findHere()) != 1 {
		t.Errorf("after its deletion: %+v, problems %+v", q, r.observe.problems.findHere())
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

// Dead letters must keep their message groups.
func TestDeadLettersOfAFIFOQueueKeepTheirOrder(t *testing.T) {
	b, url := standInForSQS(t, "jobs.fifo", "dead.fifo")
	r := run(t, map[string]string{"queue-url": url, "target": failingApp(t), "error-visibility-timeout": "0",
		"dead-letter-reasons": "true"}, nil)
	<-r.work.depths.askedOnce()
	const n = 6
	for i := range n {
		if _, err := b.Queue("jobs.fifo").Send(t.Context(), []queue.Outgoing{{Body: fmt.Sprint(i), GroupID: "g",
			DedupID: fmt.Sprint("d", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	for i, m := range deadLetters(t, b, "dead.fifo", n) {
		_, f := queue.CutReason(m.Attributes)
		if m.Body != fmt.Sprint(i) || m.GroupID != "g" || f == nil || m.DedupID != f.MessageID {
			t.Errorf("dead letter %d: %+v, %+v", i, m, f)
		}
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

func TestLastFailuresOnSQSSurviveARestart(t *testing.T) {
	b, url := standInForSQS(t, "jobs", "jobs-dead")
	flags := map[string]string{"queue-url": url, "error-visibility-timeout": "0", "data-dir": t.TempDir()}
	good := false
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if good {
			return
		}
		http.Error(w, "no such order", http.StatusUnprocessableEntity)
		good = r.Header.Get("X-Aws-Sqsd-Receive-Count") == "2"
	}))
	t.Cleanup(app.Close)
	flags["target"] = app.URL
	first := run(t, flags, nil)
	<-first.work.depths.askedOnce()
	sent, err := b.Queue("jobs").Send(t.Context(), []queue.Outgoing{{Body: "bad"}})
	if err != nil {
		t.Fatal(err)
	}
	var before api.Delivery
	eventually(t, "the second failure", func() bool {
		recent := first.observe.shown.Recent(1)
		if len(recent) > 0 {
			before = recent[0]
		}
		return before.Attempt == 2
	})
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	second := run(t, flags, nil)
	restored, err := second.observe.shown.Wait(t.Context(), sent[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	before.At, before.RetryAt = before.At.UTC().Round(0), before.RetryAt.UTC().Round(0)
	if restored.At.Before(before.At) || restored.At.After(ended) || restored.Answer != "no such order" {
		t.Errorf("restored %+v", restored)
	}
	restored.At = before.At
	if diff := cmp.Diff(before, restored); diff != "" {
		t.Errorf("(-before +restored)\n%s", diff)
	}
	if before.DeadLetterQueue != "jobs-dead" || len(second.observe.shown.Problems()) != 1 {
		t.Errorf("before %+v, problems %+v", before, second.observe.shown.Problems())
	}
	if err := second.end(); err != nil {
		t.Error(err)
	}
}

func TestWhichDeliveriesAreKept(t *testing.T) {
	t.Parallel()
	log := eventlog.OpenFailures(t.TempDir(), func(err error) { t.Error(err) })
	f := failures{shown: &console.Deliveries{}}
	onSQS, embedded := &workQueue{}, &workQueue{embedded: true}
	f.record(onSQS, &api.Delivery{MessageID: "before the data directory is ours", Outcome: "failed"})
	if err := f.restore(log); err != nil {
		t.Fatal(err)
	}
	for _, d := range []struct {
		on *workQueue
		api.Delivery
	}{
		{onSQS, api.Delivery{MessageID: "failed", Outcome: "failed", ReceiveCount: 1}},
		{onSQS, api.Delivery{MessageID: "unreached", Outcome: "unreached"}},
		{onSQS, api.Delivery{MessageID: "done", Outcome: "done", ReceiveCount: 1}},
		{onSQS, api.Delivery{MessageID: "done after a failure", Outcome: "done", ReceiveCount: 2}},
		{embedded, api.Delivery{MessageID: "embedded", Outcome: "failed", ReceiveCount: 1}},
	} {
		f.record(d.on, &d.Delivery)
	}
	events, err := log.Read(eventlog.Query{})
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for i := range events {
		kept = append(kept, deliveryOf(&events[i]).MessageID)
	}
	if got := strings.Join(kept, ", "); got != "failed, done after a failure" || len(f.shown.Recent(0)) != 6 {
		t.Errorf("kept %s; %d are shown", got, len(f.shown.Recent(0)))
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

func TestMessagesOnSQSThatEndedAreFoundAfterARestart(t *testing.T) {
	b, url := standInForSQS(t, "jobs", "jobs-dead")
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) == "bad" {
			http.Error(w, "no such order", http.StatusUnprocessableEntity)
		}
	}))
	t.Cleanup(app.Close)
	r := run(t, map[string]string{"queue-url": url, "target": app.URL, "error-visibility-timeout": "0"}, nil)
	<-r.work.depths.askedOnce()
	sent, err := b.Queue("jobs").Send(t.Context(), []queue.Outgoing{{Body: "good"}, {Body: "bad"}})
	if err != nil {
		t.Fatal(err)
	}
	deadLetters(t, b, "jobs-dead", 1)
	eventually(t, "the deletion", func() bool { l, _ := b.Ledger("jobs"); return l.Live == 0 })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}

	endings := eventlog.OpenEndings(r.settings.now().DataDir, func(err error) { t.Error(err) })
	for i, want := range []eventlog.Ending{{Outcome: "done", Receives: 1}, {Outcome: api.MessageDeadLettered, Receives: 2, To: "jobs-dead"}} {
		e, _, err := endings.Find(sent[i].ID, "")
		want.At, want.MessageID, want.Queue = e.At, sent[i].ID, "jobs"
		if e != want || err != nil {
			t.Errorf("%+v, %v, want %+v", e, err, want)
		}
	}
	if err := endings.Close(); err != nil {
		t.Error(err)
	}
}
