package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/api"
	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/internal/instances"
	"tendril/internal/observe/event"
	"tendril/internal/observe/logging"
	"tendril/internal/observe/series"
	"tendril/internal/worker"
	"tendril/queue"
)

type pipelines struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	queues   *queues
	observe  *observer
	targets  *targetOpener

	all    []*pipeline // in the order of the settings; empty without workers
	pool   *worker.Pool
	depths *depthCounter
	pauses *pauseFile // nil unless this environment owns its data directory

	allBegun sync.Once
}

func (p *pipelines) inOrder() (lines []*pipeline) {
	for _, w := range p.queues.joiningOrder() {
		lines = append(lines, p.all[w.index])
	}
	return lines
}

// joiningOrder starts with the queues that only periodic tasks use, because their few messages are already due.
func (q *queues) joiningOrder() []*workQueue {
	others := slices.DeleteFunc(slices.Clone(q.all), func(w *workQueue) bool { return w.forTask })
	return append(slices.Clone(q.all[len(others):]), others...) // openAll opens the tasks' queues last
}

func tuningOf(s *config.Settings, set *config.QueueSettings) worker.Tuning {
	return worker.Tuning{
		Concurrency: min(set.Concurrency, s.HTTPConnections), VisibilityTimeout: negativeIfZero(set.VisibilityTimeout),
		ErrorVisibilityTimeout: set.ErrorVisibilityTimeout,
		Backoff: worker.Backoff{Min: s.BackoffMin, Max: s.BackoffMax, Doublings: s.BackoffDoublings,
			Jitter: float64(s.BackoffJitter) / 100},
		RespectRetryAfter: s.RespectRetryAfter, Retention: set.RetentionPeriod,
	}
}

// applySettings keeps the previous settings for the current replicas if newReplicas will replace them.
func (p *pipelines) applySettings(c config.Change, newReplicas bool) {
	log := p.opts.log("config")
	p.settings.change(&c)
	if newReplicas {
		p.forgetDeliveries()
	}
	if len(c.Later) > 0 {
		event.Deploy.Log(log, slog.LevelWarn, "settings changed, restart needed", "options", strings.Join(c.Later, ", "))
	}
	if len(c.Live) == 0 {
		return
	}

	for _, l := range p.all {
		if l.target.renew != nil && !(l.target.isOwnApp && newReplicas) {
			l.target.renew()
		}
		tuning := tuningOf(c.Settings, l.queue.settings())
		l.worker.Tune(&tuning)
		l.worker.SetFilter(l.queue.filter())
	}
	if slices.ContainsFunc(c.Live, isQueueAttribute) {
		p.queues.updateAttributes()
	}
	event.Deploy.Log(log, slog.LevelInfo, "settings changed", "options", strings.Join(c.Live, ", "))
}

// forgetDeliveries drops the previous version's deliveries from the health. Its deliveries in progress count later.
func (p *pipelines) forgetDeliveries() {
	for _, l := range p.all {
		if l.target.isOwnApp {
			p.observe.monitor.ForgetDeliveries(l.queue.name)
		}
	}
}

// drainLimit is the longest delivery deadline of the app's queues, but at least the shutdown timeout and a second. A
// longer or missing deadline counts as the time limit of a deployment, less a minute.
func (p *pipelines) drainLimit() time.Duration {
	const most = api.MaxDeploy - time.Minute
	longest := time.Duration(0)
	for _, w := range p.queues.all {
		if set := w.settings(); set.ToOwnApp() {
			longest = max(longest, cmp.Or(set.Deadline, most))
		}
	}
	return max(min(longest, most), p.settings.now().ShutdownTimeout, time.Second)
}

func (p *pipelines) gate(open bool, reason string) {
	for _, l := range p.inOrder() {
		if l.queue.settings().ToOwnApp() {
			l.worker.Gate(open, reason)
		}
	}
}

func (p *pipelines) recordReceiving(l *pipeline, g worker.GateChanged) {
	isBlocked := slices.ContainsFunc(g.Reasons, func(r worker.Reason) bool { return r.Block != worker.Paused })
	if isBlocked || l.begun.Swap(true) {
		return
	}
	for _, other := range p.all {
		if !other.begun.Load() {
			return
		}
	}
	p.allBegun.Do(func() { close(p.life.receiving) })
}

// pause pauses a queue, or all queues if name is "".
func (p *pipelines) pause(name string, pause instances.Pause) error {
	lines, err := p.ofQueue(name)
	if err == nil {
		err = p.pauses.setQueues(lines, pause)
	}
	if err != nil {
		return err
	}

	for _, l := range lines {
		l.setPause(byThis, pause)
		event.Pause.Log(p.opts.log("worker"), slog.LevelInfo, "queue paused", "queue", l.queue.name,
			"by", pause.By, "reason", cmp.Or(pause.Reason, pausedText))
	}
	return nil
}

