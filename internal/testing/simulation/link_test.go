package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"tendril/broker"
	"tendril/internal/cron/leader"
	"tendril/internal/cron/periodic"
	"tendril/internal/registry"
	"tendril/internal/worker"
	"tendril/queue"
)

// link is a network connection that loses calls and responses. The oracle observes all calls.
type link struct {
	w      *world
	daemon int // for the producer, the number of daemons
	life   *life

	mu   sync.Mutex
	at   time.Duration
	same map[string]int
}

var (
	_ worker.Queue        = (*link)(nil)
	_ worker.DeadLetterer = (*embeddedLink)(nil)
	_ leader.Store        = (*link)(nil)
)

var errKilled = errors.New("the process was killed")

type trouble struct {
	before, after time.Duration
	request       error
	answer        error
	slow          bool
}

func (l *link) ordinal(at time.Duration, action string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at != at || l.same == nil {
		l.at, l.same = at, map[string]int{}
	}
	l.same[action]++
	return l.same[action]
}

func (l *link) draw(action string, ofRegistry bool) (t trouble) {
	w, at := l.w, l.w.now()
	n := l.ordinal(at, action)
	if !w.plan.Embedded {
		t.before = time.Millisecond + time.Duration(w.plan.roll("travel", l.daemon, action, at, n)*3e6)
		t.after = t.before
	}
	if w.healed.Load() {
		if w.bug == bugNeverHealed && action == "receive" {
			t.request = queue.ErrThrottled
		}
		return t
	}
	for i := range w.plan.Faults {
		f := &w.plan.Faults[i]
		if !f.during(at, l.daemon) || w.plan.roll("hit", i, action, at, n) >= f.Chance {
			continue
		}
		switch f.Kind {
		case loseAnswers:
			t.answer = queue.ErrUnreachable
		case loseRequests:
			t.request = queue.ErrUnreachable
		case slowCalls:
			t.slow = true
			t.before += time.Duration(w.plan.roll("before", i, action, at, n) * float64(4*time.Second))
			t.after += time.Duration(w.plan.roll("after", i, action, at, n) * float64(4*time.Second))
		case throttleCalls:
			t.request = queue.ErrThrottled
		case cutNetwork:
			t.request = queue.ErrUnreachable
		case cutRegistry:
			if !ofRegistry {
				continue
			}
			t.request = queue.ErrUnreachable
		default:
			continue
		}
		w.injected(f.Kind)
	}
	return t
}

func (l *link) call(ctx context.Context, action string, ofRegistry bool,
	do func(context.Context, *broker.Broker) error) (applied, slow bool, err error) {
	ctx, cancel := l.whileAlive(ctx)
	defer cancel()
	waited, err := l.frozen()
	if err != nil {
		return false, false, err
	}
	t := l.draw(action, ofRegistry)
	t.slow = t.slow || waited
	if !sleep(ctx, t.before) {
		return false, t.slow, l.ended(ctx)
	}
	if t.request != nil {
		return false, t.slow, t.request
	}
	b, life := l.w.server.current()
	if b == nil {
		return false, t.slow, queue.ErrUnreachable
	}
	err = do(ctx, b)
	if !l.w.server.alive(life) {
		t.answer = queue.ErrUnreachable
	}
	if !sleep(ctx, t.after) {
		return true, t.slow, l.ended(ctx)
	}
	waited, frozen := l.frozen()
	if t.slow = t.slow || waited; frozen != nil {
		return true, t.slow, frozen
	}
	if t.answer != nil {
		return true, t.slow, t.answer
	}
	return true, t.slow, err
}

func (l *link) whileAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if l.life == nil {
		return ctx, cancel
	}
	stop := context.AfterFunc(l.life.killed, cancel)
	return ctx, func() { stop(); cancel() }
}

func (l *link) ended(ctx context.Context) error {
	if l.life != nil && l.life.killed.Err() != nil {
		return errKilled
	}
	return &queue.Error{Code: queue.CodeUnreachable, Err: ctx.Err()}
}

// frozen waits while the daemon is paused and reports whether it waited. The error is errKilled if the daemon was
// killed meanwhile.
func (l *link) frozen() (waited bool, err error) {
	if l.life == nil {
		return false, nil
	}
	began := time.Now()
	defer func() { waited = !time.Now().Equal(began) }()
	return false, l.life.frozen()
}

