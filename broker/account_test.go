package broker

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func TestReferencesSurviveAChangeOfAccountAndRegion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := openDir(t, dir, quiet())
		create(t, b, "dead", nil)
		create(t, b, "work", map[string]string{"VisibilityTimeout": "0",
			"RedrivePolicy": policy(b, "dead", 1)})
		send(t, b.Queue("work"), body("before")...)
		take(t, b.Queue("work"), 1)
		take(t, b.Queue("work"), 1)
		closeBroker(t, b)

		b = openDir(t, dir, &Options{NoWaits: true, Region: "eu-west-1", AccountID: "123456789012"})
		q := b.Queue("work")
		send(t, q, body("after")...)
		take(t, q, 1)
		if got := take(t, q, 1); len(got) > 0 {
			t.Errorf("received more often than its redrive policy allows: %v", got)
		}
		attributes, err := b.Attributes("work")
		if name, most := queue.ParseRedrivePolicy(attributes["RedrivePolicy"]); err != nil || name != "dead" || most != 1 ||
			!strings.Contains(attributes["RedrivePolicy"], b.ARN("dead")) {
			t.Errorf("the policy is %s, %v", attributes["RedrivePolicy"], err)
		}
		if sources, err := b.DeadLetterSources("dead"); err != nil || len(sources) != 1 {
			t.Errorf("the dead letters are of %v, %v", sources, err)
		}
		page := browsed(t, b, "dead", BrowseRequest{})
		if len(page) != 2 {
			t.Fatalf("dead letters: %v", page)
		}
		for _, m := range page {
			if m.DeadLetterSource != b.ARN("work") {
				t.Errorf("%s came from %s", m.Body, m.DeadLetterSource)
			}
		}
		if n, err := b.Move(t.Context(), "dead", "", []string{page[0].ID}); n != 1 || err != nil {
			t.Errorf("moved %d back, %v", n, err)
		}
		if _, err := b.StartMoveTask(t.Context(), MoveRequest{Source: b.ARN("dead")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if l, err := b.Ledger("work"); err != nil || l.Live != 2 {
			t.Errorf("back in the queue: %+v, %v", l, err)
		}
		err = b.SetAttributes(t.Context(), "work", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":` +
			`"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":1}`})
		if err == nil {
			t.Error("a policy with the ARN of another account was accepted")
		}
	})
}

func TestEnsureQueueDoesNotWaitAfterADeletion(t *testing.T) {
	t.Parallel()
	b := openTest(t, &Options{})
	create(t, b, "dead", nil)
	if err := b.DeleteQueue(t.Context(), "dead"); err != nil {
		t.Fatal(err)
	}
	if err := b.CreateQueue(t.Context(), "dead", nil, nil); err == nil {
		t.Error("a client did not have to wait")
	}
	for range 2 {
		if err := b.EnsureQueue(t.Context(), "dead", map[string]string{"VisibilityTimeout": "7"}); err != nil {
			t.Error(err)
		}
	}
}