func (p *pipelines) resume(name string) error {
	lines, err := p.ofQueue(name)
	if err == nil {
		err = p.pauses.setQueues(lines, instances.Pause{})
	}
	if err != nil {
		return err
	}

	for _, l := range lines {
		paused := l.setPause(byThis, instances.Pause{})
		if l.setPause(byProcess, instances.Pause{}) || paused {
			event.Pause.Log(p.opts.log("worker"), slog.LevelInfo, "queue resumed", "queue", l.queue.name)
		}
	}
	return nil
}

// togglePause ends the pause by an earlier signal or hook, if it includes all queues, or pauses all of them. It ends no
// other pause, because an operator's pause lasts until the operator resumes.
func (p *pipelines) togglePause(reason string) error {
	lines, err := p.ofQueue("")
	if err != nil {
		return err
	}
	if slices.ContainsFunc(lines, func(l *pipeline) bool { return !l.isPausedBy(byProcess) }) {
		return p.quiet(reason)
	}

	var still []string
	for _, l := range lines {
		l.setPause(byProcess, instances.Pause{})
		if l.pause() != (instances.Pause{}) {
			still = append(still, l.queue.name)
		}
	}
	log := p.opts.log("environment")
	if still == nil {
		event.Pause.Log(log, slog.LevelInfo, "all queues resumed", "reason", reason)
	} else {
		event.Pause.Log(log, slog.LevelInfo, "pause by a signal or hook ended", "reason", reason, "still_paused",
			strings.Join(still, ", "), "hint", "'tendril status' shows why")
	}
	return nil
}

func (p *pipelines) quiet(reason string) error {
	err := p.pauseAll(reason)
	if err == nil {
		event.Pause.Log(p.opts.log("environment"), slog.LevelInfo, "all queues paused", "reason", reason,
			"hint", "send the signal USR1, type 'tendril queues resume', or restart the environment")
	}
	return err
}

func (p *pipelines) pauseAll(reason string) error {
	lines, err := p.ofQueue("")
	for _, l := range lines {
		l.setPause(byProcess, newPause(reason, ""))
	}
	return err
}

// ofQueue returns all pipelines if name is "". It fails until they exist.
func (p *pipelines) ofQueue(name string) ([]*pipeline, error) {
	switch {
	case !isClosed(p.life.announced):
		return nil, errStarting
	case len(p.all) == 0:
		return nil, errors.New("this process has no worker and only serves queues")
	case name == "":
		return p.all, nil
	}

	found := p.queues.named(name)
	if found == nil {
		return nil, api.NewError(http.StatusNotFound, "this environment does not receive from "+name,
			"it receives from "+strings.Join(p.queues.names(), ", "))
	}
	return []*pipeline{p.all[found.index]}, nil
}

func (p *pipelines) states(rates map[string]series.Rate) (workers []api.Worker, limits []api.Limit) {
	slots := 0
	if p.pool != nil {
		slots = p.settings.now().HTTPConnections
	}
	now := time.Now()
	for _, l := range p.all {
		w := l.status()
		w.Slots = slots
		if found, known := p.depths.read(w.Queue, now); known {
			w.Waiting, w.InFlight = found.backlog, found.inFlight
		}
		w.DrainSeconds = drainSeconds(w.Waiting, rates[w.Queue], l.queue.embedded)
		workers = append(workers, w)
	}
	for _, sharing := range p.byLimiter() {
		limits = append(limits, limitState(sharing))
	}
	api.Explain(workers, limits)
	return workers, limits
}

// byLimiter groups the pipelines that have a limiter.
func (p *pipelines) byLimiter() (groups [][]*pipeline) {
	for _, l := range p.all {
		i := slices.IndexFunc(groups, func(sharing []*pipeline) bool { return sharing[0].limiter == l.limiter })
		switch {
		case l.limiter == nil:
		case i < 0:
			groups = append(groups, []*pipeline{l})
		default:
			groups[i] = append(groups[i], l)
		}
	}
	return groups
}

// drainSeconds ignores arrivals on Amazon SQS, whose rate is unknown.
func drainSeconds(waiting int64, rate series.Rate, embedded bool) float64 {
	perSecond := rate.Out
	if embedded {
		perSecond -= rate.In
	}
	if waiting == 0 || perSecond <= 0 {
		return 0
	}
	return float64(waiting) / perSecond
}

func limitState(sharing []*pipeline) api.Limit {
	st := sharing[0].limiter.Status()
	shown := api.Limit{Target: sharing[0].target.current(), Rate: st.Rate, InWork: st.InWork,
		Concurrency: cmp.Or(st.SlowStart, st.Limit), Breaker: st.Breaker, TrialAt: st.TrialAt, Failing: st.Failing,
		Refused: st.Refused.Rate + st.Refused.Concurrency + st.Refused.Breaker}
	for _, l := range sharing {
		shown.Queues = append(shown.Queues, l.queue.name)
	}
	return shown
}

