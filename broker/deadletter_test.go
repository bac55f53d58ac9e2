package broker

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func TestDeadLetterByReceipt(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		attrs, suffix := map[string]string{}, ""
		if fifo {
			attrs["FifoQueue"], attrs["ContentBasedDeduplication"], suffix = "true", "true", ".fifo"
		}
		var moved []string
		b := openTest(t, &Options{Events: &Events{DeadLettered: func(_, _ string, ids []string) {
			moved = append(moved, ids...)
		}}})
		dead := create(t, b, "dead"+suffix, attrs)
		attrs["RedrivePolicy"] = policy(b, dead.Name(), 9)
		q := create(t, b, "work"+suffix, attrs)
		if !q.TakesDeadLetters(false) || q.TakesDeadLetters(true) || dead.TakesDeadLetters(false) {
			t.Errorf("it takes %t, at the last receive %t; the dead-letter queue %t", q.TakesDeadLetters(false),
				q.TakesDeadLetters(true), dead.TakesDeadLetters(false))
		}
		group := map[bool]string{true: "g"}[fifo]
		sent := send(t, q, queue.Outgoing{Body: "a", GroupID: group}, queue.Outgoing{Body: "b", GroupID: group})
		m := one(t, q)
		if errs := q.DeadLetter(t.Context(), []queue.DeadLetter{{Message: &m}}); errs != nil {
			t.Fatal(errs)
		}
		if errs := q.Delete(t.Context(), []string{m.ReceiptHandle}); errs != nil {
			t.Errorf("deleting what was dead-lettered: %v", errs)
		}
		next := one(t, q)
		if next.Body != "b" {
			t.Errorf("then came %q", next.Body)
		}
		again := q.DeadLetter(t.Context(), []queue.DeadLetter{{Message: &m}, {Message: &next}})
		if len(again) != 2 || again[0] == nil || again[1] != nil {
			t.Errorf("once more, and another: %v", again)
		}
		b = reopen(t, b)
		ledger, err := b.Ledger(q.Name())
		if err != nil || ledger.DeadLettered != 2 || ledger.Live != 0 || ledger.Done != 0 || len(moved) != 0 {
			t.Errorf("ledger %+v, %v; events of %q", ledger, err, moved)
		}
		var ids []string
		for _, m := range take(t, b.Queue(dead.Name()), 10) {
			ids = append(ids, m.ID)
			if m.ReceiveCount != 2 || m.DeadLetterSource != b.ARN(q.Name()) {
				t.Errorf("dead letter %+v", m)
			}
		}
		slices.Sort(ids)
		want := []string{sent[0].ID, sent[1].ID}
		if slices.Sort(want); !fifo && !slices.Equal(ids, want) || len(ids) == 0 {
			t.Errorf("dead letters %q, want %q", ids, want)
		}
		if n, err := b.Move(t.Context(), dead.Name(), "", ids); n != len(ids) || err != nil {
			t.Errorf("moved back: %d, %v", n, err)
		}
	}
}

func TestDeadLetterRequiresTheNewestReceipt(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	dead := create(t, b, "dead", nil)
	q := create(t, b, "work", map[string]string{"VisibilityTimeout": "0", "RedrivePolicy": policy(b, "dead", 9)})
	send(t, q, queue.Outgoing{Body: "a"})
	m := one(t, q)
	foreign := m
	foreign.ReceiptHandle = "none"
	for _, letter := range []queue.DeadLetter{{Message: &m}, {Message: &foreign}} {
		if errs := q.DeadLetter(t.Context(), []queue.DeadLetter{letter}); len(errs) != 1 || errs[0] == nil {
			t.Errorf("%q: %v", letter.Message.ReceiptHandle, errs)
		}
	}
	if errs := dead.DeadLetter(t.Context(), []queue.DeadLetter{{Message: &m}}); len(errs) != 1 || errs[0] == nil {
		t.Errorf("without a dead-letter queue: %v", errs)
	}
	if m := one(t, q); m.ReceiveCount != 2 {
		t.Errorf("%+v", m)
	}
}

// Receives may find expired visibility timeouts in any order.
func TestDeadLettersKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		dead := create(t, b, "dead", nil)
		q := create(t, b, "work", map[string]string{"RedrivePolicy": policy(b, dead.Name(), 1)})
		var want []string
		for range 10 {
			want = append(want, send(t, q, queue.Outgoing{Body: "x"})[0].ID)
		}
		for range want {
			one(t, q)
		}
		time.Sleep(time.Minute)
		if got := take(t, q, 10); len(got) != 0 {
			t.Fatalf("received %d messages more often than the policy allows", len(got))
		}
		var got []string
		for _, m := range take(t, dead, 10) {
			got = append(got, m.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("dead letters %v, want %v", got, want)
		}
	})
}
