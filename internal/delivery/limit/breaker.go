package limit

import (
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

// The states are shown in [Status].Breaker.
const (
	stateClosed   = "closed"
	stateOpen     = "open"
	stateHalfOpen = "half-open" // one trial delivery at a time
)

const (
	minDeliveries = 10
	// maxDelay is the longest delay, unless [Breaker.Delay] is longer.
	maxDelay = time.Minute
)

// breaker adds trial deliveries and a slow start to the library's circuit breaker.
type breaker struct {
	opts   *Options
	lib    circuitbreaker.CircuitBreaker[any]
	events *deferredEvents

	state string
	// generation counts state changes, so that results of earlier deliveries are ignored.
	generation     uint32
	inWork         int
	trialRunning   bool
	slowStartLimit int
	// openings counts the breaker's openings since the app was last at full concurrency.
	openings          int
	openedAt, trialAt time.Time
	// now is the time of the current call, which onStateChanged needs.
	now time.Time
}

// If no breaker is configured, newBreaker returns nil, which allows everything.
func newBreaker(opts *Options, events *deferredEvents) *breaker {
	if opts.Breaker == nil {
		return nil
	}
	b := &breaker{opts: opts, events: events, state: stateClosed}
	b.lib = circuitbreaker.NewBuilder[any]().
		WithFailureRateThreshold(opts.Breaker.FailureRatio, minDeliveries, opts.Breaker.Window).
		WithSuccessThresholdRatio(1, 1).
		OnStateChanged(b.onStateChanged).
		Build()
	return b
}

func (b *breaker) admits(now time.Time) (ok bool, wait time.Duration) {
	switch {
	case b == nil || b.state == stateClosed:
		return true, 0
	case b.state == stateOpen:
		wait = max(b.trialAt.Sub(now), 0)
		return wait == 0, wait
	default:
		return !b.trialRunning, 0
	}
}

func (b *breaker) available() bool {
	return b == nil || b.slowStartLimit == 0 || b.inWork < b.slowStartLimit
}

func (b *breaker) acquire(now time.Time) (generation uint32) {
	if b == nil {
		return 0
	}
	if b.state == stateOpen {
		b.now = now
		b.lib.HalfOpen()
	}
	b.trialRunning = b.state == stateHalfOpen
	b.inWork++
	return b.generation
}

func (b *breaker) release(now time.Time, generation uint32, class resultClass) {
	if b == nil || generation != b.generation {
		return
	}

	b.now = now
	b.inWork--
	switch class {
	case resultOK:
		// Adding one per success doubles the concurrency in about the duration of a delivery.
		if b.slowStartLimit > 0 {
			b.slowStartLimit++
		}
		if b.slowStartLimit >= b.opts.Concurrency {
			b.slowStartLimit, b.openings = 0, 0
		}
		b.lib.RecordSuccess()
	case resultFailed:
		if b.slowStartLimit > 1 {
			b.slowStartLimit /= 2
		}
		b.lib.RecordFailure()
	default:
		b.trialRunning = false // inconclusive: another delivery becomes the trial
	}
}

// onStateChanged is called by the library during acquire and release.
func (b *breaker) onStateChanged(e circuitbreaker.StateChangedEvent) {
	b.generation++
	b.inWork = 0
	b.trialRunning = false
	b.slowStartLimit = 0
	switch e.NewState {
	case circuitbreaker.OpenState:
		b.open(e.Metrics())
	case circuitbreaker.HalfOpenState:
		b.state = stateHalfOpen
		notify(b.events, b.opts.Events.HalfOpened, HalfOpened{})
	case circuitbreaker.ClosedState:
		b.close()
	}
}

func (b *breaker) open(m circuitbreaker.Metrics) {
	trialFailed := b.state == stateHalfOpen
	b.state = stateOpen
	if !trialFailed {
		b.openedAt = b.now
	}
	delay := b.delay()
	b.openings++
	b.trialAt = b.now.Add(delay)
	notify(b.events, b.opts.Events.Opened,
		Opened{Failures: int(m.Failures()), Deliveries: int(m.Executions()), TrialFailed: trialFailed, Delay: delay})
}

func (b *breaker) close() {
	b.state = stateClosed
	if b.opts.Concurrency > 1 {
		b.slowStartLimit = 1
	} else {
		b.openings = 0
	}
	notify(b.events, b.opts.Events.Closed, Closed{After: b.now.Sub(b.openedAt)})
}

func (b *breaker) delay() time.Duration {
	delay, longest := b.opts.Breaker.Delay, max(maxDelay, b.opts.Breaker.Delay)
	for range b.openings {
		delay = min(2*delay, longest)
	}
	return delay
}

func (b *breaker) room(e *estimate, now time.Time, d time.Duration) (n int, reason string) {
	switch {
	case b == nil:
		return unlimited, ""
	case b.state == stateOpen && b.trialAt.Sub(now) > max(d, 0), b.trialRunning:
		return 0, reasonBreaker
	case b.state != stateClosed:
		return e.messages(1), reasonBreaker
	case b.slowStartLimit > 0:
		return e.room(b.slowStartLimit, b.inWork, d), reasonConcurrency
	default:
		return unlimited, ""
	}
}
