package environment

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tendril/broker"
	"tendril/internal/aws"
	"tendril/queue"
)

func TestDepthIncludesMessagesHeldByTheWorker(t *testing.T) {
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
	c := newDepthCounter([]countedQueue{{
		name: "jobs", deadLetterQueue: "jobs-dead",
		held: func() (int, time.Duration) { return held, 0 },
	}}, b)
	want := func(text string, want depth) {
		t.Helper()
		got, known := c.read("jobs", time.Now())
		got.taken, got.oldest = time.Time{}, 0
		if !known || got != want {
			t.Errorf("%s: %+v (known %t), want %+v", text, got, known, want)
		}
	}
	want("empty", depth{hasAge: true, hasDeadLetters: true})
	later := time.Minute
	if _, err := b.Queue("jobs").Send(ctx, []queue.Outgoing{{Body: "work"}, {Body: "later", Delay: &later}}); err != nil {
		t.Fatal(err)
	}
	held = 2
	want("one visible, one delayed, two held",
		depth{visible: 1, backlog: 3, delayed: 1, hasAge: true, hasDeadLetters: true})
	if _, err := b.Queue("jobs-dead").Send(ctx, []queue.Outgoing{{Body: "failed"}}); err != nil {
		t.Fatal(err)
	}
	want("a dead letter", depth{visible: 1, backlog: 3, delayed: 1, hasAge: true, deadLetters: 1, hasDeadLetters: true})
	if _, known := c.embedded("missing"); known {
		t.Error("a queue that does not exist is known")
	}
}

func TestOldReadingOfAmazonSQSIsForgotten(t *testing.T) {
	t.Parallel()
	c, now := newDepthCounter(nil, nil), time.Unix(1_800_000_000, 0)
	c.readings["jobs"] = depth{visible: 7, taken: now}
	if r, known := c.onSQS("jobs", now.Add(maxCountAge-time.Second)); !known || r.visible != 7 {
		t.Errorf("a fresh reading: %+v, %t", r, known)
	}
	if _, known := c.onSQS("jobs", now.Add(maxCountAge)); known {
		t.Error("an old reading is known")
	}
	run, stop := context.WithCancel(t.Context())
	stop()
	c.run(run)
	<-c.askedOnce()
}

// Amazon SQS does not report the age of messages, so the longest wait of recent deliveries is used.
func TestAgeOnAmazonSQSIsTheLongestWaitOfRecentDeliveries(t *testing.T) {
	t.Parallel()
	now, held, waited := time.Unix(1_800_000_000, 0), 2, time.Minute
	c := newDepthCounter([]countedQueue{{name: "jobs", remote: &aws.Queue{}, held: func() (int, time.Duration) { return held, waited }}}, nil)
	want := func(text string, backlog int64, oldest time.Duration, hasAge bool) {
		t.Helper()
		if r, known := c.read("jobs", now); !known || r.backlog != backlog || r.oldest != oldest || r.hasAge != hasAge {
			t.Errorf("%s: %+v (known %t)", text, r, known)
		}
	}
	c.readings["jobs"] = depth{visible: 7, taken: now}
	want("work has begun", 9, time.Minute, true)
	held, waited = 0, 0
	want("nothing has begun", 7, 0, false)
	c.readings["jobs"] = depth{taken: now}
	want("empty", 0, 0, true)
}

func TestDeadLetterQueueIsKnownFromStartup(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		read *depth
		want string
	}{
		"not read yet":   {nil, "at startup"},
		"read":           {&depth{deadLetterQueue: "read", taken: now}, "read"},
		"none since":     {&depth{taken: now}, ""},
		"read too early": {&depth{deadLetterQueue: "read", taken: now.Add(-maxCountAge)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			counter := newDepthCounter([]countedQueue{{name: "jobs", deadLetterQueue: "at startup"}}, nil)
			if c.read != nil {
				counter.readings["jobs"] = *c.read
			}
			if got := counter.redrivePolicy("jobs", now).deadLetterQueue; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
