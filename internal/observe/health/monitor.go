package health

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tendril/internal/observe/event"
)

const interval = 10 * time.Second

// Options configure a [Monitor]. Functions are called only after startup. They must not block and must be safe for
// concurrent use.
type Options struct {
	// StartLimit is counted from Began; 0 means 10 min.
	Began      time.Time
	StartLimit time.Duration
	// Started is closed after startup, AppReady when the app first becomes ready, and Draining when shutdown begins.
	Started, AppReady, Draining <-chan struct{}
	Host                        *Host
	IgnoreClientErrors          bool // excludes 4xx responses

	Queues func(now time.Time) []QueueState
	// App returns false if tendril does not run the app.
	App    func() (AppState, bool)
	Leader func() LeaderState
	// Tasks returns the paused and failing tasks. Scaling returns the reason that the group cannot have the size this
	// instance wants, or "".
	Tasks   func() []TaskState
	Scaling func() string
	DataDir func() DataDirState
	// RegistryLost returns the reason that receiving is stopped. It may be nil.
	RegistryLost func() string
	Problems     func() []StoredProblem // may be nil
	Log          *slog.Logger
}

// Monitor evaluates health. All methods except Run are safe for concurrent use.
type Monitor struct {
	opts Options

	perQueue sync.Map
	wasReady atomic.Bool // all targets were ready at the same time
	again    chan struct{}

	pollsMu sync.Mutex
	polls   map[string]pollFailure

	mu        sync.Mutex
	steady    steady
	host      Reading
	shown     Status
	increases increases
	noLeader  time.Time

	lastRound atomic.Pointer[time.Time]
}

// NewMonitor returns a monitor, started by [Monitor.Run].
func NewMonitor(opts Options) *Monitor {
	m := &Monitor{opts: opts, again: make(chan struct{}, 1), polls: map[string]pollFailure{}, increases: increases{}}
	m.lastRound.Store(&time.Time{})
	return m
}

type queueCounts struct {
	deliveries window
	expired    atomic.Int64
}

func (m *Monitor) of(queue string) *queueCounts {
	c, known := m.perQueue.Load(queue)
	if !known {
		c, _ = m.perQueue.LoadOrStore(queue, &queueCounts{})
	}
	return c.(*queueCounts)
}

// Delivered counts a delivery. failed is ignored for a success.
func (m *Monitor) Delivered(queue string, c Class, d time.Duration, failed Failure) {
	m.of(queue).deliveries.count(c, d, failed, time.Now())
}

// Latencies returns the durations of all answered deliveries since startup.
func (m *Monitor) Latencies() (sum Latencies) {
	for _, c := range m.perQueue.Range {
		of := c.(*queueCounts).deliveries.latencies()
		sum.Add(&of)
	}
	return sum
}

// Expired counts n messages of a queue that exceeded their retention period.
func (m *Monitor) Expired(queue string, n int64) { m.of(queue).expired.Add(n) }

// PollFailed records a failed receive. final means that retrying is pointless.
func (m *Monitor) PollFailed(queue string, err error, final bool) {
	m.pollsMu.Lock()
	defer m.pollsMu.Unlock()
	f, again := m.polls[queue]
	if !again {
		f.problem.Since = time.Now()
	}
	m.polls[queue] = pollFailure{Problem{f.problem.Since, err.Error()}, final}
}

// PollAnswered records a successful receive.
func (m *Monitor) PollAnswered(queue string) {
	m.pollsMu.Lock()
	defer m.pollsMu.Unlock()
	delete(m.polls, queue)
}

// JudgeSoon requests an evaluation without waiting for it.
func (m *Monitor) JudgeSoon() {
	select {
	case m.again <- struct{}{}:
	default:
	}
}

// Run evaluates health every ten seconds (a round) and after important changes, until ctx is done.
func (m *Monitor) Run(ctx context.Context) {
	tick := time.Tick(interval)
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
		case <-tick:
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

// judge evaluates health. Only rounds measure the machine and count as checks in smoothing.
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
	steady, r := m.steady.settle(judge(in), now, round)
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
		return
	}
	event.Health.Log(m.opts.Log, changeLevel(before, r.Status), "health changed",
		append([]any{"status", string(r.Status), "was", string(before)}, r.LogAttrs()...)...)
}

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