func (l *link) Receive(ctx context.Context, req queue.ReceiveRequest) (msgs []queue.Message, err error) {
	if !l.w.plan.Embedded {
		req.Stop = nil
	}
	if l.life.fleet.paused() {
		l.w.oracle.violated("daemon %d receives although its queue is paused", l.daemon)
	}
	_, slow, err := l.call(ctx, "receive", false, func(ctx context.Context, b *broker.Broker) (err error) {
		msgs, err = b.Queue(l.w.queueName(workQueue)).Receive(ctx, req)
		for i := range msgs {
			l.w.oracle.received(l.life, &msgs[i], *req.Visibility)
			if l.life.fleet.paused() {
				l.w.oracle.charge(keyOf(&msgs[i]), "its receive was in progress when the queue was paused")
			}
		}
		return err
	})
	for i := range msgs {
		switch key := keyOf(&msgs[i]); {
		case err != nil:
			l.w.oracle.excuse(key, "the answer to its receive was lost")
		case slow:
			l.w.oracle.excuse(key, "the answer to its receive was slow")
		}
	}
	if err != nil {
		return nil, err
	}
	if l.w.bug == bugDeleteEarly && len(msgs) > 0 {
		l.Delete(ctx, []string{msgs[0].ReceiptHandle})
	}
	return msgs, nil
}

func (l *link) settle(ctx context.Context, action string, receipts []string,
	do func(context.Context, *broker.Queue) []error) []error {
	var errs []error
	_, slow, err := l.call(ctx, action, false, func(ctx context.Context, b *broker.Broker) error {
		errs = do(ctx, b.Queue(l.w.queueName(workQueue)))
		return nil
	})
	if err != nil {
		errs = make([]error, len(receipts))
		for i := range errs {
			errs[i] = err
		}
	}
	for i, receipt := range receipts {
		failed := errs != nil && errs[i] != nil
		if failed || slow {
			l.w.oracle.excuseReceipt(receipt, fmt.Sprintf("a %s of it was slow or failed: %v", action, errs))
		}
	}
	return errs
}

func (l *link) Delete(ctx context.Context, receipts []string) []error {
	l.w.oracle.deleting(l.life, receipts)
	if l.w.bug == bugForgetDeletes && l.w.plan.roll("forget", receipts[0]) < 0.5 {
		return nil
	}
	errs := l.settle(ctx, "delete", receipts, func(ctx context.Context, q *broker.Queue) []error {
		return q.Delete(ctx, receipts)
	})
	for i, receipt := range receipts {
		if errs == nil || errs[i] == nil {
			l.w.oracle.deleted(receipt, l.w.fs.Syncs(walName))
		}
	}
	return errs
}

func (l *link) Expire(ctx context.Context, receipts []string) []error {
	l.w.oracle.violated("messages were deleted as expired")
	return l.settle(ctx, "expire", receipts, func(ctx context.Context, q *broker.Queue) []error {
		return q.Expire(ctx, receipts)
	})
}

func (l *link) ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error {
	receipts := make([]string, len(changes))
	sent := make([]queue.VisibilityChange, len(changes))
	for i, c := range changes {
		receipts[i], sent[i] = c.ReceiptHandle, c
		if !l.w.plan.Embedded {
			sent[i].Unread = false // the wire protocol has no such field
		}
		if l.w.bug == bugRetryEarly {
			sent[i].Visibility = 0
		}
	}
	errs := l.settle(ctx, "change", receipts, func(ctx context.Context, q *broker.Queue) []error {
		return q.ChangeVisibility(ctx, sent)
	})
	for i, c := range changes {
		if errs == nil || errs[i] == nil {
			l.w.oracle.changed(c)
		}
	}
	return errs
}

type embeddedLink struct{ *link }

func (l *embeddedLink) TakesDeadLetters(last bool) bool {
	b, _ := l.w.server.current()
	return b != nil && b.Queue(l.w.queueName(workQueue)).TakesDeadLetters(last)
}

func (l *embeddedLink) DeadLetter(ctx context.Context, letters []queue.DeadLetter) []error {
	receipts := make([]string, len(letters))
	for i := range letters {
		receipts[i] = letters[i].Message.ReceiptHandle
	}
	return l.settle(ctx, "dead letter", receipts, func(ctx context.Context, q *broker.Queue) []error {
		return q.DeadLetter(ctx, letters)
	})
}

