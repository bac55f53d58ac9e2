package environment

import (
	"strings"
	"time"

	"tendril/internal/config"
	"tendril/internal/delivery/envelope"
	"tendril/internal/delivery/filter"
	"tendril/internal/worker"
	"tendril/queue"
)

// workQueue is a queue that this environment receives from, wherever it lives.
type workQueue struct {
	source         worker.Queue
	name, url, arn string
	dead           string // the dead-letter queue's name; "" for none
	fifo           bool
	embedded       bool // else on Amazon SQS
	forTask        bool // it was opened because a periodic task names it

	inForce *settings
	index   int // of its settings
}

// settings are those in force for the queue. They must not be changed.
func (w *workQueue) settings() *config.QueueSettings { return w.inForce.queue(w.index) }

// targetKey is the same for queues whose messages go to the same place.
func (w *workQueue) targetKey() string {
	set := w.settings()
	return set.Target + "\n" + set.Function + "\n" + set.Lambda
}

// How long a target has to be idle before it is probed: with a health check, that
// exists to be asked, and with a bare connection, of which some servers log each.
const (
	checkIdle   = 5 * time.Second
	connectIdle = 10 * time.Second
)

// probeIdle is when the worker probes an idle target; checked tells that it has a health check. The supervisor watches
// the app that runs here. A function of AWS Lambda is started by its messages: a probe would be a paid call that tells
// nothing of the next.
func (w *workQueue) probeIdle(checked bool) time.Duration {
	switch {
	case w.settings().ToOwnApp() || w.settings().Function != "":
		return 0
	case checked:
		return checkIdle
	}
	return connectIdle
}

// filter is what decides which messages are delivered; nil for all. It looks at what the app would get: at the content
// of an envelope of SNS. Runs of tasks are always delivered, since they have no content.
func (w *workQueue) filter() func(*queue.Message) bool {
	set := w.settings()
	if set.Filter == "" {
		return nil
	}
	patterns, err := filter.Parse(set.Filter)
	if err != nil {
		return nil // it was parsed when the settings were read
	}
	return func(m *queue.Message) bool {
		if queue.ParseRun(m) != nil {
			return true
		}
		if set.ViaSNS {
			inner, _ := envelope.SNS(m)
			m = &inner
		}
		return patterns.Match(m)
	}
}

// pathWithoutQuery is the path of deliveries for people, logs and metrics: a query may hold a secret.
func pathWithoutQuery(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}
