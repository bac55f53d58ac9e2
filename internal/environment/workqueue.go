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

type workQueue struct {
	source         worker.Queue
	name, url, arn string
	dead           string
	fifo           bool
	embedded       bool
	attributes     map[string]string
	denied         error // the reason the attributes are not readable
	forTask        bool

	inForce *settings
	index   int // in inForce and in queues.all
}

func (w *workQueue) settings() *config.QueueSettings { return w.inForce.queue(w.index) }

func (w *workQueue) targetKey() string {
	set := w.settings()
	return set.Target + "\n" + set.Function + "\n" + set.Lambda
}

// Bare connections are probed less often, because some servers log each of them.
const (
	checkIdle   = 5 * time.Second
	connectIdle = 10 * time.Second
)

// probeIdle returns 0 to disable probes: the supervisor checks an app that runs here, and probing an AWS Lambda
// function would cost an invocation.
func (w *workQueue) probeIdle(checked bool) time.Duration {
	switch {
	case w.settings().ToOwnApp() || w.settings().Function != "":
		return 0
	case checked:
		return checkIdle
	}
	return connectIdle
}

// filter returns nil to deliver all messages. Scheduled runs are always delivered, because they have no content.
func (w *workQueue) filter() func(*queue.Message) bool {
	set := w.settings()
	if set.Filter == "" {
		return nil
	}

	patterns, err := filter.Parse(set.Filter)
	if err != nil {
		return nil // validated with the settings
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

// pathWithoutQuery removes the query, which may contain a secret.
func pathWithoutQuery(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}