func (l *link) Read(ctx context.Context, name string) (lease queue.Lease, err error) {
	_, _, err = l.call(ctx, "read", true, func(ctx context.Context, b *broker.Broker) (err error) {
		lease, err = registry.NewLeases(b.Registry()).Read(ctx, l.leaseName(name))
		return err
	})
	return lease, err
}

func (l *link) Swap(ctx context.Context, name string, old, next queue.Lease) (won bool, now queue.Lease, err error) {
	_, _, err = l.call(ctx, "swap", true, func(ctx context.Context, b *broker.Broker) (err error) {
		if l.w.bug == bugLoseChange && strings.HasSuffix(name, "/desired") {
			won = true
			return nil
		}
		won, now, err = registry.NewLeases(b.Registry()).Swap(ctx, l.leaseName(name), old, next)
		return err
	})
	return won && err == nil, now, err
}

// With bugLeadTwice, each daemon has its own lease, so there can be two leaders.
func (l *link) leaseName(name string) string {
	if l.w.bug == bugLeadTwice {
		return fmt.Sprint(name, l.daemon)
	}
	return name
}

func (l *link) runs(b *broker.Broker) *registry.Runs {
	name := periodic.LeaseName(l.w.queueName(workQueue))
	scope := registry.Scope{Name: name, Lease: name}
	if l.w.bug == bugLeadTwice {
		scope.Lease = ""
	}
	return registry.NewRuns(b.Registry(), scope)
}

func (l *link) Enqueue(ctx context.Context, term int64, scheduled registry.Run) (result registry.EnqueueResult, err error) {
	run := *queue.ParseRun(&queue.Message{Attributes: scheduled.Message.Attributes})
	l.w.oracle.enqueuing(l.life, &run)
	if l.w.bug == bugMissRuns && l.w.plan.roll("miss", scheduled.ID) < 0.5 {
		return registry.EnqueueResult{Sent: queue.Sent{ID: "none"}}, nil
	}
	applied, _, err := l.call(ctx, "enqueue", true, func(ctx context.Context, b *broker.Broker) (err error) {
		if result, err = l.runs(b).Enqueue(ctx, term, scheduled); err == nil && l.w.bug != bugLeadTwice {
			l.w.oracle.accepted(l.life, term)
		}
		if l.w.bug == bugRunTwice {
			_, err = b.Queue(scheduled.Queue).Send(ctx,
				[]queue.Outgoing{{Body: scheduled.Message.Body, Attributes: scheduled.Message.Attributes}})
		}
		return err
	})
	l.w.oracle.enqueued(&run, applied, err)
	return result, err
}

func (l *link) Skip(ctx context.Context, term int64, runs []registry.Run) (found map[string]registry.RunRecord, err error) {
	_, _, err = l.call(ctx, "skip", true, func(ctx context.Context, b *broker.Broker) (err error) {
		found, err = l.runs(b).Skip(ctx, term, runs)
		return err
	})
	return found, err
}

func (l *link) Since(ctx context.Context, term int64, starts map[string]registry.Start) (known map[string]queue.TaskTimes,
	err error) {
	_, _, err = l.call(ctx, "since", true, func(ctx context.Context, b *broker.Broker) (err error) {
		if known, err = l.runs(b).Since(ctx, term, starts); err == nil {
			l.w.oracle.counting(known)
		}
		return err
	})
	return known, err
}

func (l *link) Known(ctx context.Context, id, path string) (known bool, err error) {
	_, _, err = l.call(ctx, "known", true, func(ctx context.Context, b *broker.Broker) (err error) {
		known, err = l.runs(b).Known(ctx, id, path)
		return err
	})
	return known, err
}

var _ periodic.Registry = (*link)(nil)

func (l *link) Send(ctx context.Context, out []queue.Outgoing) (sent []queue.Sent, err error) {
	if l.w.bug == bugLoseSends && l.w.plan.roll("lose", out[0].Body) < 0.1 {
		return make([]queue.Sent, len(out)), nil
	}
	_, _, err = l.call(ctx, "send", false, func(ctx context.Context, b *broker.Broker) (err error) {
		sent, err = b.Queue(l.w.queueName(workQueue)).Send(ctx, out)
		return err
	})
	return sent, err
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
