package limit

import (
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

// State is what a breaker does; "" where there is none.
type State string

// The states of a breaker.
const (
	// StateClosed: deliveries flow.
	StateClosed State = "closed"
	// StateOpen: the app failed, and there are no deliveries.
	StateOpen State = "open"
	// StateHalfOpen: a few deliveries try the app out.
	StateHalfOpen State = "half-open"
)

// breaker stops deliveries to an app that fails. The library below counts
// results over the window and decides on the state; when a trial is due, which
// deliveries are trials, and the slow start are decided here.
type breaker struct {
	opts Breaker
	// most is the concurrency at which a slow start is over.
	most int
	lib  circuitbreaker.CircuitBreaker[any]
	tell func(any)

	state State
	// era counts the changes of state. A result counts only in the era in which
	// its delivery began: what is left of the time before an opening says nothing
	// about the trials.
	generation uint32
	// inWork counts the deliveries of this era that are in work.
	inWork int
	// trials counts the deliveries begun while half-open, without those that said
	// nothing.
	trials int
	// permitted is the concurrency of a slow start; 0 when there is none.
	slowStartLimit int
	// failures counts the openings since the app was last at full concurrency.
	failures int
	// since is when the breaker opened first since it was closed last; until is
	// when a trial may begin.
	since, trialAt time.Time
	// now is the time of the call that is being worked on, for changed.
	now time.Time
}

// newBreaker returns nil, which lets everything pass, without options.
func newBreaker(opts *Breaker, most int, tell func(any)) *breaker {
	if opts == nil {
		return nil
	}
	b := &breaker{opts: *opts, most: most, tell: tell, state: StateClosed}
	b.lib = circuitbreaker.NewBuilder[any]().
		WithFailureRateThreshold(opts.Share, uint(opts.MinRequests), opts.Window).
		WithSuccessThresholdRatio(uint(opts.Trials), uint(opts.Trials)).
		OnStateChanged(b.onStateChanged).
		Build()
	return b
}

// mayBegin reports whether a delivery may begin by the state alone. If not, wait
// says when to ask again; 0 means after the next result.
func (b *breaker) admits(now time.Time) (ok bool, wait time.Duration) {
	switch {
	case b == nil || b.state == StateClosed:
		return true, 0
	case b.state == StateOpen:
		wait = max(b.trialAt.Sub(now), 0)
		return wait == 0, wait
	default:
		return b.trials < b.opts.Trials, 0
	}
}

// free reports whether a slow start lets one more delivery begin.
func (b *breaker) free() bool {
	return b == nil || b.slowStartLimit == 0 || b.inWork < b.slowStartLimit
}

// take begins a delivery and returns its era; call it only after mayBegin and
// free.
func (b *breaker) take(now time.Time) (generation uint32) {
	if b == nil {
		return 0
	}
	if b.state == StateOpen {
		b.now = now
		b.lib.HalfOpen()
	}
	if b.state == StateHalfOpen {
		b.trials++
	}
	b.inWork++
	return b.generation
}

// release ends a delivery that began in era.
func (b *breaker) release(now time.Time, generation uint32, v resultClass) {
	if b == nil || generation != b.generation {
		return
	}
	b.now = now
	b.inWork--
	switch v {
	case resultOK:
		b.growSlowStart()
		b.lib.RecordSuccess()
	case resultFailed:
		if b.slowStartLimit > 1 {
			b.slowStartLimit /= 2
		}
		b.lib.RecordFailure()
	default:
		if b.state == StateHalfOpen {
			b.trials-- // it proved nothing: another may try
		}
	}
}

// quicken lets a slow start go on. One more for each answer doubles the
// concurrency in the time of one delivery.
func (b *breaker) growSlowStart() {
	if b.slowStartLimit == 0 {
		return
	}
	if b.slowStartLimit++; b.slowStartLimit >= b.most {
		b.slowStartLimit, b.failures = 0, 0
	}
}

// changed follows each change of state, out of the library's own calls.
func (b *breaker) onStateChanged(e circuitbreaker.StateChangedEvent) {
	b.generation++
	b.inWork, b.trials, b.slowStartLimit = 0, 0, 0
	switch e.NewState {
	case circuitbreaker.OpenState:
		again := b.state == StateHalfOpen
		if !again {
			b.since = b.now
		}
		b.state = StateOpen
		delay := b.delay()
		b.failures++
		b.trialAt = b.now.Add(delay)
		b.tell(Opened{Failures: int(e.Metrics().Failures()), Deliveries: int(e.Metrics().Executions()), Again: again, Delay: delay})
	case circuitbreaker.HalfOpenState:
		b.state = StateHalfOpen
		b.tell(HalfOpened{Trials: b.opts.Trials})
	case circuitbreaker.ClosedState:
		b.state = StateClosed
		if b.most > 1 {
			b.slowStartLimit = 1
		} else {
			b.failures = 0
		}
		b.tell(Closed{After: b.now.Sub(b.since)})
	}
}

// delay returns how long the breaker stays open this time.
func (b *breaker) delay() time.Duration {
	delay := b.opts.Delay
	for range b.failures {
		if delay >= b.opts.MaxDelay/2 {
			return b.opts.MaxDelay
		}
		delay *= 2
	}
	return delay
}

// room returns how many messages may begin within d, and why no more.
func (b *breaker) room(p *estimate, now time.Time, d time.Duration) (n int, reason string) {
	switch {
	case b == nil:
		return unlimited, ""
	case b.state == StateOpen && b.trialAt.Sub(now) > max(d, 0):
		return 0, ReasonBreaker
	case b.state != StateClosed:
		return p.messagesIn(float64(b.opts.Trials - b.trials)), ReasonBreaker
	case b.slowStartLimit > 0:
		return p.room(b.slowStartLimit, b.inWork, d), ReasonConcurrency
	default:
		return unlimited, ""
	}
}
