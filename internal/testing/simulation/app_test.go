package simulation

import (
	"context"
	"errors"
	"strings"
	"time"

	"tendril/queue"
)

type app struct{ w *world }

type nature int

const (
	plain nature = iota
	poison
	failing
	slow    // takes longer than the visibility timeout
	hanging // gives no response once
)

func (p *plan) nature(key string) nature {
	at, low := p.roll("nature", key), 0.0
	for _, c := range []struct {
		nature
		share float64
	}{{poison, p.Poison}, {failing, p.Failing}, {slow, p.Slow}, {hanging, p.Hanging}} {
		if low += c.share; at < low && !(c.nature == poison && strings.Contains(key, "@")) {
			return c.nature
		}
	}
	return plain
}

func (p *plan) failures(key string) int {
	switch p.nature(key) {
	case failing:
		return 1 + int(p.roll("failures", key)*2)
	case hanging:
		return 1
	}
	return 0
}

func (p *plan) latency(key string, attempt int) time.Duration {
	x := p.roll("latency", key, attempt)
	if p.nature(key) == slow {
		return min(time.Duration((0.5+x)*float64(p.Visibility)), p.Inactivity-time.Second)
	}
	return time.Millisecond + time.Duration(x*x*x*float64(6*time.Second))
}

func (a *app) fault(k kind, l *life) *fault {
	if a.w.healed.Load() {
		return nil
	}
	for i := range a.w.plan.Faults {
		if f := &a.w.plan.Faults[i]; f.Kind == k && f.during(a.w.now(), l.index) {
			return f
		}
	}
	return nil
}

var errRefused = errors.New("connection refused")

func (a *app) probe(l *life) error {
	if err := l.frozen(); err != nil {
		return err
	}
	if a.fault(appDown, l) != nil {
		return errRefused
	}
	return nil
}

func (a *app) post(ctx context.Context, l *life, m *queue.Message) queue.Result {
	key := keyOf(m)
	if l.frozen() != nil {
		return queue.Result{Outcome: queue.Unreached, Reason: "killed", Err: errKilled}
	}
	if a.fault(appDown, l) != nil {
		a.w.injected(appDown)
		a.w.oracle.charge(key, "the app was down")
		return queue.Result{Outcome: queue.Unreached, Reason: "connection refused", Err: errRefused}
	}
	if f := a.fault(appThrottles, l); f != nil && a.w.plan.roll("throttle", key, a.w.now()) < f.Chance {
		a.w.injected(appThrottles)
		a.w.oracle.charge(key, "the app was throttling")
		return queue.Result{Outcome: queue.Throttled, Status: 429, Reason: "HTTP 429", RetryAfter: 3 * time.Second}
	}
	p := a.w.oracle.begin(l, key, m)
	res := a.answer(ctx, l, key, p.attempt)
	if ctx.Err() != nil {
		res = queue.Result{Reason: "cut off", Err: ctx.Err()}
	}
	known := res.Err == nil || !errors.Is(res.Err, context.Canceled)
	a.w.oracle.end(p, &res, l.frozen() == nil && known)
	return res
}

func (a *app) answer(ctx context.Context, l *life, key string, attempt int) queue.Result {
	plan := a.w.plan
	d := plan.latency(key, attempt)
	if f := a.fault(appSlow, l); f != nil {
		a.w.injected(appSlow)
		d += time.Duration(plan.roll("slow", key, attempt) * float64(plan.Visibility))
	}
	if plan.nature(key) == hanging && attempt == 1 || d > plan.Inactivity {
		a.w.oracle.charge(key, "the app was too slow")
		sleep(ctx, plan.Inactivity)
		return queue.Result{Reason: "no answer in time"}
	}
	sleep(ctx, d)
	if f := a.fault(appSilent, l); f != nil && plan.roll("silent", key, attempt) < f.Chance {
		a.w.injected(appSilent)
		a.w.oracle.charge(key, "the app's answer was lost")
		return queue.Result{Reason: "the connection broke", Err: errRefused}
	}
	if f := a.fault(appFailing, l); f != nil && plan.roll("failing", key, attempt) < f.Chance {
		a.w.injected(appFailing)
		a.w.oracle.charge(key, "the app was failing")
		return queue.Result{Status: 503, Reason: "HTTP 503"}
	}
	if plan.nature(key) == poison || plan.nature(key) == failing && attempt <= plan.failures(key) {
		return queue.Result{Status: 500, Reason: "HTTP 500"}
	}
	return queue.Result{Outcome: queue.Done, Status: 200}
}

func keyOf(m *queue.Message) string {
	if run := queue.ParseRun(m); run.Named() {
		return runKey(run)
	}
	return m.Body
}

func runKey(run *queue.Run) string { return run.Task + "@" + run.Time }
