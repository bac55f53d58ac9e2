package environment

import (
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"tendril/api"
	"tendril/internal/console"
	"tendril/internal/observe/eventlog"
	"tendril/queue"
)

// failures keeps the latest failed deliveries of Amazon SQS queues, and the successes that followed them, across
// restarts. Embedded queues store theirs.
type failures struct {
	shown *console.Deliveries
	log   atomic.Pointer[eventlog.Log]
}

func (f *failures) restore(log *eventlog.Log) error {
	kept, err := log.Read(eventlog.Query{Range: eventlog.Range{Newest: true, Limit: api.DefaultDeliveries}})
	for _, e := range slices.Backward(kept) {
		f.shown.Record(deliveryOf(&e))
	}
	f.log.Store(log)
	return err
}

func (f *failures) record(w *workQueue, d *api.Delivery) {
	f.shown.Record(*d)
	failed := d.Outcome == queue.Failed.String()
	endsFailures := d.Done() && d.ReceiveCount > 1
	if log := f.log.Load(); log != nil && !w.embedded && (failed || endsFailures) {
		log.Add(d.Outcome, "", deliveryFields(d))
	}
}

func deliveryFields(d *api.Delivery) map[string]string {
	fields := map[string]string{"message_id": d.MessageID, "queue": d.Queue, "reason": d.Reason, "answer": d.Answer,
		"dead_letter_queue": d.DeadLetterQueue, "status": number(d.Status), "attempt": number(d.Attempt),
		"receives": number(d.ReceiveCount), "duration_ms": strconv.FormatInt(d.DurationMS, 10),
		"wait_ms": strconv.FormatInt(d.WaitMS, 10)}
	if !d.RetryAt.IsZero() {
		fields["retry_at"] = d.RetryAt.UTC().Format(time.RFC3339Nano)
	}
	maps.DeleteFunc(fields, func(_, value string) bool { return value == "" })
	return fields
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func deliveryOf(e *eventlog.Event) api.Delivery {
	f := e.Fields
	d := api.Delivery{MessageID: f["message_id"], Queue: f["queue"], Outcome: e.Kind, Reason: f["reason"],
		Answer: f["answer"], At: e.At, DeadLetterQueue: f["dead_letter_queue"]}
	d.Status, _ = strconv.Atoi(f["status"])
	d.Attempt, _ = strconv.Atoi(f["attempt"])
	d.ReceiveCount, _ = strconv.Atoi(f["receives"])
	d.DurationMS, _ = strconv.ParseInt(f["duration_ms"], 10, 64)
	d.WaitMS, _ = strconv.ParseInt(f["wait_ms"], 10, 64)
	d.RetryAt, _ = time.Parse(time.RFC3339Nano, f["retry_at"])
	return d
}
