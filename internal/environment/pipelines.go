package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/cron/periodic"
	"tendril/internal/environment/depth"
	"tendril/internal/observe/logging"
	"tendril/internal/worker"
	"tendril/queue"
)

// pipelines are the queues that this environment works on, in the order of the settings.
type pipelines struct {
	queues
	lines []*pipeline                     // none where queues are served alone
	tuned atomic.Pointer[config.Settings] // see inForce
	// explained tells about the options of inForce; nil while those of the start hold.
	explained atomic.Pointer[[]config.Explanation]
	pool      *worker.Pool   // what several queues share; nil for one
	depths    *depth.Counter // of the messages that wait in the queues
	pauses    *pauseFile     // nil where nothing is kept in the data directory
}

// openAll opens the queues of the settings, and those that only a file of tasks names, which may be nil: for
// embedded ones without settings of their own those of the first queue hold.
func (q *pipelines) openAll(ctx context.Context, file *periodic.File) error {
	if err := q.openSQS(ctx); err != nil {
		return err
	}
	open := func(set *config.QueueSettings, forTask bool) error {
		ref, err := q.open(ctx, set)
		if err == nil {
			l := newPipeline(ref, set)
			l.forTask = forTask
			q.lines = append(q.lines, l)
		}
		return err
	}
	for i := range q.s.Queues {
		if err := open(&q.s.Queues[i], false); err != nil {
			return err
		}
	}
	if file == nil || !q.home().embedded {
		return nil
	}
	for _, t := range file.Tasks {
		if t.Queue == "" || q.lineOf(t.Queue) != nil {
			continue
		}
		set := *q.home().settings()
		set.Name = t.Queue
		for _, l := range q.lines {
			set.Weight = max(set.Weight, l.settings().Weight)
		}
		if err := open(&set, true); err != nil {
			return err
		}
	}
	return nil
}

// home is the pipeline of the queue that was named first: periodic tasks go there, and
// the app gets its URL. It is nil in a process that only serves queues.
func (q *pipelines) home() *pipeline {
	if len(q.lines) == 0 {
		return nil
	}
	return q.lines[0]
}

// lineOf returns the pipeline of a queue by its name; nil when there is none.
func (q *pipelines) lineOf(name string) *pipeline {
	if i := slices.IndexFunc(q.lines, func(l *pipeline) bool { return l.name == name }); i >= 0 {
		return q.lines[i]
	}
	return nil
}

func (q *pipelines) names() (list []string) {
	for _, l := range q.lines {
		list = append(list, l.name)
	}
	return list
}

// inOrder returns the pipelines as they join the pool, which is their strict order: the queues that only
// periodic tasks use come first, since their messages are few and due.
func (q *pipelines) inOrder() []*pipeline {
	others := slices.DeleteFunc(slices.Clone(q.lines), func(l *pipeline) bool { return l.forTask })
	return append(slices.Clone(q.lines[len(others):]), others...) // those for tasks were opened last
}

// inForce are the settings in force: those of the start, with what changed since and
// can take effect while tendril runs. They must not be changed.
func (q *pipelines) inForce() *config.Settings { return cmp.Or(q.tuned.Load(), q.s) }

// explanations tell about every option in force, and where it was set.
func (q *pipelines) explanations() []config.Explanation {
	if all := q.explained.Load(); all != nil {
		return *all
	}
	return q.Config.ExplainAll()
}

// tuning is what a worker is told of the settings in force.
func (q *pipelines) tuning(l *pipeline) worker.Tuning {
	s, set := q.inForce(), l.settings()
	return worker.Tuning{
		Concurrency: set.Concurrency, ErrorVisibilityTimeout: set.ErrorVisibilityTimeout,
		Backoff: worker.Backoff{Min: s.BackoffMin, Max: s.BackoffMax, Doublings: s.BackoffDoublings,
			Jitter: float64(s.BackoffJitter) / 100},
		RespectRetryAfter: s.RespectRetryAfter, Retention: set.RetentionPeriod,
	}
}

