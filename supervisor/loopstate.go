package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"
)

// processLoop keeps one process running. Its loop is one goroutine; a second one
// checks readiness while the process runs.
type processLoop struct {
	proc *Process
	opts *Options
	rule restartRule
	sys  *system
	out  *output
	// stop and kill are closed to have the process end: by TERM, by KILL.
	stop, kill <-chan struct{}
	// restarts takes in who wants the process started afresh; each hears how
	// the start went. ended is closed when the loop has.
	restarts chan chan<- error
	ended    chan struct{}
	// gate has the supervisor look again at who is ready.
	gate func()

	// asked hears of the next start; nil for nobody. failures are those that
	// count. onTrial: the process was given up and is tried again. All three
	// are the loop's own.
	asked    chan<- error
	failures []time.Time
	onTrial  bool

	mu      sync.Mutex
	status  Status
	current *child
}

// system is what a processLoop needs of the machine.
type system struct {
	start func(*Process, *output) (*child, error)
	probe func(context.Context, Check) error
	taken func(port int) bool
	// random returns a number in [0, 1).
	random func() float64
	// close is called when no process is left.
	close func()
}

// errStopping ends a start that the supervisor's stop overtook.
var errStopping = errors.New("the supervisor is stopping")

// restartRule decides what follows a failure. It is a pure function of the
// failures so far, the time and one random number.
type restartRule struct {
	min, max time.Duration
	limit    int
	window   time.Duration
}

// restartDecision is what follows one failure.
type restartDecision struct {
	// giveUp: no restart. Otherwise delay is the pause before it.
	giveUp bool
	delay  time.Duration
	// failures counts those within the window, this one included.
	failures int
}

// next takes the earlier failures, oldest first, one more at now, and a random
// number in [0, 1). It returns the failures to remember and the decision.
func (r restartRule) next(earlier []time.Time, now time.Time, random float64) ([]time.Time, restartDecision) {
	for len(earlier) > 0 && now.Sub(earlier[0]) >= r.window {
		earlier = earlier[1:]
	}
	failures := append(earlier, now)
	if more := len(failures) - r.limit - 1; more > 0 {
		// Too many are too many: what is tried for ever must not grow for ever.
		failures = failures[more:]
	}
	d := restartDecision{failures: len(failures)}
	if d.failures > r.limit {
		d.giveUp = true
		return failures, d
	}
	d.delay = r.delay(d.failures, random)
	return failures, d
}

// delay doubles from min to max. Its second half is random, so that machines
// that failed together do not come back together.
func (r restartRule) delay(failures int, random float64) time.Duration {
	base := r.min
	for i := 1; i < failures && base < r.max; i++ {
		base *= 2
	}
	half := min(base, r.max) / 2
	return max(r.min, half+time.Duration(random*float64(half)))
}

// enter moves the process to a state; change may set more.
func (l *processLoop) enter(state State, change func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.State, l.status.Since = state, time.Now()
	if change != nil {
		change(&l.status)
	}
}

// snapshot returns the status as it is now.
func (l *processLoop) snapshot() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	if s.LastExit != nil {
		last := *s.LastExit
		s.LastExit = &last
	}
	if l.out != nil {
		s.LinesDropped = l.out.lost.Load()
	}
	return s
}

// usage measures the present run.
func (l *processLoop) usage() Usage {
	l.mu.Lock()
	c := l.current
	l.mu.Unlock()
	if c == nil || c.usage == nil {
		return Usage{}
	}
	u := c.usage()
	u.PID = c.pid
	return u
}

func (l *processLoop) stopping() bool { return isClosed(l.stop) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// untilStop returns a context that ends when stop does.
func (l *processLoop) untilStop() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-l.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// call calls f where there is one.
func call[E any](f func(E), event E) {
	if f != nil {
		f(event)
	}
}
