package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

type fakeHarness struct {
	*Fake
	t *testing.T
}

func inBubble(t *testing.T, opts *FakeOptions, test func(f fakeHarness)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(fakeHarness{NewFake(opts), t}) })
}

func (f fakeHarness) send(groups ...string) {
	f.t.Helper()
	for i, group := range groups {
		sent, err := f.Send(f.t.Context(), []queue.Outgoing{{Body: fmt.Sprint("body ", i), GroupID: group}})
		if err != nil || sent[0].Err != nil {
			f.t.Fatal(sent, err)
		}
	}
}

func (f fakeHarness) wantReceived(n int, visibility time.Duration, want ...string) []queue.Message {
	f.t.Helper()
	msgs, err := f.Receive(f.t.Context(), queue.ReceiveRequest{Max: n, Visibility: &visibility})
	if err != nil {
		f.t.Fatal(err)
	}
	var ids []string
	for _, m := range msgs {
		ids = append(ids, m.ID)
	}
	if !slices.Equal(ids, want) {
		f.t.Errorf("received %v, want %v", ids, want)
	}
	return msgs
}

func (f fakeHarness) deleteOne(receipt string) error {
	if errs := f.Delete(f.t.Context(), []string{receipt}); errs != nil {
		return errs[0]
	}
	return nil
}

func (f fakeHarness) changeOne(receipt string, v time.Duration) error {
	if errs := f.ChangeVisibility(f.t.Context(),
		[]queue.VisibilityChange{{ReceiptHandle: receipt, Visibility: v}}); errs != nil {
		return errs[0]
	}
	return nil
}

func (f fakeHarness) count(place FakePlace, want int) {
	f.t.Helper()
	if got := f.Count(place); got != want {
		f.t.Errorf("%d messages are %s, want %d", got, place, want)
	}
}

func TestFakeStandardReceipts(t *testing.T) {
	inBubble(t, nil, func(f fakeHarness) {
		f.send("", "", "")
		first := f.wantReceived(10, 30*time.Second, "m-000001", "m-000002", "m-000003")
		f.wantReceived(10, 30*time.Second)
		if first[0].ReceiveCount != 1 || first[0].Body != "body 0" || first[0].FirstReceivedAt.IsZero() ||
			first[0].SentAt.IsZero() {
			t.Errorf("%+v", first[0])
		}
		if err := f.deleteOne(first[0].ReceiptHandle); err != nil {
			t.Error(err)
		}
		if err := f.deleteOne(first[0].ReceiptHandle); err != nil {
			t.Errorf("deleting twice: %v", err)
		}
		time.Sleep(30 * time.Second)
		if err := f.deleteOne(first[1].ReceiptHandle); err != nil {
			t.Errorf("after the visibility: %v", err)
		}
		f.count(FakeDeleted, 2)
		again := f.wantReceived(10, 30*time.Second, "m-000003")
		if again[0].ReceiveCount != 2 || again[0].ReceiptHandle == first[2].ReceiptHandle ||
			again[0].FirstReceivedAt != first[2].FirstReceivedAt {
			t.Errorf("second receive: %+v", again[0])
		}
		if err := f.deleteOne(first[2].ReceiptHandle); err != nil {
			t.Errorf("an outdated receipt: %v", err)
		}
		f.count(FakeInFlight, 1)
		if err := f.deleteOne("nonsense"); !errors.Is(err, &queue.Error{Code: queue.CodeReceiptHandleIsInvalid}) {
			t.Errorf("a malformed receipt: %v", err)
		}
	})
}

func TestFakeVisibilityChanges(t *testing.T) {
	inBubble(t, nil, func(f fakeHarness) {
		f.send("")
		m := f.wantReceived(1, 10*time.Second, "m-000001")[0]
		time.Sleep(5 * time.Second)
		if err := f.changeOne(m.ReceiptHandle, 20*time.Second); err != nil {
			t.Error(err)
		}
		time.Sleep(19 * time.Second)
		f.wantReceived(1, time.Second)
		if err := f.changeOne(m.ReceiptHandle, 0); err != nil {
			t.Error(err)
		}
		n := f.wantReceived(1, time.Second, "m-000001")[0]
		time.Sleep(time.Second)
		if f.StaleChanges() != 0 {
			t.Error("no change was stale so far")
		}
		if err := f.changeOne(n.ReceiptHandle, time.Hour); err != nil || f.Count(FakeVisible) != 1 {
			t.Errorf("a change never hides what is visible: %v", err)
		}
		o := f.wantReceived(1, time.Minute, "m-000001")[0]
		if err := f.changeOne(m.ReceiptHandle, 0); err != nil || f.Count(FakeInFlight) != 1 {
			t.Errorf("an outdated receipt changes nothing: %v", err)
		}
		if f.StaleChanges() != 2 {
			t.Errorf("%d stale changes, want 2", f.StaleChanges())
		}
		if err := f.changeOne(o.ReceiptHandle, queue.MaxVisibility); err != nil {
			t.Errorf("12 h from the receive: %v", err)
		}
		time.Sleep(time.Second)
		if err := f.changeOne(o.ReceiptHandle, queue.MaxVisibility); err == nil {
			t.Error("more than 12 h from the receive must be refused")
		}
		if err := f.deleteOne(o.ReceiptHandle); err != nil {
			t.Error(err)
		}
		if err := f.changeOne(o.ReceiptHandle, 0); err == nil {
			t.Error("a deleted message has no visibility")
		}
		if err := f.changeOne("nonsense", 0); !errors.Is(err, &queue.Error{Code: queue.CodeReceiptHandleIsInvalid}) {
			t.Errorf("a malformed receipt: %v", err)
		}
	})
}

