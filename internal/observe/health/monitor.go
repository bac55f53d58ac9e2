package health

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tendril/internal/observe/event"
)

// interval is the time between two rounds.
const interval = 10 * time.Second

// Options say what a [Monitor] judges. The sources are called only after the start, must
// return at once, and are safe for concurrent use.
type Options struct {
	// Began is when the start began; StartLimit is how long it may take until the app is
	// ready first, 0 means 10 min.
	Began      time.Time
	StartLimit time.Duration
	// Started is closed when the start is over, AppReady when the app that tendril runs was
	// ready first, and Draining when a stop begins.
	Started, AppReady, Draining <-chan struct{}
	// Host measures the machine.
	Host *Host
	// IgnoreClientErrors leaves answers of 4xx out of the judgement.
	IgnoreClientErrors bool

	// Queues returns the state of each queue that is received from.
	Queues func(now time.Time) []QueueState
	// App returns the state of the app that tendril runs; false when it runs none.
	App func() (AppState, bool)
	// Leader returns what is known about the leader of the periodic tasks.
	Leader func() LeaderState
	// Tasks returns the periodic tasks that are paused or do not succeed. Scaling returns why a group of instances keeps
	// a size that this one would change; "" if it does not.
	Tasks   func() []TaskState
	Scaling func() string
	// DataDir returns what is known about the data directory.
	DataDir func() DataDirState
	// Problems are sentences about stored messages that are damaged, or never come to an end; nil for none.
	Problems func() []string
	// Log gets each change of the status.
	Log *slog.Logger
}

// Monitor judges every ten seconds how the environment does, and at once when something
// important changes. All methods but Run are safe for concurrent use.
type Monitor struct {
	opts Options

	// deliveries are those of the last minutes.
	deliveries window
	// expired counts the messages that were deleted because their retention was over.
	expired atomic.Int64
	// wasReady tells that every target was seen to be ready at once.
	wasReady atomic.Bool
	// again asks for a judgement before the next round.
	again chan struct{}

	// polls are the queues that do not answer, by name.
	pollsMu sync.Mutex
	polls   map[string]pollFailure

	// mu guards the state of judgements.
	mu        sync.Mutex
	steady    steady
	host      Reading // of the last round
	shown     Status  // logged last
	increases increases
	noLeader  time.Time

	lastRound atomic.Pointer[time.Time] // zero before the first
}

// NewMonitor returns a monitor; [Monitor.Run] starts its rounds.
func NewMonitor(opts Options) *Monitor {
	m := &Monitor{opts: opts, again: make(chan struct{}, 1), polls: map[string]pollFailure{}, increases: increases{}}
	m.lastRound.Store(&time.Time{})
	return m
}

// Delivered counts a delivery that took d.
func (m *Monitor) Delivered(c Class, d time.Duration) { m.deliveries.count(c, d, time.Now()) }

// Latencies counts the deliveries since the start that were answered.
func (m *Monitor) Latencies() Latencies { return m.deliveries.latencies() }

// Expired counts messages that were deleted because their retention was over.
func (m *Monitor) Expired(n int64) { m.expired.Add(n) }

// PollFailed notes that a queue could not be received from; final means that it will not
// help to try again.
func (m *Monitor) PollFailed(queue string, err error, final bool) {
	m.pollsMu.Lock()
	defer m.pollsMu.Unlock()
	f, again := m.polls[queue]
	if !again {
		f.problem.Since = time.Now()
	}
	m.polls[queue] = pollFailure{Problem{f.problem.Since, err.Error()}, final}
}

// PollAnswered notes that a queue was received from.
func (m *Monitor) PollAnswered(queue string) {
	m.pollsMu.Lock()
	defer m.pollsMu.Unlock()
	delete(m.polls, queue)
}

// JudgeSoon asks for a judgement without waiting for it.
func (m *Monitor) JudgeSoon() {
	select {
	case m.again <- struct{}{}:
	default:
	}
}

