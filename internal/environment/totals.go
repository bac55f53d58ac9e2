package environment

import (
	"context"
	"strconv"
	"time"

	"tendril/broker"
	"tendril/internal/worker"
)

type totals struct {
	opts   *Options
	life   *lifecycle
	queues *queues
	work   *pipelines

	began  time.Time
	before broker.Ledger
	final  []total // set once the workers have stopped
	reason string  // set before the stop
	again  bool    // another start continues this one
}

type total struct {
	key string
	n   int64
}

func (t *totals) begin(context.Context) error {
	t.began = time.Now()
	if b := t.queues.broker; b != nil {
		t.before = b.TotalLedger()
	}
	t.life.onStop("the totals", func(context.Context) error {
		t.final = t.count()
		return nil
	})
	return nil
}

// count sums up the counters of workers and, for dead-lettered and queued messages, of embedded queues. Without
// workers, sent and done messages also come from the queues.
func (t *totals) count() (all []total) {
	if len(t.queues.all) > len(t.work.all) { // startup failed before the workers existed
		return nil
	}
	var sum worker.Counts
	for _, l := range t.work.all {
		c := l.worker.Status().Counts
		sum.Received += c.Received
		sum.Done += c.Done
		sum.Failed += c.Failed
		sum.Returned += c.Returned
	}
	if len(t.work.all) > 0 {
		all = append(all, total{"received", sum.Received}, total{"done", sum.Done}, total{"failed", sum.Failed},
			total{"given_back", sum.Returned})
	}

	b := t.queues.broker
	if b == nil {
		return all
	}
	now := b.TotalLedger()
	if t.opts.QueuesOnly {
		all = append(all, total{"sent", now.Sent - t.before.Sent}, total{"done", now.Done - t.before.Done})
	}
	all = append(all, total{"dead_lettered", now.DeadLettered - t.before.DeadLettered})
	if queued, known := t.queued(b, now.Live); known {
		all = append(all, total{"queued", queued})
	}
	return all
}

func (t *totals) queued(b *broker.Broker, live int64) (n int64, known bool) {
	if t.opts.QueuesOnly {
		return live, true
	}
	for _, w := range t.queues.all {
		ledger, err := b.Ledger(w.name)
		if err != nil || !w.embedded {
			return 0, false
		}
		n += ledger.Live
	}
	return n, len(t.queues.all) > 0
}

func (t *totals) stopFields() map[string]string {
	fields := map[string]string{"reason": t.reason, "up": time.Since(t.began).Round(time.Second).String()}
	for _, total := range t.count() {
		fields[total.key] = strconv.FormatInt(total.n, 10)
	}
	return fields
}

func (t *totals) reportStopped() {
	if t.began.IsZero() || len(t.final) == 0 || t.again {
		return
	}
	attrs := []any{"component", "environment", "reason", t.reason, "up_ms", time.Since(t.began).Milliseconds()}
	for _, total := range t.final {
		attrs = append(attrs, total.key, total.n)
	}
	t.opts.Logger.Info("stopped", attrs...)
}
