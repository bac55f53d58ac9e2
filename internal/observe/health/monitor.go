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

const roundInterval = 10 * time.Second

// Options configure a [Monitor]. Functions must not block, and must be safe for concurrent use. Except for DataDir,
// they are called only after startup.
type Options struct {
	// StartLimit counts from Began; 0 means 10 min.
	Began      time.Time
	StartLimit time.Duration
	// Started is closed after startup, AppReady once the app is ready, Draining when shutdown begins.
	Started, AppReady, Draining <-chan struct{}
	Host                        *Host
	IgnoreClientErrors          bool // excludes 4xx responses

	Queues func(now time.Time) []QueueState
	// App returns false if tendril does not run the app.
	App    func() (AppState, bool)
	Leader func() LeaderState
	// Tasks returns the paused and failing tasks. Scaling returns the reason that this instance, as the leader, delays
	// a scale-in, or "".
	Tasks   func() []TaskState
	Scaling func() string
	DataDir func() DataDirState
	// RegistryLost returns why receiving is stopped, or ""; may be nil.
	RegistryLost func() string
	Problems     func() []StoredProblem // may be nil
	Log          *slog.Logger
}

// Monitor evaluates health. Except for Run, it is safe for concurrent use.
type Monitor struct {
	opts Options

	perQueue sync.Map
	wasReady atomic.Bool // all targets were ready at the same time
	again    chan struct{}

	pollsMu sync.Mutex
	polls   map[string]pollFailure

	mu             sync.Mutex
	smoother       smoother
	host           Reading
	shown          Status
	increases      increases
	noLeader       time.Time
	hadDeadLetters map[string]bool // by queue

	lastRound atomic.Pointer[time.Time]
}

// NewMonitor returns a monitor; [Monitor.Run] starts it.
func NewMonitor(opts Options) *Monitor {
	m := &Monitor{opts: opts, again: make(chan struct{}, 1), polls: map[string]pollFailure{}, increases: increases{},
		hadDeadLetters: map[string]bool{}}
	m.lastRound.Store(&time.Time{})
	return m
}

type queueCounts struct {
	deliveries window
	expired    atomic.Int64
}

func (m *Monitor) countsOf(queue string) *queueCounts {
	c, known := m.perQueue.Load(queue)
	if !known {
		c, _ = m.perQueue.LoadOrStore(queue, &queueCounts{})
	}
	return c.(*queueCounts)
}

// Delivered counts a delivery. It ignores failed for a success.
func (m *Monitor) Delivered(queue string, c Class, d time.Duration, failed Failure) {
	m.countsOf(queue).deliveries.count(c, d, failed, time.Now())
}

// ForgetDeliveries drops the recent deliveries of a queue when a new version of the app receives its messages.
func (m *Monitor) ForgetDeliveries(queue string) { m.countsOf(queue).deliveries.forget() }

// Latencies returns the durations of all answered deliveries since startup.
func (m *Monitor) Latencies() (sum Latencies) {
	for _, c := range m.perQueue.Range {
		of := c.(*queueCounts).deliveries.latencies()
		sum.Add(&of)
	}
	return sum
}

// Expired counts n messages that exceeded the queue's retention period.
func (m *Monitor) Expired(queue string, n int64) { m.countsOf(queue).expired.Add(n) }

