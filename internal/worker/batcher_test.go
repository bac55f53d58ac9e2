package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"tendril/queue"
)

func sendOne(b *batcher, now time.Time) []pending {
	batch := b.nextBatch(now)
	if batch != nil {
		b.calls++
	}
	return batch
}

func TestBatcherCutsInTens(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var b batcher
	if sendOne(&b, now) != nil || !b.next().IsZero() || !b.idle() {
		t.Fatal("an empty batcher has nothing to send")
	}
	for i := range 9 {
		b.put(pending{receipt: fmt.Sprint(i)}, now.Add(time.Duration(100+i)*time.Millisecond))
	}
	if got := sendOne(&b, now); got != nil {
		t.Errorf("nine orders linger, got %d", len(got))
	}
	if got := b.next(); !got.Equal(now.Add(100 * time.Millisecond)) {
		t.Errorf("next is %v from now, want 100ms", got.Sub(now))
	}
	for i := 9; i < 12; i++ {
		b.put(pending{receipt: fmt.Sprint(i)}, now.Add(time.Second))
	}
	got := sendOne(&b, now)
	if len(got) != 10 || got[0].receipt != "0" || got[9].receipt != "9" {
		t.Errorf("ten orders go at once and in order, got %v", got)
	}
	if sendOne(&b, now) != nil || b.calls != 1 || b.idle() {
		t.Error("the other two wait")
	}
	if got := sendOne(&b, now.Add(100*time.Millisecond)); len(got) != 2 || got[1].receipt != "11" {
		t.Errorf("they go when they are due, got %v", got)
	}
	b.callEnded(nil, now, false, 0)
	b.callEnded(nil, now, false, 0)
	if !b.idle() {
		t.Error("the batcher is idle again")
	}
}

func TestBatcherRestsAfterAFailedCall(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var b batcher
	rest := func() time.Duration {
		b.put(pending{}, now)
		if len(sendOne(&b, now)) == 0 {
			t.Fatal("no call")
		}
		b.callEnded(nil, now, true, 0)
		rest := b.holdUntil.Sub(now)
		b.put(pending{}, now)
		if sendOne(&b, now) != nil || !b.next().Equal(b.holdUntil) {
			t.Error("no call before the rest is over")
		}
		now = b.holdUntil
		return rest
	}
	for i, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000} {
		if got := rest(); got != want*time.Millisecond {
			t.Errorf("rest %d is %v, want %d ms", i+1, got, want)
		}
	}
	for range 20 {
		b.put(pending{}, now)
	}
	if sendOne(&b, now) == nil || sendOne(&b, now) != nil || !b.next().IsZero() {
		t.Error("after a failure calls go one by one")
	}
	b.callEnded(nil, now, false, 0)
	if b.fails != 0 || !b.holdUntil.IsZero() {
		t.Error("a success ends the rests")
	}
}

func TestBatcherBoundsItsCalls(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var b batcher
	for range maxCalls*10 + 10 {
		b.put(pending{}, now)
	}
	n := 0
	for sendOne(&b, now) != nil {
		n++
	}
	if n != maxCalls || !b.next().IsZero() {
		t.Errorf("%d calls under way, want %d; next %v", n, maxCalls, b.next())
	}
	b.callEnded(nil, now, false, 0)
	if got := sendOne(&b, now); len(got) != 10 {
		t.Errorf("the rest goes after a return, got %d", len(got))
	}
}

func TestEntriesAddedDuringCallsShareTheNext(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var b batcher
	for range partCalls {
		b.put(pending{}, now)
		if got := sendOne(&b, now); len(got) != 1 {
			t.Fatalf("a single order goes at once, got %d", len(got))
		}
	}
	for range 9 {
		b.put(pending{}, now)
		if sendOne(&b, now) != nil || !b.next().IsZero() {
			t.Fatal("with four calls under way a fifth waits for one to return")
		}
	}
	b.callEnded(nil, now, false, 0)
	if got := sendOne(&b, now); len(got) != 9 {
		t.Errorf("then all go together, got %d", len(got))
	}
	for range 10 {
		b.put(pending{}, now)
	}
	if got := sendOne(&b, now); len(got) != 10 {
		t.Errorf("ten do not wait, got %d", len(got))
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  error
		want errorClass
	}{
		{nil, applied},
		{errors.New("EOF"), uncertain},
		{context.DeadlineExceeded, uncertain},
		{queue.ErrUnreachable, uncertain},
		{queue.ErrClosed, uncertain},
		{&queue.Error{Code: "SomethingNew"}, uncertain},
		{queue.ErrThrottled, tryLater},
		{&queue.Error{Code: queue.CodeOverLimit}, tryLater},
		{queue.ErrDenied, refused},
		{fmt.Errorf("deleting: %w", queue.ErrDenied), refused},
		{queue.ErrNoQueue, refused},
		{&queue.Error{Code: queue.CodeReceiptHandleIsInvalid}, invalidReceipt},
		{&queue.Error{Code: queue.CodeMessageNotInflight}, invalidReceipt},
		{&queue.Error{Code: queue.CodeInvalidParameterValue}, invalidReceipt},
	}
	for _, tt := range tests {
		if got := classify(tt.err); got != tt.want {
			t.Errorf("%v: got %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestEntryErr(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	if entryErr(nil, 3) != nil || entryErr([]error{nil, boom}, 0) != nil || entryErr([]error{nil, boom}, 1) != boom {
		t.Error("each entry has its own error")
	}
	if entryErr([]error{boom}, 1) == nil {
		t.Error("an entry without a result did not succeed")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := newMemory[int](3)
	for i := range 5 {
		m.remember(fmt.Sprint(i), i)
	}
	if _, ok := m.values["1"]; ok || len(m.values) != 3 {
		t.Errorf("holds %v, want the last three", m.values)
	}
	if v, ok := m.values["4"]; !ok || v != 4 {
		t.Error("the last one is remembered")
	}
	for range 1000 {
		m.remember("a", 1)
		delete(m.values, "a")
	}
	if len(m.order) > 6 {
		t.Errorf("the order of %d ids is kept for 3 values", len(m.order))
	}
}

func TestOptionsAreBroughtIntoRange(t *testing.T) {
	t.Parallel()
	o := (*Options)(nil).withDefaults()
	if o.Concurrency != 50 || o.VisibilityTimeout != 300*time.Second || o.Retention != 96*time.Hour ||
		o.WaitTime != 20*time.Second || o.DeleteLinger != 100*time.Millisecond || o.PrefetchBytes != 16<<20 ||
		o.Events == nil {
		t.Errorf("defaults: %+v", o)
	}
	o = (&Options{Concurrency: 5000, VisibilityTimeout: -1, WaitTime: time.Hour, DeleteLinger: -1}).withDefaults()
	if o.Concurrency != 1000 || o.VisibilityTimeout != time.Second || o.WaitTime != 20*time.Second || o.DeleteLinger != 0 {
		t.Errorf("bounds: %+v", o)
	}
	o = (&Options{Concurrency: -5, VisibilityTimeout: 24 * time.Hour, WaitTime: time.Millisecond, FIFO: true,
		DeleteLinger: time.Second}).withDefaults()
	if o.Concurrency != 1 || o.VisibilityTimeout != 12*time.Hour || o.WaitTime != time.Second || o.DeleteLinger != 0 {
		t.Errorf("bounds: %+v", o)
	}
}
