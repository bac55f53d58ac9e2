package deliver

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"tendril/queue"
)

func TestNothingIsPostedIfTheQueueWasPausedWhileConnecting(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"first connection", "kept connection that is lost"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paused := false
			h, a := start(t, alwaysAnswer(ok200), func(o *Options) {
				o.KeepAlive = time.Hour
				o.Paused = func() bool { return paused }
				o.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					paused = true
					return new(net.Dialer).DialContext(ctx, network, address)
				}
			})
			if name != "first connection" {
				ours, theirs := net.Pipe()
				h.transport.pool.Put(newConn(ours), time.Now())
				theirs.Close()
			}
			if r := deliver(h, message()); r.Outcome != queue.Postponed || r.RetryAfter == 0 || a.posts.Load() > 0 {
				t.Errorf("%+v after %d POSTs", r, a.posts.Load())
			}
			if r := deliver(h, message()); r.Outcome != queue.Postponed {
				t.Errorf("while paused: %+v", r)
			}
			paused = false
			want(t, deliver(h, message()), queue.Done, 200, "")
			a.wantCounts(t, 1, 1)
		})
	}
}

func TestLaterPartsOfABatchAreNotSentIfTheQueueWasPausedMeanwhile(t *testing.T) {
	t.Parallel()
	var paused atomic.Bool
	h, a := startPiped(t, func(c *appConn) {
		c.read()
		paused.Store(true)
		c.write(ok200)
	}, func(o *Options) { o.Paused = paused.Load })
	results := h.DeliverBatch(t.Context(), messages("a", "b"))
	if results[0].Outcome != queue.Done || results[1].Outcome != queue.Postponed || a.posts.Load() != 1 {
		t.Errorf("%+v after %d POSTs", results, a.posts.Load())
	}
}

func TestFunctionIsNotInvokedIfTheQueueWasPausedMeanwhile(t *testing.T) {
	t.Parallel()
	paused := false
	pause := func(l *Lambda) { l.paused = func() bool { return paused } }
	f := &function{answer: func(int, events.SQSEvent, int) (Invocation, error) {
		paused = true
		return Invocation{Status: 413}, nil
	}}
	results := newLambda(t, f, pause).DeliverBatch(t.Context(), messages("a", "b", "c"))
	if len(f.calls) != 1 || outcomes(results) != "PPP" {
		t.Errorf("an event that was rejected as too large: %+v, %d calls", results, len(f.calls))
	}

	paused = false
	f = &function{answer: func(int, events.SQSEvent, int) (Invocation, error) {
		paused = true
		return Invocation{}, unsentError{context.DeadlineExceeded}
	}}
	if r := newLambda(t, f, pause).Deliver(t.Context(), message()); r.Outcome != queue.Postponed || r.RetryAfter == 0 {
		t.Errorf("a call that waited: %+v", r)
	}
}
