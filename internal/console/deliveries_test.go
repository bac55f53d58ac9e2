package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tendril/api"
)

func TestWaitReturnsWhatIsRemembered(t *testing.T) {
	t.Parallel()
	ds := &Deliveries{size: 10}
	ds.Record(api.Delivery{MessageID: "m1", Outcome: "failed", Status: 500})
	ds.Record(api.Delivery{MessageID: "m1", Outcome: "done", Status: 200})
	d, err := ds.Wait(t.Context(), "m1")
	if err != nil || d.Status != 200 || !d.Done() {
		t.Errorf("Wait = %+v, %v; want the most recent delivery", d, err)
	}
}

func TestWaitWakesAtTheFirstDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ds Deliveries
		got := make(chan api.Delivery, 2)
		for range 2 {
			go func() {
				d, err := ds.Wait(t.Context(), "m1")
				if err != nil {
					t.Error(err)
				}
				got <- d
			}()
		}
		synctest.Wait()
		ds.Record(api.Delivery{MessageID: "other"})
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("returned with the delivery of another message")
		}
		ds.Record(api.Delivery{MessageID: "m1", Outcome: "done"})
		synctest.Wait()
		if len(got) != 2 {
			t.Fatalf("%d of 2 waiting were woken", len(got))
		}
	})
}

// A refused connection is not an attempt: callers get that delivery only when the wait ends.
func TestWaitGoesOnWhileTheAppIsNotReached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ds Deliveries
		refused := api.Delivery{MessageID: "m1", Outcome: "unreached", Reason: "connection refused"}
		ds.Record(refused)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		begin := time.Now()
		if d, err := ds.Wait(ctx, "m1"); err != nil || d != refused || time.Since(begin) != 20*time.Second {
			t.Errorf("after %v: %+v, %v", time.Since(begin), d, err)
		}
		time.AfterFunc(time.Second, func() { ds.Record(api.Delivery{MessageID: "m1", Outcome: "done"}) })
		if d, err := ds.Wait(t.Context(), "m1"); err != nil || !d.Done() {
			t.Errorf("when the app is ready: %+v, %v", d, err)
		}
		waits := api.Delivery{MessageID: "m2", Outcome: "unreached", RetryAt: begin}
		ds.Record(waits)
		if d, err := ds.Wait(t.Context(), "m2"); err != nil || d != waits {
			t.Errorf("one that waits for its visibility timeout: %+v, %v", d, err)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ds Deliveries
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := ds.Wait(ctx, "m1")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 20*time.Second {
			t.Errorf("Wait ended after %v with %v", time.Since(begin), err)
		}
	})
}

func TestDeliveriesAgainstASlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 5).Draw(t, "size")
		ds := &Deliveries{size: size}
		var model []api.Delivery
		for i := range rapid.IntRange(0, 20).Draw(t, "records") {
			d := api.Delivery{MessageID: fmt.Sprint("m", rapid.IntRange(0, 6).Draw(t, "id")), Status: i}
			ds.Record(d)
			if model = append(model, d); len(model) > size {
				model = model[1:]
			}
		}
		recent := slices.Clone(model)
		slices.Reverse(recent)
		if diff := cmp.Diff(recent, ds.Recent(0), cmp.Transformer("nil", func(d []api.Delivery) []api.Delivery {
			return append([]api.Delivery{}, d...)
		})); diff != "" {
			t.Fatalf("Recent: (-want +got)\n%s", diff)
		}
		for id := range 7 {
			name := fmt.Sprint("m", id)
			at := slices.IndexFunc(recent, func(d api.Delivery) bool { return d.MessageID == name })
			over, cancel := context.WithCancel(context.Background())
			cancel()
			d, err := ds.Wait(over, name)
			ok := err == nil
			if ok != (at >= 0) || ok && d != recent[at] {
				t.Fatalf("Latest(%s) = %+v, %v; history %+v", name, d, ok, recent)
			}
		}
		if limit := rapid.IntRange(1, 6).Draw(t, "limit"); len(ds.Recent(limit)) != min(limit, len(model)) {
			t.Fatalf("Recent(%d) gave %d of %d", limit, len(ds.Recent(limit)), len(model))
		}
	})
}

func TestProblemsAreGroupedByReason(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0).UTC() }
	var ds Deliveries
	for i, d := range []api.Delivery{
		{MessageID: "a", Queue: "jobs", Outcome: "failed", Status: 500, Reason: "HTTP 500"},
		{MessageID: "b", Queue: "jobs", Outcome: "done", Status: 200},
		{MessageID: "c", Queue: "jobs", Outcome: "failed", Status: 500, Reason: "HTTP 500"},
		{MessageID: "d", Queue: "jobs", Outcome: "unreached", Reason: "connection refused"},
		{MessageID: "e", Queue: "mail", Outcome: "failed", Status: 500, Reason: "HTTP 500"},
		{MessageID: "f", Queue: "mail", Outcome: "failed", Status: 422, Reason: "HTTP 422", Answer: "no order 17\nat 5"},
		{MessageID: "g", Queue: "mail", Outcome: "failed", Status: 422, Reason: "HTTP 422", Answer: "no order 18"},
		{MessageID: "h", Queue: "mail", Outcome: "failed", Status: 422, Reason: "HTTP 422", Answer: "no customer"},
	} {
		d.At = at(i)
		ds.Record(d)
	}
	want := []api.Problem{
		{Queue: "mail", Reason: "HTTP 422 no customer", Count: 1, First: at(7), Last: at(7), LastMessageID: "h"},
		{Queue: "mail", Reason: "HTTP 422 no order #", Count: 2, First: at(5), Last: at(6), LastMessageID: "g"},
		{Queue: "mail", Reason: "HTTP 500", Count: 1, First: at(4), Last: at(4), LastMessageID: "e"},
		{Queue: "jobs", Reason: "connection refused", Count: 1, First: at(3), Last: at(3), LastMessageID: "d"},
		{Queue: "jobs", Reason: "HTTP 500", Count: 2, First: at(0), Last: at(2), LastMessageID: "c"},
	}
	if diff := cmp.Diff(want, ds.Problems()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