// Report returns the current health, or No Data if the last round was too long ago.
func (m *Monitor) Report() Report {
	now, last := time.Now(), *m.lastRound.Load()
	if last.IsZero() {
		return reportOf(causesOf(judge(m.starting(now))))
	}
	if age := now.Sub(last); age > maxSilence {
		r := noData("No data. Last seen " + ago(age) + " ago.")
		r.Since = last
		return r
	}
	r, _ := m.judge(now, false)
	return r
}

// Live returns the liveness check, which fails if rounds have stopped.
func (m *Monitor) Live() []Check { return live(*m.lastRound.Load(), time.Now()) }

// Started returns the startup checks.
func (m *Monitor) Started() []Check {
	if !isClosed(m.opts.Started) {
		return []Check{{Name: "start", Detail: "starting"}}
	}
	now := time.Now()
	return startup(m.condition(now, m.opts.Queues(now)))
}

// Ready returns the readiness checks.
func (m *Monitor) Ready() []Check {
	now := time.Now()
	if !isClosed(m.opts.Started) {
		return []Check{running(m.starting(now)), {Name: "start", Detail: "starting"}}
	}
	if queues := m.opts.Queues(now); len(queues) > 0 {
		return ready(m.condition(now, queues))
	}
	in := m.starting(now) // without workers, only embedded queues need a check
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

func (m *Monitor) starting(now time.Time) inputs {
	in := inputs{Now: now, Started: m.opts.Began, StartLimit: m.opts.StartLimit, Draining: isClosed(m.opts.Draining),
		DataDir: m.opts.DataDir()}
	if in.DataDir.Embedded {
		in.Store = in.DataDir.Lost
	}
	return in
}

func (m *Monitor) condition(now time.Time, queues []QueueState) inputs {
	in := m.starting(now)
	app := &in.App
	app.Ready = true

	m.pollsMu.Lock()
	defer m.pollsMu.Unlock()

	for _, q := range queues {
		one := queueInputs{QueueState: q}
		for _, p := range q.NotReady {
			if app.Ready || p.Since.Before(app.Since) {
				app.Since = p.Since
			}
			app.Ready, app.Reason = false, p.Reason
		}
		if len(q.NotReady) > 0 {
			app.Queues = append(app.Queues, q.Name)
		}

		// A failing embedded queue is this instance's problem; other queues are shared.
		switch f, fails := m.polls[q.Name]; {
		case q.DeletesRefused != (Problem{}):
			one.Poll = pollFailure{q.DeletesRefused, true}
		case !fails || !q.Receiving:
		case q.Embedded:
			in.Store = cmp.Or(in.Store, f.problem.Reason)
		default:
			one.Poll = f
		}
		in.Queues = append(in.Queues, one)
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

	in.IgnoreClientErrors = m.opts.IgnoreClientErrors
	for i := range in.Queues {
		m.addCounts(&in.Queues[i], now)
	}
	if m.opts.Problems != nil {
		in.Problems = m.opts.Problems()
	}

	in.Leader = m.opts.Leader()
	in.Tasks = m.opts.Tasks()
	in.Scaling = m.opts.Scaling()
	if m.opts.RegistryLost != nil {
		in.RegistryLost = m.opts.RegistryLost()
	}

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

func (m *Monitor) addCounts(q *queueInputs, now time.Time) {
	c := m.of(q.Name)
	recent, last := c.deliveries.sum(now)
	q.Deliveries = recent.classes
	q.P95 = recent.latencies.Percentile(0.95)
	q.LastFailed = last
	q.Expired = m.increases.within("expired messages of "+q.Name, 0, c.expired.Load(), now)
	if q.Known && q.HasDeadLetters {
		added := m.increases.within("dead letters of "+q.Name, q.DeadLettered, q.DeadLettered, now)
		q.NewDeadLetters = min(added, q.DeadLetters)
	}
}
