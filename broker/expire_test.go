package broker

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestExpiredMessagesAreNotBookedAsDone(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := create(t, b, "work", map[string]string{"VisibilityTimeout": "0"})
	send(t, q, body("a", "b", "c", "d")...)
	msgs := take(t, q, 4)
	remove(t, q, msgs[0].ReceiptHandle)
	if errs := q.Expire(t.Context(), []string{msgs[1].ReceiptHandle, "nonsense"}); len(errs) != 2 || errs[0] != nil ||
		errs[1] == nil {
		t.Fatal(errs)
	}
	want := Ledger{Sent: 4, Done: 1, Expired: 1, Live: 2, Visible: 2}
	if l, _ := b.Ledger("work"); l != want {
		t.Errorf("got %+v, want %+v", l, want)
	}
	b = reopen(t, b)
	q = b.Queue("work")
	if errs := q.Expire(t.Context(), []string{msgs[2].ReceiptHandle}); errs != nil {
		t.Fatal(errs)
	}
	remove(t, q, msgs[3].ReceiptHandle)
	want = Ledger{Sent: 4, Done: 2, Expired: 2}
	if l, _ := b.Ledger("work"); l != want {
		t.Errorf("after the restart: got %+v, want %+v", l, want)
	}
}

// An expired message starts the sweep; the next one is sent in the same transaction, before the sweep.
func TestSweepSetsTheAlarmForMessagesSentInItsTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, quiet())
		q := create(t, b, "work", map[string]string{"MessageRetentionPeriod": "60"})
		send(t, q, body("first")...)
		time.Sleep(59900 * time.Millisecond)

		release := blockWriter(t, b)
		sent := make(chan error, 1)
		go func() {
			_, err := q.Send(t.Context(), body("second"))
			sent <- err
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		release()
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if l, _ := b.Ledger("work"); l.Expired != 1 || l.Live != 1 {
			t.Errorf("ledger %+v after the first message's retention", l)
		}

		time.Sleep(61 * time.Second)
		synctest.Wait()
		if l, _ := b.Ledger("work"); l.Expired != 2 {
			t.Errorf("ledger %+v after the retention of both", l)
		}
	})
}
