package worker

import "time"

// Tuning is what may be changed while a worker runs. Its fields mean what those of
// [Options] mean.
type Tuning struct {
	Concurrency            int
	ErrorVisibilityTimeout *time.Duration
	Backoff                Backoff
	RespectRetryAfter      bool
	Retention              time.Duration
}

// Tune changes the worker from now on: for every attempt that ends later, also one
// that has begun. With less concurrency what is in work finishes first. In a pool the
// concurrency stays.
func (w *Worker) Tune(t *Tuning) {
	now := time.Now()
	w.mu.Lock()
	defer w.unlock()
	o := &w.opts // field by field: others are read without the lock
	o.ErrorVisibilityTimeout, o.Backoff, o.RespectRetryAfter, o.Retention = t.ErrorVisibilityTimeout, t.Backoff,
		t.RespectRetryAfter, or(t.Retention, DefaultRetention)
	if w.pool == nil {
		full := w.limit == o.Concurrency
		if o.Concurrency = clamp(or(t.Concurrency, DefaultConcurrency), 1, MaxConcurrency); full {
			w.limit = o.Concurrency
		}
	}
	w.limit = min(w.limit, w.opts.Concurrency)
	w.dispatch(now)
	w.wakeAt(now)
}
