package broker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func onEachType(t *testing.T, do func(t *testing.T, name string, attributes map[string]string)) {
	t.Run("standard", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { do(t, "work", nil) })
	})
	t.Run("FIFO", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			do(t, "work.fifo", fifoAttributes)
		})
	})
}

func outgoing(texts ...string) (out []queue.Outgoing) {
	for _, text := range texts {
		out = append(out, queue.Outgoing{Body: text, GroupID: "g"})
	}
	return out
}

func TestRescheduleMakesAMessageInFlightVisible(t *testing.T) {
	onEachType(t, func(t *testing.T, name string, attributes map[string]string) {
		b := openTest(t, nil)
		q := create(t, b, name, attributes)
		send(t, q, outgoing("a")...)
		first := one(t, q)
		if err := b.Queue(name).Reschedule(t.Context(), first.ID, 0); err != nil {
			t.Fatal(err)
		}
		second := one(t, q)
		if second.ID != first.ID || second.ReceiveCount != 2 {
			t.Errorf("received %+v", second)
		}
		if err := b.Queue(name).Reschedule(t.Context(), first.ID, 90*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(89 * time.Second)
		if got := take(t, q, 1); len(got) != 0 {
			t.Errorf("received %s too early", texts(got))
		}
		time.Sleep(2 * time.Second)
		if third := one(t, q); third.ReceiveCount != 3 {
			t.Errorf("received %+v", third)
		}
		if err := b.Queue(name).Reschedule(t.Context(), first.ID, queue.MaxVisibility); err == nil {
			t.Error("a flight of more than 12 hours")
		}
	})
}

func TestRescheduleDelaysAVisibleMessage(t *testing.T) {
	onEachType(t, func(t *testing.T, name string, attributes map[string]string) {
		b := openTest(t, nil)
		q := create(t, b, name, attributes)
		sent := send(t, q, outgoing("a", "b")...)
		if err := b.Queue(name).Reschedule(t.Context(), sent[0].ID, time.Hour); err != nil {
			t.Fatal(err)
		}
		if s := storedMessage(t, b, name, sent[0].ID); s.State != Delayed || time.Until(s.Until).Round(time.Second) != time.Hour {
			t.Errorf("the message is %s until %s", s.State, s.Until)
		}
		if l, _ := b.Ledger(name); l.Delayed != 1 || l.Visible != 1 {
			t.Errorf("ledger %+v", l)
		}
		b = reopen(t, b)
		q = b.Queue(name)
		if err := b.Queue(name).Reschedule(t.Context(), sent[0].ID, 2*time.Hour); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour + time.Minute)
		if s := storedMessage(t, b, name, sent[0].ID); s.State != Delayed {
			t.Errorf("the message is %s", s.State)
		}
		if err := b.Queue(name).Reschedule(t.Context(), sent[0].ID, 0); err != nil {
			t.Fatal(err)
		}
		if l, _ := b.Ledger(name); l.Delayed != 0 || l.Visible != 2 {
			t.Errorf("ledger %+v", l)
		}
		if got := take(t, q, 10); len(got) != 2 || got[0].ReceiveCount != 1 {
			t.Errorf("received %s", texts(got))
		}
	})
}

