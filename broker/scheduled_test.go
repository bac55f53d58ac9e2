package broker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func TestScheduledMessageOutlastsARestartAndItsRetentionBeginsWhenItIsVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		q := create(t, b, "work", map[string]string{"MessageRetentionPeriod": "3600", "VisibilityTimeout": "0"})
		at := time.Now().Add(30 * 24 * time.Hour).Add(300 * time.Millisecond)
		sent := send(t, q, queue.Outgoing{Body: "later", NotBefore: at}, queue.Outgoing{Body: "now"})
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if l, err := b.Ledger("work"); err != nil || l.Expired != 1 || l.Delayed != 1 || l.Live != 1 {
			t.Fatalf("ledger %+v, %v: what was sent behind it should have expired", l, err)
		}
		b = reopen(t, b)
		q = b.Queue("work")
		s := storedMessage(t, b, "work", sent[0].ID)
		due := at.Truncate(time.Second).Add(time.Second)
		if s.State != Delayed || !s.Until.Equal(due) || !s.SentAt.Equal(due) {
			t.Errorf("after a restart %s until %s, sent %s; want delayed until %s", s.State, s.Until, s.SentAt, due)
		}
		time.Sleep(time.Until(due) - time.Millisecond)
		if got := take(t, q, 1); len(got) != 0 {
			t.Errorf("received %s too early", texts(got))
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := one(t, q); got.ID != sent[0].ID || !got.SentAt.Equal(due) {
			t.Errorf("received %+v", got)
		}
		time.Sleep(time.Hour - 2*time.Second)
		synctest.Wait()
		if l, _ := b.Ledger("work"); l.Live != 1 {
			t.Errorf("ledger %+v before the end of its retention", l)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if l, _ := b.Ledger("work"); l.Live != 0 || l.Expired != 2 {
			t.Errorf("ledger %+v after its retention", l)
		}
	})
}

func TestAttributeSchedulesAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		q := create(t, b, "work", map[string]string{"DelaySeconds": "30"})
		f := create(t, b, "work.fifo", map[string]string{"FifoQueue": "true"})
		at := func(kind, value string) queue.Outgoing {
			return queue.Outgoing{Body: "x", GroupID: "g",
				Attributes: []queue.Attribute{{Name: queue.AttributeNotBefore, Type: kind, Value: value}}}
		}
		in := time.Now().Add(3 * time.Hour)
		for _, c := range []struct {
			out  queue.Outgoing
			wait time.Duration
		}{
			{at("String", in.Format(time.RFC3339)), 3 * time.Hour},
			{at("Number", fmt.Sprint(in.Unix())), 3 * time.Hour},
			{at("Number.int", fmt.Sprint(in.Unix())), 3 * time.Hour},
			{at("String", "1999-12-31T23:59:59+01:00"), 30 * time.Second},
			{at("Number", fmt.Sprint(time.Now().Unix()+10)), 30 * time.Second},
			{at("Number", fmt.Sprint(time.Now().Unix()+40)), 40 * time.Second},
		} {
			s := storedMessage(t, b, "work", send(t, q, c.out)[0].ID)
			if got := time.Until(s.Until); got != c.wait {
				t.Errorf("%+v: visible in %s, want %s", c.out.Attributes, got, c.wait)
			}
			if len(s.Attributes) != 1 {
				t.Errorf("attributes %+v", s.Attributes)
			}
		}
		for name, c := range map[string]struct {
			q   *Queue
			out queue.Outgoing
		}{
			"no time": {q, at("String", "tomorrow")}, "milliseconds": {q, at("Number", fmt.Sprint(in.UnixMilli()))},
			"bytes": {q, at("Binary", fmt.Sprint(in.Unix()))}, "FIFO": {f, at("String", in.Format(time.RFC3339))},
		} {
			if c.out.DedupID = ""; c.q == f {
				c.out.DedupID = "d"
			}
			sent, err := c.q.Send(context.Background(), []queue.Outgoing{c.out})
			if err != nil || !errors.Is(sent[0].Err, &queue.Error{Code: queue.CodeInvalidParameterValue}) {
				t.Errorf("%s: %v, %+v", name, err, sent)
			}
		}
	})
}

func TestMessageNotBeforeNowIsSentNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := create(t, openTest(t, nil), "work", nil)
		time.Sleep(303 * time.Millisecond) // between two points of the delay grid
		now := time.Now()
		send(t, q, queue.Outgoing{Body: "a", NotBefore: now})
		if got := one(t, q); !got.SentAt.Equal(now) {
			t.Errorf("sent %s, want %s", got.SentAt, now)
		}
	})
}

func TestRescheduleOfAScheduledMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		q := create(t, b, "work", map[string]string{"MessageRetentionPeriod": "3600"})
		later := queue.Outgoing{Body: "later", NotBefore: time.Now().Add(48 * time.Hour)}
		sent := send(t, q, later, later)
		time.Sleep(time.Minute)
		if err := q.Reschedule(t.Context(), sent[0].ID, 0); err != nil {
			t.Fatal(err)
		}
		if err := q.Reschedule(t.Context(), sent[1].ID, time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := one(t, q); got.ID != sent[0].ID || time.Since(got.SentAt) != 0 {
			t.Errorf("received %+v", got)
		}
		if l, _ := b.Ledger("work"); l.Delayed != 1 || l.InFlight != 1 {
			t.Errorf("ledger %+v", l)
		}
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if l, _ := b.Ledger("work"); l.Expired != 1 || l.Visible != 1 {
			t.Errorf("ledger %+v: the first is past its retention, the second just visible", l)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if l, _ := b.Ledger("work"); l.Expired != 2 {
			t.Errorf("ledger %+v", l)
		}
	})
}

func TestOldestAgePassesOverScheduledMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		q := create(t, b, "work", nil)
		want := func(d time.Duration) {
			t.Helper()
			if got, err := b.OldestAge("work"); err != nil || got != d {
				t.Errorf("the oldest message is %s old, %v; want %s", got, err, d)
			}
		}
		send(t, q, queue.Outgoing{Body: "later", NotBefore: time.Now().Add(time.Hour)})
		time.Sleep(time.Minute)
		want(0)
		send(t, q, queue.Outgoing{Body: "now"})
		time.Sleep(10 * time.Minute)
		want(10 * time.Minute)
		if errs := q.Delete(t.Context(), []string{one(t, q).ReceiptHandle}); errs != nil {
			t.Fatal(errs)
		}
		want(0)
		time.Sleep(time.Hour)
		want(11 * time.Minute)
	})
}

// The expired message is behind more scheduled ones than one sweep reads.
func TestSweepPassesOverScheduledMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		q := create(t, b, "work", map[string]string{"MessageRetentionPeriod": "60"})
		at := time.Now().Add(time.Hour)
		for range (sweepWalk + 100) / queue.MaxBatch {
			batch := make([]queue.Outgoing, queue.MaxBatch)
			for i := range batch {
				batch[i] = queue.Outgoing{Body: "x", NotBefore: at}
			}
			send(t, q, batch...)
		}
		send(t, q, queue.Outgoing{Body: "now"})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if l, _ := b.Ledger("work"); l.Expired != 1 || l.Delayed != sweepWalk+100 {
			t.Errorf("ledger %+v", l)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if l, _ := b.Ledger("work"); l.Live != 0 {
			t.Errorf("ledger %+v", l)
		}
	})
}
