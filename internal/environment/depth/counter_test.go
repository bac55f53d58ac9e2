package depth

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tendril/broker"
	"tendril/internal/aws"
	"tendril/queue"
)

func TestReadCountsWhatWaitsInTheQueueAndInTheWorker(t *testing.T) {
	t.Parallel()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	ctx := t.Context()
	for _, name := range []string{"jobs-dead", "jobs"} {
		if err := b.CreateQueue(ctx, name, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.SetAttributes(ctx, "jobs", map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":3}`, b.ARN("jobs-dead")),
	}); err != nil {
		t.Fatal(err)
	}
	held := 0
	c := New([]Queue{{
		Name: "jobs", DeadLetterQueue: "jobs-dead",
		Held: func() (int, time.Duration) { return held, 0 },
	}}, b, nil)
	want := func(text string, want Reading) {
		t.Helper()
		got, known := c.Read("jobs", time.Now())
		got.Taken, got.Oldest = time.Time{}, 0
		if !known || got != want {
			t.Errorf("%s: %+v (known %t), want %+v", text, got, known, want)
		}
	}
	want("empty", Reading{HasAge: true, HasDeadLetters: true})
	later := time.Minute
	if _, err := b.Queue("jobs").Send(ctx, []queue.Outgoing{{Body: "work"}, {Body: "later", Delay: &later}}); err != nil {
		t.Fatal(err)
	}
	held = 2
	want("one visible, one delayed, two held",
		Reading{Visible: 1, Backlog: 3, Delayed: 1, HasAge: true, HasDeadLetters: true})
	if _, err := b.Queue("jobs-dead").Send(ctx, []queue.Outgoing{{Body: "failed"}}); err != nil {
		t.Fatal(err)
	}
	want("a dead letter", Reading{Visible: 1, Backlog: 3, Delayed: 1, HasAge: true, DeadLetters: 1, HasDeadLetters: true})
	if _, known := c.Embedded("missing"); known {
		t.Error("a queue that does not exist is known")
	}
}

func TestReadingOfAmazonSQSIsForgottenWhenItIsOld(t *testing.T) {
	t.Parallel()
	c, now := New(nil, nil, nil), time.Unix(1_800_000_000, 0)
	c.readings["jobs"] = Reading{Visible: 7, Taken: now}
	if r, known := c.OnSQS("jobs", now.Add(maxAge-time.Second)); !known || r.Visible != 7 {
		t.Errorf("a fresh reading: %+v, %t", r, known)
	}
	if _, known := c.OnSQS("jobs", now.Add(maxAge)); known {
		t.Error("an old reading is known")
	}
	run, stop := context.WithCancel(t.Context())
	stop()
	c.Run(run)
	<-c.Asked() // closed also when there is nothing to ask
}

// TestAgeOnAmazonSQSIsThatOfWhatHasJustBegun: Amazon SQS does not tell how old its messages are.
func TestAgeOnAmazonSQSIsThatOfWhatHasJustBegun(t *testing.T) {
	t.Parallel()
	now, held, waited := time.Unix(1_800_000_000, 0), 2, time.Minute
	c := New([]Queue{{Name: "jobs", OnSQS: &aws.Queue{}, Held: func() (int, time.Duration) { return held, waited }}}, nil,
		nil)
	want := func(text string, backlog int64, oldest time.Duration, hasAge bool) {
		t.Helper()
		if r, known := c.Read("jobs", now); !known || r.Backlog != backlog || r.Oldest != oldest || r.HasAge != hasAge {
			t.Errorf("%s: %+v (known %t)", text, r, known)
		}
	}
	c.readings["jobs"] = Reading{Visible: 7, Taken: now}
	want("work has begun", 9, time.Minute, true)
	held, waited = 0, 0
	want("nothing has begun", 7, 0, false)
	c.readings["jobs"] = Reading{Taken: now}
	want("empty", 0, 0, true)
}