// Run judges until ctx ends: every ten seconds, when the start is over, when the app is ready
// first, when a drain begins, after JudgeSoon, and when the app has been away for too long.
func (m *Monitor) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	severe := time.NewTimer(interval)
	defer severe.Stop()

	started, ready, draining := m.opts.Started, m.opts.AppReady, m.opts.Draining
	for round := true; ; {
		now := time.Now()
		_, app := m.judge(now, round)
		if at := app.Since.Add(notReadyGrace); !app.Ready && at.After(now) {
			severe.Reset(time.Until(at))
		}

		round = false
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			round = true
		case <-started:
			started = nil
		case <-ready:
			ready = nil
		case <-draining:
			draining = nil
		case <-m.again:
		case <-severe.C:
		}
	}
}

// judge makes one judgement and logs a change of the status. Only that of a round measures the machine and
// counts as one of those that must agree; one between rounds is remembered if it changes the status.
func (m *Monitor) judge(now time.Time, round bool) (Report, appInputs) {
	var host Reading
	if round {
		host = m.opts.Host.Read()
		defer m.lastRound.Store(&now)
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	if round {
		m.host = host
	}

	in := m.gather(now)
	r, before := judge(in), m.steady
	if !round {
		before = before.between(r)
	}

	steady, r := before.settle(r, now)
	if round || r.Status != m.shown {
		m.steady = steady
	}

	m.logChange(r)
	return r, in.App
}

func (m *Monitor) logChange(r Report) {
	if r.Status == m.shown {
		return
	}
	before := m.shown
	m.shown = r.Status
	if before == "" && r.Status == Pending {
		return // every start is
	}
	attrs := []any{"status", string(r.Status), "was", string(before)}
	if len(r.Causes) > 0 {
		attrs = append(attrs, "reason", strings.Join(r.Causes, " "))
	}
	event.Health.Log(m.opts.Log, changeLevel(before, r.Status), "health changed", attrs...)
}

// changeLevel is the log level of a change of status. A change between Ok and Info is of no
// importance.
func changeLevel(before, now Status) slog.Level {
	switch {
	case now == Severe:
		return slog.LevelError
	case now == Degraded || now == Warning || now == NoData:
		return slog.LevelWarn
	case now.Color() == Green && before.Color() == Green:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// Report returns the judgement of now, or No Data if the last round is too long ago.
func (m *Monitor) Report() Report {
	now, last := time.Now(), *m.lastRound.Load()
	if last.IsZero() {
		return judge(m.starting(now))
	}
	if age := now.Sub(last); age > maxSilence {
		r := grey(NoData, "No data. Last seen "+ago(age)+" ago.")
		r.Since = last
		return r
	}
	r, _ := m.judge(now, false)
	return r
}

// Live are the conditions of being alive: that the rounds go on.
func (m *Monitor) Live() []Check { return live(*m.lastRound.Load(), time.Now()) }

// Started are the conditions of the start being over.
func (m *Monitor) Started() []Check {
	if !isClosed(m.opts.Started) {
		return []Check{{Name: "start", Detail: "starting"}}
	}
	now := time.Now()
	return startup(m.condition(now, m.opts.Queues(now)))
}

// Ready are the conditions of being used.
func (m *Monitor) Ready() []Check {
	now := time.Now()
	if !isClosed(m.opts.Started) {
		return []Check{running(m.starting(now)), {Name: "start", Detail: "starting"}}
	}
	if queues := m.opts.Queues(now); len(queues) > 0 {
		return ready(m.condition(now, queues))
	}
	in := m.starting(now) // embedded queues without a worker
	return append([]Check{running(in)}, store(in)...)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// starting are the inputs before the start is over.
func (m *Monitor) starting(now time.Time) inputs {
	in := inputs{Now: now, Started: m.opts.Began, StartLimit: m.opts.StartLimit, Draining: isClosed(m.opts.Draining),
		DataDir: m.opts.DataDir()}
	if in.DataDir.Embedded {
		in.Queue.Failed = in.DataDir.Lost
	}
	return in
}

// condition are the inputs that decide whether this instance should be used.
func (m *Monitor) condition(now time.Time, queues []QueueState) inputs {
	in := m.starting(now)
	app := &in.App
	app.Ready = true

	m.pollsMu.Lock()
	defer m.pollsMu.Unlock()

	for _, q := range queues {
		in.InWork += q.InWork
		for _, p := range q.NotReady {
			if app.Ready || p.Since.Before(app.Since) {
				app.Since = p.Since
			}
			app.Ready, app.Reason = false, p.Reason
		}

		if p := q.DeletesRefused; p != (Problem{}) {
			in.Queue.DeletesRefused = q.Name + ": " + p.Reason
			in.Poll = pollFailure{Problem{p.Since, in.Queue.DeletesRefused}, true}
		}

		// The store of an embedded queue is this instance's own; any other queue is shared.
		switch f, fails := m.polls[q.Name]; {
		case !fails || !q.Receiving:
		case q.Embedded:
			in.Queue.Failed = cmp.Or(in.Queue.Failed, f.problem.Reason)
		case !in.Poll.Final:
			in.Poll = pollFailure{Problem{f.problem.Since, q.Name + ": " + f.problem.Reason}, f.Final}
		}
	}

	if app.Ready {
		m.wasReady.Store(true)
	}
	app.WasReady = m.wasReady.Load()

	if own, runs := m.opts.App(); runs {
		app.WasReady = app.WasReady || isClosed(m.opts.AppReady)
		if app.Processes = own.Processes; !app.Ready {
			app.Reason = cmp.Or(own.NotReady, app.Reason)
			if !own.LastReady.IsZero() && own.LastReady.Before(app.Since) {
				app.Since = own.LastReady
			}
		}
		in.Operation, in.Deployment = own.Operation, own.Deployment
	}
	return in
}

// gather reads all inputs. The lock is held.
func (m *Monitor) gather(now time.Time) inputs {
	if !isClosed(m.opts.Started) {
		return m.starting(now)
	}

	queues := m.opts.Queues(now)
	in := m.condition(now, queues)
	for i := range in.App.Processes {
		p := &in.App.Processes[i]
		p.Restarts = int(m.increases.within("restarts of "+p.Name, 0, int64(p.Restarts), now))
	}

	recent := m.deliveries.sum(now)
	in.Deliveries, in.P95 = recent.classes, recent.latencies.Percentile(0.95)
	in.IgnoreClientErrors = m.opts.IgnoreClientErrors

	in.Paused = len(queues) > 0
	for _, q := range queues {
		in.DeliveryLimit = max(in.DeliveryLimit, q.DeliveryLimit)
		in.Paused = in.Paused && q.Paused
	}

	m.addQueues(&in.Queue, queues, now)
	if m.opts.Problems != nil {
		in.Problems = m.opts.Problems()
	}

	in.Leader = m.opts.Leader()
	in.Tasks = m.opts.Tasks()
	in.Scaling = m.opts.Scaling()

	switch {
	case in.Leader.Off:
		m.noLeader = m.opts.Began
	case in.Leader.Known:
		m.noLeader = time.Time{}
	case m.noLeader.IsZero():
		m.noLeader = now
	}

	in.NoLeader = m.noLeader
	in.Host = m.host
	return in
}

// addQueues adds up what waits. The oldest message is that of the queue
// in which it comes nearest to its end.
func (m *Monitor) addQueues(sum *queueInputs, queues []QueueState, now time.Time) {
	sum.Known = len(queues) > 0
	var nearest float64

	for _, q := range queues {
		if !q.Known {
			sum.Known = false
			continue
		}
		sum.Backlog += q.Backlog
		sum.DeadLetters += q.DeadLetters
		if q.HasDeadLetters {
			sum.NewDeadLetters += m.increases.within("dead letters of "+q.Name, q.DeadLettered, q.DeadLettered, now)
		}
		if !q.Taken.IsZero() && (sum.Taken.IsZero() || q.Taken.Before(sum.Taken)) {
			sum.Taken = q.Taken
		}
		if share := q.Oldest.Seconds() / q.Retention.Seconds(); share > nearest {
			nearest, sum.Oldest, sum.Retention = share, q.Oldest, q.Retention
		}
	}

	sum.Expired = m.increases.within("expired messages", 0, m.expired.Load(), now)
	sum.NewDeadLetters = min(sum.NewDeadLetters, sum.DeadLetters)
}