// tune lets a change of settings take effect: deliveries that begin from now on go by the new ones, and nothing
// is restarted for it. Where new replicas of the app take over, those that are there go on as they are.
func (q *pipelines) tune(c config.Change, newReplicas bool) {
	log := q.Logger.With("component", "config")
	explained := c.Explain(q.explanations())
	q.explained.Store(&explained)
	if len(c.Later) > 0 {
		log.Warn("settings changed, a restart is needed", "options", strings.Join(c.Later, ", "))
	}
	if len(c.Live) == 0 {
		return
	}
	q.tuned.Store(c.Settings)
	for _, l := range q.lines {
		name, weight := l.settings().Name, l.settings().Weight
		i := slices.IndexFunc(c.Settings.Queues, func(s config.QueueSettings) bool { return s.Name == name })
		set := c.Settings.Queues[max(i, 0)]
		if l.forTask { // which goes by the first queue's, but for what is its own
			set.Name, set.Weight = name, weight
		}
		l.set.Store(&set)
		if l.renew != nil && (l.route == nil || !newReplicas) {
			l.renew()
		}
		t := q.tuning(l)
		l.worker.Tune(&t)
		l.worker.SetFilter(l.filter())
	}
	log.Info("settings changed", "options", strings.Join(c.Live, ", "))
}

// drainLimit is how long a replica of the app that is retired may finish its work: as long as a delivery to it
// may take, but never so long that a deployment, which waits for it, outlasts its own limit. A delivery without
// a deadline may take any time, since each byte from the app begins its silence anew.
func (q *pipelines) drainLimit() time.Duration {
	const most = console.MaxDeploy - time.Minute
	longest := time.Duration(0)
	for _, l := range q.lines {
		if set := l.settings(); set.ToOwnApp() {
			longest = max(longest, cmp.Or(set.Deadline, most))
		}
	}
	return max(min(longest, most), q.s.ShutdownTimeout, time.Second)
}

// gate tells the workers that deliver to the app whether it is ready.
func (q *pipelines) gate(open bool, reason string) {
	for _, l := range q.inOrder() {
		if l.settings().ToOwnApp() {
			l.worker.Gate(open, reason)
		}
	}
}

// pause stops receiving from a queue, also after a restart; "" means from every queue.
func (q *pipelines) pause(name, reason string) error {
	lines, err := q.chosen(name)
	if err == nil {
		err = q.pauses.setQueues(lines, reason, true)
	}
	if err != nil {
		return err
	}

	for _, l := range lines {
		l.worker.Pause(cmp.Or(reason, pausedText))
		q.Logger.Info("queue paused", "component", "worker", "queue", l.name, "reason", cmp.Or(reason, pausedText))
	}
	return nil
}

func (q *pipelines) resume(name string) error {
	lines, err := q.chosen(name)
	if err == nil {
		err = q.pauses.setQueues(lines, "", false)
	}
	if err != nil {
		return err
	}

	for _, l := range lines {
		if isPaused(l.worker.Status()) {
			q.Logger.Info("queue resumed", "component", "worker", "queue", l.name)
		}
		l.worker.Resume()
	}
	return nil
}

// Quiet pauses every queue for a reason until the end of this process, or, where all are paused already, lets all go
// on; it reports whether they are paused now. The error says that there is no worker, or none yet.
func (q *pipelines) Quiet(reason string) (paused bool, err error) {
	receives := func(l *pipeline) bool { return !isPaused(l.worker.Status()) }
	if q.running() && slices.ContainsFunc(q.lines, receives) {
		return true, q.pauseAll(reason)
	}
	return false, q.resume("")
}

// pauseAll pauses every queue for a reason until the end of this process.
func (q *pipelines) pauseAll(reason string) error {
	lines, err := q.chosen("")
	for _, l := range lines {
		l.worker.Pause(reason)
	}
	return err
}

// chosen returns the pipeline of one queue, or every one for "".
func (q *pipelines) chosen(name string) ([]*pipeline, error) {
	if !isClosed(q.announced) {
		return nil, errStarting
	}
	found := q.lineOf(name)
	switch {
	case len(q.lines) == 0:
		return nil, errors.New("no worker runs here: this process only serves queues")
	case found != nil:
		return []*pipeline{found}, nil
	case name != "":
		return nil, &console.Error{Status: http.StatusNotFound, Message: "this environment does not receive from " + name,
			Hint: "it receives from " + strings.Join(q.names(), ", ")}
	}
	return q.lines, nil
}