func TestFakeFIFOGroups(t *testing.T) {
	inBubble(t, &FakeOptions{FIFO: true}, func(f fakeHarness) {
		f.send("a", "a", "b", "a")
		msgs := f.wantReceived(2, 10*time.Second, "m-000001", "m-000002")
		if msgs[0].SequenceNumber >= msgs[1].SequenceNumber || msgs[0].GroupID != "a" {
			t.Errorf("%+v", msgs)
		}
		f.wantReceived(10, 20*time.Second, "m-000003")
		if err := f.deleteOne(msgs[0].ReceiptHandle); err != nil {
			t.Error(err)
		}
		f.wantReceived(10, time.Second)
		time.Sleep(10 * time.Second)
		for name, err := range map[string]error{"delete": f.deleteOne(msgs[1].ReceiptHandle),
			"change": f.changeOne(msgs[1].ReceiptHandle, time.Minute)} {
			var e *queue.Error
			if !errors.As(err, &e) || e.Code != queue.CodeInvalidParameterValue {
				t.Errorf("%s under an expired receipt: %v", name, err)
			}
		}
		f.wantReceived(10, time.Second, "m-000002", "m-000004")
		sent, err := f.Send(f.t.Context(), []queue.Outgoing{{Body: "no group"}})
		if err != nil || sent[0].Err == nil {
			t.Errorf("a message without a group: %v, %v", sent, err)
		}
	})
}

func TestFakeDeadLettersAtTheReceiveAboveTheMaximum(t *testing.T) {
	inBubble(t, &FakeOptions{MaxReceives: 2}, func(f fakeHarness) {
		f.send("")
		f.wantReceived(1, time.Second, "m-000001")
		time.Sleep(time.Second)
		f.wantReceived(1, time.Second, "m-000001")
		time.Sleep(time.Minute)
		f.count(FakeVisible, 1)
		f.wantReceived(1, time.Second)
		f.count(FakeDead, 1)
	})
}

func TestFakeLongPoll(t *testing.T) {
	inBubble(t, nil, func(f fakeHarness) {
		wait := 20 * time.Second
		poll := func() (int, time.Duration) {
			start := time.Now()
			msgs, err := f.Receive(f.t.Context(), queue.ReceiveRequest{Max: 10, Wait: &wait})
			if err != nil {
				t.Error(err)
			}
			return len(msgs), time.Since(start)
		}
		if n, took := poll(); n != 0 || took != wait {
			t.Errorf("an empty queue: %d messages after %v", n, took)
		}
		time.AfterFunc(3*time.Second, func() { f.send("") })
		if n, took := poll(); n != 1 || took != 3*time.Second {
			t.Errorf("a send: %d messages after %v", n, took)
		}
		delay := 7 * time.Second
		if _, err := f.Send(f.t.Context(), []queue.Outgoing{{Body: "later", Delay: &delay}}); err != nil {
			t.Error(err)
		}
		f.count(FakeDelayed, 1)
		if n, took := poll(); n != 1 || took != delay {
			t.Errorf("the end of a delay: %d messages after %v", n, took)
		}
		ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
		defer cancel()
		if _, err := f.Receive(ctx, queue.ReceiveRequest{Max: 1, Wait: &wait}); !errors.Is(err, context.DeadlineExceeded) ||
			f.OpenReceives() != 0 {
			t.Errorf("a context that ends: %v, %d open", err, f.OpenReceives())
		}
	})
}

