package environment

import (
	"context"
	"slices"
	"strings"
	"time"

	"tendril/config"
	"tendril/deliver"
	"tendril/periodic"
	"tendril/queue"
	"tendril/supervisor"
)

// courier takes messages to the app for the worker. On the way it notes how the
// runs of periodic tasks end, and where only the registry is trusted, it makes
// ordinary messages of those that just look like one.
type courier struct {
	e   *Environment
	app *deliver.HTTP
}

// Deliver hands one message to the app.
func (c *courier) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	task, at, isRun := periodic.RunOf(m)
	if m.Attribute(periodic.AttributePath) != "" && c.e.s.PeriodicTrust == config.TrustRegistry {
		known, err := c.isKnown(ctx, m)
		if err != nil {
			return queue.Result{Reason: "the registry of periodic tasks did not answer", Err: err}
		}
		if !known {
			m, isRun = ordinary(m), false
		}
	}
	if !isRun || c.e.tasks == nil || c.e.tasks.scheduler == nil {
		return c.app.Deliver(ctx, m)
	}
	c.e.tasks.begun(task)
	result := c.app.Deliver(ctx, m)
	c.e.tasks.ended(task)
	c.e.tasks.scheduler.Outcome(periodic.Outcome{Task: task, ScheduledAt: at, MessageID: m.ID, Attempt: m.ReceiveCount, At: time.Now(), Result: result})
	return result
}

// isKnown reports whether the registry has the run that a message claims to be.
func (c *courier) isKnown(ctx context.Context, m *queue.Message) (bool, error) {
	id, ok := periodic.IDOf(m)
	if !ok || id == "" || c.e.known == nil {
		return false, nil
	}
	return c.e.known(ctx, id)
}

// ordinary returns the message without what makes it a periodic one.
func ordinary(m *queue.Message) *queue.Message {
	plain := *m
	plain.Attributes = slices.DeleteFunc(slices.Clone(m.Attributes), func(a queue.Attribute) bool {
		return strings.HasPrefix(strings.ToLower(a.Name), "beanstalk.sqsd.")
	})
	return &plain
}

// Probe returns nil when the app may be given messages: the health check where
// one is set, else a connection. Apps that tendril runs are checked by the
// supervisor too.
func (c *courier) Probe(ctx context.Context) error {
	if c.e.s.Healthcheck == "" {
		return c.app.Probe(ctx)
	}
	check, err := supervisor.ParseCheck(c.e.s.Healthcheck)
	if err != nil {
		return err
	}
	return check.Probe(ctx)
}
