package environment

import (
	"time"

	"tendril/internal/observe/telemetry"
)

func (p *pipelines) workerReadings() (all []telemetry.WorkerStatus) {
	if !p.life.running() {
		return nil
	}
	for _, l := range p.all {
		w := telemetry.WorkerStatus{Queue: l.queue.name, Target: l.target.name, Status: l.worker.Status()}
		if l.limiter != nil {
			w.AdaptiveLimit = l.limiter.Status().Limit
		}
		all = append(all, w)
	}
	return all
}

func (p *pipelines) queueReadings() (all []telemetry.Queue) {
	if !p.life.running() {
		return nil
	}
	add := func(name string, r depth, known bool) {
		if known {
			all = append(all, telemetry.Queue{Name: name, Visible: r.visible, InFlight: r.inFlight, Delayed: r.delayed,
				OldestAge: r.oldest, HasAge: r.hasAge})
		}
	}

	if p.queues.broker != nil {
		for _, name := range p.queues.broker.ListQueues("") {
			r, known := p.depths.embedded(name)
			add(name, r, known)
		}
	}

	now := time.Now()
	for _, l := range p.all {
		r, known := p.depths.onSQS(l.queue.name, now)
		add(l.queue.name, r, known)
	}
	return all
}

func (p *pipelines) limitReadings() (all []telemetry.Limit) {
	if !p.life.running() {
		return nil
	}
	for _, sharing := range p.byLimiter() {
		s := sharing[0].limiter.Status()
		all = append(all, telemetry.Limit{
			Target: sharing[0].target.name, Breaker: s.Breaker,
			RateRefused: s.Refused.Rate, ConcurrencyRefused: s.Refused.Concurrency, BreakerRefused: s.Refused.Breaker,
		})
	}
	return all
}