func TestFakeFaults(t *testing.T) {
	boom := errors.New("boom")
	inBubble(t, &FakeOptions{KeepLog: true}, func(f fakeHarness) {
		f.send("", "", "")
		f.Fail(FakeReceive, FakeFault{Err: boom}, FakeFault{Err: boom, Apply: true}, FakeFault{Latency: time.Second})
		for i, want := range []int{3, 0} {
			if _, err := f.Receive(f.t.Context(), queue.ReceiveRequest{Max: 10}); err != boom || f.Count(FakeVisible) != want {
				t.Errorf("receive %d: %v, %d visible, want %d", i+1, err, f.Count(FakeVisible), want)
			}
		}
		time.Sleep(time.Minute)
		start := time.Now()
		msgs := f.wantReceived(10, time.Minute, "m-000001", "m-000002", "m-000003")
		if got := time.Since(start); got != time.Second {
			t.Errorf("the slow receive took %v", got)
		}

		var receipts []string
		for _, m := range msgs {
			receipts = append(receipts, m.ReceiptHandle)
		}
		f.SetFault(func(c FakeCall) FakeFault {
			return FakeFault{Err: boom, Entries: []int{1}}
		})
		if errs := f.Delete(f.t.Context(), receipts); len(errs) != 3 || errs[0] != nil || errs[1] != boom || errs[2] != nil {
			t.Errorf("one bad entry: %v", errs)
		}
		f.count(FakeDeleted, 2)
		f.SetFault(func(FakeCall) FakeFault { return FakeFault{Err: boom, Apply: true} })
		if err := f.deleteOne(receipts[1]); err != boom || f.Count(FakeDeleted) != 3 {
			t.Errorf("a lost answer: %v, %d deleted", err, f.Count(FakeDeleted))
		}
		if _, err := f.Send(f.t.Context(), make([]queue.Outgoing, 1)); err != boom || f.Count(FakeVisible) != 1 {
			t.Errorf("a send whose answer is lost: %v", err)
		}
		f.SetFault(nil)
		if errs := f.Delete(f.t.Context(), make([]string, 11)); len(errs) != 11 || errs[0] == nil {
			t.Errorf("eleven entries: %v", errs)
		}
		if got := f.Calls(FakeReceive); got != 3 {
			t.Errorf("%d receives counted", got)
		}
		log := f.Log()
		if last := log[len(log)-1]; last.Action != FakeSend || len(log) != 3+3+2+1 {
			t.Errorf("log of %d calls, the last %+v", len(log), last)
		}
	})
}

func TestFakeLatency(t *testing.T) {
	inBubble(t, &FakeOptions{Latency: 10 * time.Second}, func(f fakeHarness) {
		f.send("")
		cut := func(after time.Duration) error {
			ctx, cancel := context.WithTimeout(f.t.Context(), after)
			defer cancel()
			_, err := f.Receive(ctx, queue.ReceiveRequest{Max: 1})
			return err
		}
		if err := cut(4 * time.Second); err == nil || f.Count(FakeVisible) != 1 {
			t.Errorf("cut off on the way there: %v, %d visible", err, f.Count(FakeVisible))
		}
		if err := cut(6 * time.Second); err == nil || f.Count(FakeInFlight) != 1 {
			t.Errorf("cut off on the way back: %v, %d in flight", err, f.Count(FakeInFlight))
		}
		time.Sleep(time.Minute)
		start := time.Now()
		f.wantReceived(1, time.Minute, "m-000001")
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("a round trip took %v", took)
		}
	})
}

func TestFakeRedeliver(t *testing.T) {
	inBubble(t, nil, func(f fakeHarness) {
		f.send("")
		first := f.wantReceived(1, time.Hour, "m-000001")[0]
		f.Redeliver(first.ID)
		second := f.wantReceived(1, time.Hour, "m-000001")[0]
		if second.ReceiptHandle == first.ReceiptHandle {
			t.Error("each receive has its own receipt")
		}
		if err := f.deleteOne(second.ReceiptHandle); err != nil {
			t.Error(err)
		}
		f.Redeliver(first.ID)
		f.wantReceived(1, time.Hour)
		if m, ok := f.Message(first.ID); !ok || m.Place != FakeDeleted || m.Receives != 2 {
			t.Errorf("%+v", m)
		}
		if _, ok := f.Message("m-000009"); ok {
			t.Error("never sent")
		}
	})
}

func TestFakeRemovesSettledMessages(t *testing.T) {
	inBubble(t, nil, func(f fakeHarness) {
		for range 300 {
			f.send("")
			m, _ := f.Receive(f.t.Context(), queue.ReceiveRequest{Max: 1})
			if err := f.deleteOne(m[0].ReceiptHandle); err != nil {
				t.Fatal(err)
			}
		}
		f.wantReceived(1, time.Second)
		if len(f.messages) > 130 || f.Count(FakeDeleted) != 300 {
			t.Errorf("%d messages are searched, %d deleted", len(f.messages), f.Count(FakeDeleted))
		}
	})
}