func TestRescheduleHidesAMessageReceivedBefore(t *testing.T) {
	onEachType(t, func(t *testing.T, name string, attributes map[string]string) {
		b := openTest(t, nil)
		q := create(t, b, name, attributes)
		sent := send(t, q, outgoing("a", "b")...)
		got := take(t, q, 1)
		if len(got) != 1 || got[0].ID != sent[0].ID {
			t.Fatal(texts(got))
		}
		time.Sleep(time.Minute)
		if err := b.Queue(name).Reschedule(t.Context(), sent[0].ID, time.Hour); err != nil {
			t.Fatal(err)
		}
		if s := storedMessage(t, b, name, sent[0].ID); s.State != InFlight || s.ReceiveCount != 1 {
			t.Errorf("the message is %s, received %d times", s.State, s.ReceiveCount)
		}
		errs := q.ChangeVisibility(t.Context(), []queue.VisibilityChange{{ReceiptHandle: got[0].ReceiptHandle}})
		if fifo := attributes != nil; fifo && errs == nil {
			t.Error("an earlier receipt handle changes a message that was hidden again")
		}
		if errs == nil {
			if err := b.Queue(name).Reschedule(t.Context(), sent[0].ID, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		b = reopen(t, b)
		q = b.Queue(name)
		want := 1
		if attributes != nil {
			want = 0
		}
		if got := take(t, q, 10); len(got) != want {
			t.Errorf("received %s", texts(got))
		}
		time.Sleep(time.Hour)
		found := false
		for _, m := range take(t, q, 10) {
			found = found || m.ID == sent[0].ID && m.ReceiveCount == 2
		}
		if !found {
			t.Error("the message did not become visible again")
		}
	})
}

func TestRescheduledMessageIsNotReceived(t *testing.T) {
	onEachType(t, func(t *testing.T, name string, attributes map[string]string) {
		q := create(t, openTest(t, nil), name, attributes)
		send(t, q, outgoing("a")...)
		id := one(t, q).ID
		time.Sleep(time.Minute)
		if err := q.Reschedule(t.Context(), id, time.Hour); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Second)
		if got := take(t, q, 1); len(got) != 0 {
			t.Errorf("received %s too early", texts(got))
		}
		time.Sleep(2 * time.Second)
		if got := one(t, q); got.ID != id || got.ReceiveCount != 2 {
			t.Errorf("received %+v", got)
		}
	})
}

func TestRescheduleRefusesMissingMessages(t *testing.T) {
	b := openTest(t, nil)
	q := create(t, b, "work", nil)
	sent := send(t, q, body("a")...)
	for _, delay := range []time.Duration{-time.Second, queue.MaxVisibility + time.Second} {
		if err := b.Queue("work").Reschedule(t.Context(), sent[0].ID, delay); err == nil {
			t.Errorf("a delay of %s", delay)
		}
	}
	remove(t, q, one(t, q).ReceiptHandle)
	for _, id := range []string{sent[0].ID, "nonsense", ""} {
		var refused *queue.Error
		if err := b.Queue("work").Reschedule(t.Context(), id, 0); !errors.As(err, &refused) ||
			refused.Code != queue.CodeResourceNotFound {
			t.Errorf("message %q: %v", id, err)
		}
	}
}

func TestReplaceMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		work, dead := deadLetters(t, b, 2)
		page := browsed(t, b, "dead", BrowseRequest{})
		sent, err := b.Queue("dead").Replace(t.Context(), page[0].ID, "work", queue.Outgoing{Body: "fixed"})
		if err != nil || sent.ID == "" || sent.ID == page[0].ID {
			t.Fatalf("sent %+v, %v", sent, err)
		}
		if m := one(t, work); m.ID != sent.ID || m.Body != "fixed" || m.ReceiveCount != 1 {
			t.Errorf("received %+v", m)
		}
		if l, _ := b.Ledger("dead"); l.Live != 1 || l.Purged != 1 {
			t.Errorf("ledger %+v", l)
		}
		if _, err := b.Queue("dead").Replace(t.Context(), page[0].ID, "work", queue.Outgoing{Body: "again"}); err == nil {
			t.Error("a message was replaced twice")
		}
		if _, err := b.Queue("dead").Replace(t.Context(), page[1].ID, "work", queue.Outgoing{}); err == nil {
			t.Error("an empty message was sent")
		}
		if m := one(t, dead); m.ID != page[1].ID {
			t.Errorf("received %+v", m)
		}
	})
}

func TestReplaceByADuplicateKeepsTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		q := create(t, b, "work.fifo", map[string]string{"FifoQueue": "true"})
		send(t, q, queue.Outgoing{Body: "a", GroupID: "g", DedupID: "1"})
		old := send(t, q, queue.Outgoing{Body: "b", GroupID: "g", DedupID: "2"})
		_, err := b.Queue("work.fifo").Replace(t.Context(), old[0].ID, "work.fifo",
			queue.Outgoing{Body: "c", GroupID: "g", DedupID: "1"})
		if err == nil {
			t.Error("a duplicate replaced a message")
		}
		if got := bodiesOf(t, b, "work.fifo", BrowseRequest{}); len(got) != 2 || got[1] != "b" {
			t.Errorf("the queue holds %q", got)
		}
		if got := take(t, q, 10); len(got) != 2 {
			t.Errorf("received %s", texts(got))
		}
	})
}
