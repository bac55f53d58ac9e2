package environment

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tendril/console"
	"tendril/health"
)

// healthRhythm is the time between two judgements.
const healthRhythm = 10 * time.Second

// wellbeing judges, every ten seconds, how the environment does.
type wellbeing struct {
	// window has the deliveries of the last minutes.
	window health.Window
	host   *health.Host
	polls  polls
	// everReady tells that every target was seen to be ready at once.
	everReady atomic.Bool
	// expired counts the messages that were deleted because their retention was over.
	expired atomic.Int64

	// again asks for a judgement before the next is due.
	again chan struct{}

	// judging guards the state of judgements.
	judging          sync.Mutex
	steady           health.Steady
	reading          health.Reading // of the host, as of the last round
	shown            health.Status  // told last
	restarts, deaths rises
	expiries         rises
	noLeader         time.Time

	mu   sync.Mutex
	beat time.Time
}

// startHealth judges until the stop is nearly over: the console shows the drain.
func (e *Environment) startHealth(context.Context) error {
	run, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { e.watchHealth(run); close(ended) }()
	e.steps.push("the health", func(context.Context) error {
		stop()
		<-ended
		return nil
	})
	return nil
}

// watchHealth judges every ten seconds, and at once when the start is over, the
// app is ready first, a drain begins, receiving stops or goes on, or the app has been
// away for long.
func (e *Environment) watchHealth(ctx context.Context) {
	tick := time.NewTicker(healthRhythm)
	defer tick.Stop()
	severe := time.NewTimer(healthRhythm)
	defer severe.Stop()
	started, ready, draining := e.started, e.ready, e.draining
	e.healthRound(time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			e.healthRound(now)
		case <-e.well.again:
			e.judge(time.Now(), false)
		case <-severe.C:
			e.judge(time.Now(), false)
		case <-started:
			started = nil
			e.healthRound(time.Now())
		case <-ready:
			ready = nil
			e.healthRound(time.Now())
		case <-draining:
			draining = nil
			e.healthRound(time.Now())
		}
		if at := e.severeAt(); !at.IsZero() {
			severe.Reset(time.Until(at))
		}
	}
}

// severeAt is when the app will have been away for too long; zero when it is there, or
// has been.
func (e *Environment) severeAt() time.Time {
	if !e.running() {
		return time.Time{}
	}
	now := time.Now()
	app := e.condition(now).App
	if at := app.Since.Add(health.NotReadyGrace); !app.Ready && at.After(now) {
		return at
	}
	return time.Time{}
}

// healthRound is one of the judgements that are made all ten seconds.
func (e *Environment) healthRound(now time.Time) {
	reading := e.well.host.Read()
	e.well.judging.Lock()
	e.well.reading = reading
	e.well.judging.Unlock()
	e.judge(now, true)
	e.well.mu.Lock()
	e.well.beat = now
	e.well.mu.Unlock()
}

// judgeSoon asks for a judgement without waiting for it.
func (w *wellbeing) judgeSoon() {
	select {
	case w.again <- struct{}{}:
	default:
	}
}

// judge makes one judgement, and tells when the status is another. Between rounds it
// has no vote on what needs several that agree, unless the status changes.
func (e *Environment) judge(now time.Time, round bool) health.Report {
	w := &e.well
	w.judging.Lock()
	defer w.judging.Unlock()
	steady, r := w.steady.Settle(health.Judge(e.gatherHealth(now), now), now)
	if round || r.Status != w.shown {
		w.steady = steady
	}
	if r.Status == w.shown {
		return r
	}
	before := w.shown
	w.shown = r.Status
	if before == "" && r.Status == health.Pending {
		return r // every start is
	}
	e.report.note(healthLevel(before, r.Status), "health", "the environment's health is "+r.String(),
		slog.String("status", string(r.Status)), slog.String("was", string(before)))
	return r
}

// healthLevel is how loudly a change of status is told. To and fro between the
// two that are green is of no importance.
func healthLevel(before, now health.Status) slog.Level {
	switch {
	case now == health.Severe:
		return slog.LevelError
	case now == health.Degraded || now == health.Warning || now == health.NoData:
		return slog.LevelWarn
	case now.Color() == health.Green && before.Color() == health.Green:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// healthReport is the judgement of now; where the last round is long ago, that
// nothing is known.
func (e *Environment) healthReport() health.Report {
	e.well.mu.Lock()
	beat := e.well.beat
	e.well.mu.Unlock()
	now := time.Now()
	if beat.IsZero() {
		return health.Judge(e.starting(now), now)
	}
	if old := health.Judge(health.Inputs{Taken: beat}, now); old.Status == health.NoData {
		old.Since = beat
		return old
	}
	return e.judge(now, false)
}

// isGreen reports whether the environment's health is Ok or Info.
func (e *Environment) isGreen() bool { return e.healthReport().Color == health.Green }

// liveChecks are the conditions of being alive: that the loop which judges comes
// round.
func (e *Environment) liveChecks() []console.Check {
	e.well.mu.Lock()
	beat := e.well.beat
	e.well.mu.Unlock()
	return checksOf(health.Live(beat, time.Now()))
}

// startedChecks are the conditions of the start being over.
func (e *Environment) startedChecks() []console.Check {
	if !e.running() {
		return []console.Check{{Name: "start", Detail: "starting"}}
	}
	return checksOf(health.Startup(e.condition(time.Now())))
}

// withQueue adds what p says of the queue. One that does not answer is told, and
// no reason to be out of use, for other instances share it; the store of an
// embedded queue is this instance's own.
func withQueue(checks []console.Check, queue console.Check, p health.Probe) []console.Check {
	for _, c := range p.Checks {
		switch {
		case c.Name == "queue" && queue.OK:
			queue.Detail = c.Reason
		case c.Name == "store":
			checks = append(checks, console.Check{Name: c.Name, OK: c.OK, Detail: c.Reason})
		}
	}
	return append(checks, queue)
}

func checksOf(p health.Probe) []console.Check {
	checks := make([]console.Check, len(p.Checks))
	for i, c := range p.Checks {
		checks[i] = console.Check{Name: c.Name, OK: c.OK, Detail: c.Reason}
	}
	return checks
}
