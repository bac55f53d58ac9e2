package environment

import (
	"cmp"
	"slices"
	"strings"

	"tendril/config"
	"tendril/worker"
)

// inForce are the settings in force: those of the start, with what changed since and
// can take effect while tendril runs. They must not be changed.
func (e *Environment) inForce() *config.Settings { return cmp.Or(e.tuned.Load(), e.s) }

// tuning is what a worker is told of the settings in force.
func (e *Environment) tuning(l *pipeline) worker.Tuning {
	s, set := e.inForce(), l.settings()
	return worker.Tuning{
		Concurrency: set.Concurrency, ErrorVisibilityTimeout: set.ErrorVisibilityTimeout,
		Backoff: worker.Backoff{Min: s.BackoffMin, Max: s.BackoffMax, Doublings: s.BackoffDoublings,
			Jitter: float64(s.BackoffJitter) / 100},
		RespectRetryAfter: s.RespectRetryAfter, Retention: set.RetentionPeriod,
	}
}

// tune lets a change of settings take effect: deliveries that begin from now on go by
// the new ones, and nothing is restarted for it. Where new replicas of the app take over,
// those that are there go on as they are.
func (e *Environment) tune(c config.Change, newReplicas bool) {
	if len(c.Later) > 0 {
		e.Logger.Warn("settings changed, a restart is needed", "component", "config", "options", strings.Join(c.Later, ", "))
	}
	if len(c.Live) == 0 {
		return
	}
	e.tuned.Store(c.Settings)
	queues := map[string]*config.QueueSettings{}
	for i := range c.Settings.Queues {
		queues[c.Settings.Queues[i].Name] = &c.Settings.Queues[i]
	}
	for _, l := range e.lines {
		set := queues[l.settings().Name]
		if l.forTask { // which goes by the first queue's, but for what is its own
			own := c.Settings.Queues[0]
			own.Name, own.Weight = l.settings().Name, l.settings().Weight
			set = &own
		}
		l.set.Store(set)
		if l.renew != nil && (l.route == nil || !newReplicas) {
			l.renew()
		}
		t := e.tuning(l)
		l.worker.Tune(&t)
	}
	e.Logger.Info("settings changed", "component", "config", "options", strings.Join(c.Live, ", "))
}

// connections is the option that says how many deliveries are in work at once.
const connections = "http-connections"

// connectionsLive reports whether a change of it takes effect here before the next start:
// not where several queues share the deliveries, where a function has as many processes,
// or where something else bounds them that was made for the number at the start.
func (e *Environment) connectionsLive() bool {
	return e.pool == nil && e.opener.functions.Len() == 0 && !e.s.AdaptiveConcurrency && e.s.Breaker == 0
}

// keepConnections has a change of it wait for the next start.
func keepConnections(c *config.Change, inForce *config.Settings) {
	i := slices.Index(c.Live, connections)
	if i < 0 {
		return
	}
	c.Live, c.Later = slices.Delete(c.Live, i, i+1), append(c.Later, connections)
	c.Settings.HTTPConnections = inForce.HTTPConnections
	for i := range c.Settings.Queues {
		c.Settings.Queues[i].Concurrency = inForce.Queues[i].Concurrency
	}
}
