package environment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"tendril/config"
	"tendril/periodic"
	"tendril/queue"
	"tendril/telemetry"
)

// courier takes messages to the app for the worker. On the way it notes how the
// runs of periodic tasks end, and where only the registry is trusted, it makes
// ordinary messages of those that just look like one.
type courier struct {
	e  *Environment
	to deliverer
	// goesTo names the target of a message with its own path or "", for lines in
	// the way of aws-sqsd.
	goesTo func(path string) string
	// tracer makes the spans of deliveries; nil when nobody collects them.
	tracer *telemetry.Tracer
	// viaSNS takes messages out of the envelopes of SNS.
	viaSNS bool
	// fifo tells that the order of a group counts.
	fifo bool
	// deadline bounds a POST as a whole, 0 for no bound; nil for a function.
	deadline func() time.Duration
}

// deliverer hands messages to an app or a function.
type deliverer interface {
	Deliver(ctx context.Context, m *queue.Message) queue.Result
	Probe(ctx context.Context) error
}

// batchDeliverer can hand over several messages at once.
type batchDeliverer interface {
	DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result
}

// batchCourier is a courier to what takes several messages at once.
type batchCourier struct{ *courier }

// DeliverBatch hands several messages over in one delivery. Those that cannot be
// handed over at all hold up none but the later ones of their FIFO group.
func (b batchCourier) DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result {
	results := make([]queue.Result, len(msgs))
	var parcels []*parcel
	var ready []*queue.Message
	var places []int
	stuck := map[string]queue.Result{} // by FIFO group
	by := b.fetchBy(time.Now())
	for i, m := range msgs {
		if behind, is := stuck[m.GroupID]; is {
			results[i] = behind
			continue
		}
		p, failed := b.pack(ctx, m, by)
		if failed != nil {
			results[i] = *failed
			if b.fifo && m.GroupID != "" {
				stuck[m.GroupID] = queue.Result{Outcome: failed.Outcome, RetryAfter: failed.RetryAfter,
					Reason: "an earlier message of its group is not done", Unsent: true}
			}
			continue
		}
		parcels, ready, places = append(parcels, p), append(ready, p.message), append(places, i)
	}
	if len(ready) == 0 {
		return results
	}
	for _, p := range parcels {
		b.leave(p)
	}
	ctx, end := b.tracer.BeginBatch(ctx, ready)
	delivered := b.to.(batchDeliverer).DeliverBatch(ctx, ready)
	end(delivered)
	for i, result := range delivered {
		results[places[i]] = result
		b.arrive(parcels[i], result)
	}
	return results
}

// Deliver hands one message over.
func (c *courier) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	p, failed := c.pack(ctx, m, c.fetchBy(time.Now()))
	if failed != nil {
		return *failed
	}
	c.leave(p)
	ctx, end := c.tracer.Begin(ctx, p.message)
	result := c.to.Deliver(ctx, p.message)
	end(result)
	c.arrive(p, result)
	return result
}

// parcel is a message made ready for its way.
type parcel struct {
	message *queue.Message
	// task and at are those of the run that it is; task is "" for an ordinary
	// message, or where nobody keeps account of runs.
	task  string
	at    time.Time
	tasks *tasks // that keep account of it
}

// pack makes a message ready, with what has to come from S3 until a time; failed says
// why it cannot be handed over.
func (c *courier) pack(ctx context.Context, m *queue.Message, by time.Time) (p *parcel, failed *queue.Result) {
	if run := queue.ParseRun(m); run != nil {
		parsed := *m
		parsed.Run = run
		m = &parsed
	}
	if m.Attribute(queue.AttributePath) != "" && c.e.s.PeriodicTrust == config.TrustRegistry {
		known, err := c.isKnown(ctx, m)
		if errors.Is(err, errSeeking) {
			return nil, &queue.Result{Outcome: queue.Postponed, Reason: err.Error(), RetryAfter: firstSeekPause}
		}
		if err != nil {
			return nil, &queue.Result{Reason: "the registry of periodic tasks did not answer", Err: err, Unsent: true}
		}
		if !known {
			m = ordinary(m)
		}
	}
	if !m.Run.Named() {
		if m, failed = c.unwrap(ctx, m, by); failed != nil {
			return nil, failed
		}
	}
	p = &parcel{message: m}
	if t := c.e.cron.Load(); m.Run.Named() && t != nil && t.scheduler != nil {
		p.task, p.at, p.tasks = m.Run.Task, m.Run.ScheduledAt, t
	}
	return p, nil
}

// leave notes that a parcel is on its way.
func (c *courier) leave(p *parcel) {
	c.e.report.Sent(func() string {
		if p.message.Run == nil {
			return c.goesTo("")
		}
		return c.goesTo(p.message.Run.Path)
	})
	if p.task != "" {
		p.tasks.begun(p.task)
	}
}

// arrive notes how a parcel was received.
func (c *courier) arrive(p *parcel, result queue.Result) {
	if p.task == "" {
		return
	}
	p.tasks.ended(p.task)
	p.tasks.scheduler.Outcome(periodic.Outcome{Task: p.task, ScheduledAt: p.at, MessageID: p.message.ID,
		Attempt: p.message.ReceiveCount, At: time.Now(), Result: result})
}

// isKnown reports whether the registry has the run that a message claims to be,
// with the path that it goes to: a copy of a run that goes elsewhere is none.
func (c *courier) isKnown(ctx context.Context, m *queue.Message) (bool, error) {
	id := periodic.IDOf(m.Run)
	reg := c.e.agreed.Load()
	if id == "" {
		return false, nil
	}
	if reg == nil {
		return false, c.e.stillSeeking()
	}
	return reg.known(ctx, id, m.Run.Path)
}

// errSeeking: it is not known yet whether there is a registry.
var errSeeking = errors.New("the registry of periodic tasks is still looked for")

func (e *Environment) stillSeeking() error {
	if e.seeking.Load() {
		return errSeeking
	}
	return nil
}

// pathOf is the path that a run's message goes to.
func pathOf(run periodic.ScheduledRun) string {
	for _, a := range run.Message.Attributes {
		if a.Name == queue.AttributePath {
			return a.Value
		}
	}
	return ""
}

// ordinary returns the message without what makes it a periodic one.
func ordinary(m *queue.Message) *queue.Message {
	plain := *m
	plain.Run = nil
	plain.Attributes = slices.DeleteFunc(slices.Clone(m.Attributes), func(a queue.Attribute) bool {
		return strings.HasPrefix(strings.ToLower(a.Name), queue.RunPrefix)
	})
	return &plain
}

// Probe returns nil when what the messages go to may be given some.
func (c *courier) Probe(ctx context.Context) error { return c.to.Probe(ctx) }
