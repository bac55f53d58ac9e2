package environment

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"tendril/app"
	"tendril/config"
	"tendril/worker"
)

// pipeline is one queue with its worker and the target of its messages.
type pipeline struct {
	set      atomic.Pointer[config.QueueSettings]
	queue    queueRef
	embedded bool // else on Amazon SQS
	worker   *worker.Worker
	// target names what the messages go to, as it was at the start: metrics go by
	// it. Of an app over HTTP base is the part before the path.
	target, base string
	// route leads to the replicas of the app that run here; nil for other targets.
	route *app.Route
	// renew lets deliveries that begin from now on go by new settings; nil where
	// none of them count.
	renew func()
	// probe asks whether the target takes messages.
	probe func(context.Context) error
	// checked tells that probe is a health check, and no bare connection.
	checked bool
	// forTask tells that the queue was made because a periodic task names it.
	forTask bool
	// close drops the connections to the target.
	close func()
}

func newPipeline(set *config.QueueSettings) *pipeline {
	l := &pipeline{embedded: set.Backend == config.BackendEmbedded}
	l.set.Store(set)
	return l
}

// settings are those in force for the queue. They must not be changed.
func (l *pipeline) settings() *config.QueueSettings { return l.set.Load() }

// goesTo names what the messages go to now, for people, logs and metrics: without
// the query of the path, which may hold a secret.
func (l *pipeline) goesTo() string {
	if l.base == "" {
		return l.target
	}
	path, _, _ := strings.Cut(l.settings().HTTPPath, "?")
	return l.base + path
}

// targetKey is the same for pipelines that deliver to the same place.
func (l *pipeline) targetKey() string {
	return l.settings().Target + "\n" + l.settings().Function + "\n" + l.settings().Lambda
}

// maxBatchBytes keeps the event of a batch below what Lambda takes, 6 MiB, as
// long as no more than two bytes of JSON stand for one of a body.
const maxBatchBytes = 5 << 19

// How long a target has to be idle before it is probed: with a health check, that
// exists to be asked, and with a bare connection, of which some servers log each.
const (
	checkIdle   = 5 * time.Second
	connectIdle = 10 * time.Second
)

// probeIdle is when the worker probes an idle target. The supervisor watches the app
// that runs here. A function of AWS Lambda is started by its messages: a probe
// would be a paid call that tells nothing of the next.
func (l *pipeline) probeIdle() time.Duration {
	switch {
	case l.settings().ToOwnApp() || l.settings().Function != "":
		return 0
	case l.checked:
		return checkIdle
	}
	return connectIdle
}

// zeroMeant turns a 0 that somebody chose into what the parts take for it:
// their own zero means the default.
func zeroMeant(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}