// PollFailed records a failed receive. final means that retrying is pointless.
func (m *Monitor) PollFailed(queue string, err error, final bool) {
	m.pollsMu.Lock()
	defer m.pollsMu.Unlock()
	since := time.Now()
	if earlier, failing := m.polls[queue]; failing {
		since = earlier.problem.Since
	}
	m.polls[queue] = pollFailure{Problem{since, err.Error()}, final}
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
	tick := time.Tick(roundInterval)
	severe := time.NewTimer(roundInterval)
	defer severe.Stop()

	started, ready, draining := m.opts.Started, m.opts.AppReady, m.opts.Draining
	for round := true; ; {
		now := time.Now()
		_, app := m.evaluate(now, round)
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

// Only rounds measure the machine. Between them, the smoother changes only with the status.
func (m *Monitor) evaluate(now time.Time, round bool) (Report, appInputs) {
	var host Reading
	if round {
		host = m.opts.Host.Read() // may take long, so not under the lock
		defer m.lastRound.Store(&now)
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	if round {
		m.host = host
	}

	in := m.allInputs(now)
	steady, r := m.smoother.smooth(judge(in), now, round)
	if round || r.Status != m.shown {
		m.smoother = steady
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
		return reportOf(causesOf(judge(m.startInputs(now))))
	}
	if age := now.Sub(last); age > maxSilence {
		r := noData("No data. Last seen " + ago(age) + " ago.")
		r.Since = last
		return r
	}
	r, _ := m.evaluate(now, false)
	return r
}

// Live returns the liveness check, which fails if rounds have stopped.
func (m *Monitor) Live() []Check { return liveChecks(*m.lastRound.Load(), time.Now()) }

// Started returns the startup checks.
func (m *Monitor) Started() []Check {
	if !isClosed(m.opts.Started) {
		return []Check{{Name: "start", Detail: "starting"}}
	}
	now := time.Now()
	return startupChecks(m.readinessInputs(now, m.opts.Queues(now)))
}

// Ready returns the readiness checks.
func (m *Monitor) Ready() []Check {
	now := time.Now()
	if !isClosed(m.opts.Started) {
		return []Check{drainCheck(m.startInputs(now)), {Name: "start", Detail: "starting"}}
	}
	if queues := m.opts.Queues(now); len(queues) > 0 {
		return readyChecks(m.readinessInputs(now, queues))
	}
	in := m.startInputs(now) // without workers, only embedded queues need a check
	return append([]Check{drainCheck(in)}, storeChecks(in)...)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (m *Monitor) startInputs(now time.Time) inputs {
	in := inputs{Now: now, Started: m.opts.Began, StartLimit: m.opts.StartLimit, Draining: isClosed(m.opts.Draining),
		DataDir: m.opts.DataDir()}
	if in.DataDir.Embedded {
		in.Store = in.DataDir.Lost
	}
	return in
}

func (m *Monitor) readinessInputs(now time.Time, queues []QueueState) inputs {
	in := m.startInputs(now)
	m.addQueues(&in, queues)
	if in.App.Ready {
		m.wasReady.Store(true)
	}
	in.App.WasReady = m.wasReady.Load()
	m.addOwnApp(&in)
	return in
}

func (m *Monitor) addQueues(in *inputs, queues []QueueState) {
	m.pollsMu.Lock()
	defer m.pollsMu.Unlock()
	in.App.Ready = true
	for _, q := range queues {
		in.App.addNotReady(&q)
		one := queueInputs{QueueState: q}
		poll, failing := m.polls[q.Name]
		failing = failing && q.Receiving
		switch {
		case q.DeletesRefused != (Problem{}):
			one.Poll = pollFailure{q.DeletesRefused, true}
		case failing && q.Embedded: // other queues are shared with other instances
			in.Store = cmp.Or(in.Store, poll.problem.Reason)
		case failing:
			one.Poll = poll
		}
		in.Queues = append(in.Queues, one)
	}
}

func (a *appInputs) addNotReady(q *QueueState) {
	for _, p := range q.NotReady {
		if a.Ready || p.Since.Before(a.Since) {
			a.Since = p.Since
		}
		a.Ready = false
		a.Reason = p.Reason
	}
	if len(q.NotReady) > 0 {
		a.Queues = append(a.Queues, q.Name)
	}
}

func (m *Monitor) addOwnApp(in *inputs) {
	own, runs := m.opts.App()
	if !runs {
		return
	}
	in.Operation = own.Operation
	in.Deployment = own.Deployment

	app := &in.App
	app.Processes = own.Processes
	app.WasReady = app.WasReady || isClosed(m.opts.AppReady)
	if app.Ready {
		return
	}
	app.Reason = cmp.Or(own.NotReady, app.Reason)
	if !own.LastReady.IsZero() && own.LastReady.Before(app.Since) {
		app.Since = own.LastReady
	}
}

func (m *Monitor) allInputs(now time.Time) inputs {
	if !isClosed(m.opts.Started) {
		return m.startInputs(now)
	}

	in := m.readinessInputs(now, m.opts.Queues(now))
	for i := range in.App.Processes {
		p := &in.App.Processes[i]
		p.Restarts = int(m.increases.observe("restarts of "+p.Name, 0, int64(p.Restarts), now))
	}
	for i := range in.Queues {
		m.addCounts(&in.Queues[i], now)
	}

	in.IgnoreClientErrors = m.opts.IgnoreClientErrors
	in.Host = m.host
	in.Tasks = m.opts.Tasks()
	in.Scaling = m.opts.Scaling()
	if m.opts.Problems != nil {
		in.Problems = m.opts.Problems()
	}
	if m.opts.RegistryLost != nil {
		in.RegistryLost = m.opts.RegistryLost()
	}

	in.Leader = m.opts.Leader()
	switch {
	case in.Leader.Off:
		m.noLeader = m.opts.Began
	case in.Leader.Known:
		m.noLeader = time.Time{}
	case m.noLeader.IsZero():
		m.noLeader = now
	}
	in.NoLeader = m.noLeader
	return in
}

func (m *Monitor) addCounts(q *queueInputs, now time.Time) {
	c := m.countsOf(q.Name)
	recent, last := c.deliveries.sum(now)
	q.Deliveries = recent.classes
	q.P95 = recent.latencies.Percentile(0.95)
	q.LastFailed = last
	q.Expired = m.increases.observe("expired messages of "+q.Name, 0, c.expired.Load(), now)
	if !q.Known || !q.HasDeadLetters {
		return
	}

	had, wasKnown := m.hadDeadLetters[q.Name]
	m.hadDeadLetters[q.Name] = q.DeadLetters > 0 && (had || !wasKnown)
	q.OldDeadLetters = m.hadDeadLetters[q.Name]
	added := m.increases.observe("dead letters of "+q.Name, q.DeadLettered, q.DeadLettered, now)
	q.NewDeadLetters = min(added, q.DeadLetters)
}
