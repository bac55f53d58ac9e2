package telemetry

import (
	"context"
	"time"

	"tendril/periodic"
	"tendril/supervisor"
	"tendril/worker"
)

// Sources answer what is so at this moment. They are asked only when somebody
// reads the metrics, from a goroutine of their own, and not again while an
// answer is outstanding or younger than a second. One that takes longer than
// two seconds is left out of that reading. Each may be nil; then its metrics are
// absent.
type Sources struct {
	// Lines tells of the workers.
	Workers func() []WorkerStatus
	// Queues tells what lies in the queues. Its context ends with the process's
	// patience: a queue far away may answer late or not at all.
	Queues func(ctx context.Context) []Queue
	// Processes tells of the app's processes.
	Processes func() []supervisor.Status
	// Tasks tells of the periodic tasks, as the scheduler does.
	Tasks func() (tasks []periodic.TaskStatus, term int64)
	// Leader tells whether this instance is in charge.
	Leader func() bool
	// Limits tells of the limits that protect targets.
	Limits func() []Limit
}

// Line is a worker with its target.
type WorkerStatus struct {
	// Queue and Target are the labels that [Telemetry.Worker] got.
	Queue, Target string
	Status        worker.Status
}

// Queue is what lies in one queue.
type Queue struct {
	Name string
	// Visible, InFlight and Delayed are numbers of messages.
	Visible, InFlight, Delayed int64
	// OldestAge is the age of the oldest message, 0 when there is none. HasAge is
	// false where the queue does not tell.
	OldestAge time.Duration
	HasAge    bool
}

// Limit is what protects one target. The zero value protects nothing.
type Limit struct {
	Target string
	// Concurrency is the most deliveries at once that it permits now; 0 when it
	// has no say in that.
	Concurrency int
	// Breaker is "closed", "open" or "half-open"; "" for no breaker.
	Breaker string
	// RateRefused, ConcurrencyRefused and BreakerRefused count how often a
	// delivery had to wait since the start, by the reason.
	RateRefused, ConcurrencyRefused, BreakerRefused int64
}