func (p *pipelines) buildDepths(context.Context) error {
	var queues []countedQueue
	for _, l := range p.all {
		remote, _ := l.queue.source.(*aws.Queue)
		queues = append(queues, countedQueue{
			name: l.queue.name, deadLetterQueue: l.queue.dead, remote: remote, setMaxReceives: l.worker.SetMaxReceives,
			held: func() (int, time.Duration) {
				st := l.worker.Status()
				return st.Prefetched + st.Waiting, st.LongestWait
			},
		})
	}
	p.depths = newDepthCounter(queues, p.queues.broker)
	return nil
}

// queuesOnSQS also returns dead-letter queues, with their latest counts. workers has an element for each pipeline.
func (p *pipelines) queuesOnSQS(workers []api.Worker, now time.Time) (all []api.Queue) {
	var dead []api.Queue
	for i, l := range p.all {
		if l.queue.embedded {
			continue
		}
		w := &workers[i]
		r, _ := p.depths.read(w.Queue, now)
		all = append(all, api.Queue{
			Name: w.Queue, URL: l.queue.url, FIFO: w.FIFO, Progress: w.Progress, OldestSeconds: r.oldest.Seconds(),
			DeadLetterQueue: p.deadLetterQueue(l.queue), DeadLetterQueueMissing: r.deadLetterQueueMissing,
			MaxReceives: r.maxReceives, Ledger: api.Ledger{
				Live: w.Waiting + w.InFlight + r.delayed, Visible: w.Waiting, InFlight: w.InFlight, Delayed: r.delayed},
		})
		if r.hasDeadLetters {
			dead = append(dead, api.Queue{Name: r.deadLetterQueue, URL: r.deadLetterURL, FIFO: w.FIFO,
				Ledger: api.Ledger{Live: r.deadLetters, Visible: r.deadLetters}})
		}
	}

	for _, q := range dead { // may be shared, or have a worker
		if !slices.ContainsFunc(all, func(other api.Queue) bool { return other.Name == q.Name }) {
			all = append(all, q)
		}
	}
	return all
}

func (p *pipelines) afterFailure(w *workQueue, s *worker.Settled) logging.Redelivery {
	onRequest := s.DeadLettering && s.Instruction.DeadLetters()
	if !onRequest {
		switch {
		case s.Outcome == queue.Done, s.ReceivesHere == 0:
			return logging.Redelivery{}
		case s.Outcome == queue.Unreached && w.embedded:
			return logging.Redelivery{Known: true} // not counted as a receive
		}
	}

	policy := p.redrivePolicy(w)
	next := logging.Redelivery{Known: policy.known, MaxReceives: policy.maxReceives}
	isLast := policy.known && policy.maxReceives > 0 && s.ReceivesHere >= policy.maxReceives
	if onRequest || isLast {
		next.DeadLetterQueue = policy.deadLetterQueue
	}
	return next
}

type redrivePolicy struct {
	deadLetterQueue string
	maxReceives     int
	known           bool
}

func (p *pipelines) redrivePolicy(w *workQueue) redrivePolicy {
	if !w.embedded {
		return p.depths.redrivePolicy(w.name, time.Now())
	}
	dead, maxReceives, err := p.queues.broker.Redrive(w.name)
	return redrivePolicy{deadLetterQueue: dead, maxReceives: maxReceives, known: err == nil}
}

func (p *pipelines) deadLetterQueue(w *workQueue) string { return p.redrivePolicy(w).deadLetterQueue }

func (p *pipelines) inWork(id string) (d api.Delivery, found bool) {
	if !p.life.running() {
		return d, false
	}
	for _, l := range p.all {
		if attempt, since, ok := l.worker.InWork(id); ok {
			now := time.Now()
			return api.Delivery{MessageID: id, Queue: l.queue.name, Outcome: api.InWork, Attempt: attempt,
				DurationMS: now.Sub(since).Milliseconds(), At: now}, true
		}
	}
	return d, false
}

func (p *pipelines) statusLine() string {
	if len(p.all) == 0 {
		return "serving queues at " + p.queues.endpoint
	}

	inWork, done := 0, int64(0)
	for _, l := range p.all {
		st := l.worker.Status()
		inWork += st.InWork
		done += st.Counts.Done
	}

	word, plural := "working", "s"
	if p.life.stopping() {
		word = "draining"
	}
	if len(p.all) == 1 {
		plural = ""
	}

	return fmt.Sprintf("%s on %d queue%s: %d in flight, %d done", word, len(p.all), plural, inWork, done)
}

func (q *queues) orderText() string {
	total := 0
	for _, w := range q.all {
		total += w.settings().Weight
	}
	var words []string
	for _, w := range q.joiningOrder() {
		word := w.name
		if total > 0 {
			word += fmt.Sprintf(" %d%%", (100*w.settings().Weight+total/2)/total)
		}
		words = append(words, word)
	}
	if total > 0 {
		return strings.Join(words, ", ") + " of free slots"
	}
	return strings.Join(words, ", then ")
}
