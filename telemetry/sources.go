package telemetry

import (
	"context"
	"time"

	"tendril/periodic"
	"tendril/supervisor"
	"tendril/worker"
)

// Sources return the current state. They are called when the metrics are read, each on
// its own goroutine, and not again while a call is running or its result is younger
// than a second. The metrics of a source that takes longer than two seconds are absent
// from that reading. Each may be nil; then its metrics are always absent.
type Sources struct {
	// Workers returns the status of all workers.
	Workers func() []WorkerStatus
	// Queues returns the number of messages in the queues. A remote queue may answer
	// late or not at all: ctx limits the call.
	Queues func(ctx context.Context) []Queue
	// Processes returns the status of the app's processes.
	Processes func() []supervisor.Status
	// Tasks returns the periodic tasks and the term of the leader.
	Tasks func() (tasks []periodic.TaskStatus, term int64)
	// Leader reports whether this instance is the leader.
	Leader func() bool
	// Limits returns the state of the limits of all targets.
	Limits func() []Limit
}

// WorkerStatus is the status of one worker.
type WorkerStatus struct {
	// Queue and Target are the arguments of [Telemetry.Worker].
	Queue, Target string
	Status        worker.Status
}

// Queue is the state of one queue.
type Queue struct {
	Name string
	// Visible, InFlight and Delayed are numbers of messages.
	Visible, InFlight, Delayed int64
	// OldestAge is the age of the oldest message, 0 when there is none. HasAge is false
	// when the queue does not report it.
	OldestAge time.Duration
	HasAge    bool
}

// Limit is the state of the limits of one target. The zero value has no limits.
type Limit struct {
	Target string
	// Concurrency is the adaptive limit of concurrent deliveries; 0 without one.
	Concurrency int
	// Breaker is "closed", "open" or "half-open"; "" for no breaker.
	Breaker string
	// RateRefused, ConcurrencyRefused and BreakerRefused count how often a delivery had
	// to wait since the start, by reason.
	RateRefused, ConcurrencyRefused, BreakerRefused int64
}