func (q *pipelines) buildDepths(context.Context) error {
	var queues []depth.Queue
	for _, l := range q.lines {
		onSQS, _ := l.Queue.(*aws.Queue)
		queues = append(queues, depth.Queue{
			Name: l.name, DeadLetterQueue: l.dead, OnSQS: onSQS, SetMaxReceives: l.worker.SetMaxReceives,
			Held: func() (int, time.Duration) {
				st := l.worker.Status()
				return st.Prefetched + st.Waiting, st.LongestWait
			},
		})
	}
	q.depths = depth.New(queues, q.broker, func(ctx context.Context, name string) (*aws.Queue, error) {
		return q.sqs.Queue(ctx, name)
	})
	return nil
}

// afterFailure looks at the redrive policy of a message's queue.
func (q *pipelines) afterFailure(l *pipeline, s *worker.Settled) (next logging.Redelivery) {
	now := s.DeadLettering && s.Instruction.DeadLetters()
	switch {
	case now:
	case s.Outcome == queue.Done, s.ReceivesHere == 0:
		return next
	case s.Outcome == queue.Unreached && l.embedded:
		return logging.Redelivery{Known: true} // its receive does not count
	}
	var dead string
	if l.embedded {
		var err error
		if dead, next.MaxReceives, err = q.broker.Redrive(l.name); err != nil {
			return next
		}
		if next.Known = true; dead == "" {
			return next // without it, the queue keeps its messages
		}
	} else {
		r, ok := q.depths.OnSQS(l.name, time.Now())
		next.Known, next.MaxReceives, dead = ok, r.MaxReceives, r.DeadLetterQueue
	}
	if now || next.Known && next.MaxReceives > 0 && s.ReceivesHere >= next.MaxReceives {
		next.DeadLetterQueue = dead
	}
	return next
}

// deadLetterQueue is the name of the dead-letter queue of a queue, as far as that is known.
func deadLetterQueue(q *pipelines, l *pipeline) string {
	if !l.embedded {
		return q.depths.DeadLetterQueue(l.name, time.Now())
	}
	dead, _, err := q.broker.Redrive(l.name)
	if err != nil {
		return ""
	}
	return dead
}

// inWork returns the attempt at a message that the app works on now.
func (q *pipelines) inWork(id string) (d console.Delivery, found bool) {
	if !q.running() {
		return d, false
	}
	for _, l := range q.lines {
		if attempt, since, ok := l.worker.InWork(id); ok {
			now := time.Now()
			return console.Delivery{MessageID: id, Queue: l.name, Outcome: console.InWork, Attempt: attempt,
				DurationMS: now.Sub(since).Milliseconds(), At: now}, true
		}
	}
	return d, false
}

// statusLine is one line for 'systemctl status'.
func (q *pipelines) statusLine() string {
	if len(q.lines) == 0 {
		return "serving queues at " + q.endpoint
	}
	inWork, done := 0, int64(0)
	for _, l := range q.lines {
		st := l.worker.Status()
		inWork += st.InWork
		done += st.Counts.Done
	}
	word, plural := "working", "s"
	if q.stopping() {
		word = "draining"
	}
	if len(q.lines) == 1 {
		plural = ""
	}
	return fmt.Sprintf("%s on %d queue%s: %d in work, %d done", word, len(q.lines), plural, inWork, done)
}

// orderText says which queue comes first.
func (q *pipelines) orderText() string {
	var words []string
	total := 0
	for _, l := range q.lines {
		total += l.settings().Weight
	}
	for _, l := range q.inOrder() {
		word := l.name
		if total > 0 {
			word += fmt.Sprintf(" %d%%", (100*l.settings().Weight+total/2)/total)
		}
		words = append(words, word)
	}
	if total > 0 {
		return strings.Join(words, ", ") + " of free slots"
	}
	return strings.Join(words, ", then ")
}
