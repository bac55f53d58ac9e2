package environment

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tendril/broker"
	"tendril/internal/app"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/delivery/envelope"
	"tendril/internal/delivery/filter"
	"tendril/internal/delivery/limit"
	"tendril/internal/worker"
	"tendril/queue"
)

// pipeline is one queue with its worker and the target of its messages.
type pipeline struct {
	queueRef
	set     atomic.Pointer[config.QueueSettings]
	worker  *worker.Worker
	limiter *limit.Limiter // protects the target, for all pipelines that have it; nil where nothing does
	// target names what the messages go to, as it was at the start: metrics go by it. Of an app over HTTP
	// base is the part before the path.
	target, base string
	route        *app.Route                  // to the replicas of the app that run here; nil for other targets
	renew        func()                      // lets new settings count from now on; nil where none of them do
	probe        func(context.Context) error // asks whether the target takes messages
	checked      bool                        // probe is a health check, and no bare connection
	// record keeps a failed attempt with its message; nil on Amazon SQS.
	record  func(queue, id string, a broker.Attempt)
	forTask bool   // the queue was made because a periodic task names it
	close   func() // drops the connections to the target
}

func newPipeline(ref queueRef, set *config.QueueSettings) *pipeline {
	l := &pipeline{queueRef: ref}
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

// How long a target has to be idle before it is probed: with a health check, that
// exists to be asked, and with a bare connection, of which some servers log each.
const (
	checkIdle   = 5 * time.Second
	connectIdle = 10 * time.Second
)

// probeIdle is when the worker probes an idle target. The supervisor watches the app that runs here. A function
// of AWS Lambda is started by its messages: a probe would be a paid call that tells nothing of the next.
func (l *pipeline) probeIdle() time.Duration {
	switch {
	case l.settings().ToOwnApp() || l.settings().Function != "":
		return 0
	case l.checked:
		return checkIdle
	}
	return connectIdle
}

// awaitTarget returns true when the target answers, false when ctx ends first. It
// logs what is wrong once for each reason.
func (l *pipeline) awaitTarget(ctx context.Context, log *slog.Logger) bool {
	logged := ""
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := l.probe(ctx)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case err.Error() != logged:
			logged = err.Error()
			log.Warn("target does not answer", "component", "worker", "target", l.target, "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}

// deliveryLimit is the longest that a delivery may take; without a deadline, the longest that it may be silent.
func deliveryLimit(set *config.QueueSettings, ofFunctions time.Duration) time.Duration {
	if set.ToFunction() {
		return ofFunctions
	}
	return cmp.Or(set.Deadline, set.InactivityTimeout)
}

// filter is what decides which messages are delivered; nil for all. It looks at what the app would get: at the content
// of an envelope of SNS. Runs of tasks are always delivered, since they have no content.
func (l *pipeline) filter() func(*queue.Message) bool {
	set := l.settings()
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

// isPaused reports whether a person paused a worker.
func isPaused(st worker.Status) bool {
	return slices.ContainsFunc(st.Reasons, func(r worker.Reason) bool { return r.Block == worker.Paused })
}

func (l *pipeline) status() console.Worker {
	st := l.worker.Status()
	w := console.Worker{
		Queue: st.Name, Target: l.goesTo(), Concurrency: st.Concurrency, InWork: st.InWork,
		Prefetched: st.Prefetched + st.Waiting, Receiving: st.Receiving,
		WorkerCounts: console.WorkerCounts{Received: st.Counts.Received, Done: st.Counts.Done, Failed: st.Counts.Failed,
			Unreached: st.Counts.Unreached, Returned: st.Counts.Returned, Expired: st.Counts.Expired,
			Filtered: st.Counts.Filtered, Throttled: st.Counts.Throttled}, PerSecond: st.PerSecond,
		OldestSeconds: st.Oldest.Seconds(), LongestWaitSeconds: st.LongestWait.Seconds(), TurnShare: st.TurnShare,
		LimitedBy: st.LimitedBy,
	}
	for _, r := range st.Reasons {
		if r.Block == worker.Paused {
			w.Paused, w.PauseReason = true, r.Text
		}
		w.GateReasons = append(w.GateReasons, r.Text)
	}
	if st.LastError != nil {
		w.LastError = fmt.Sprintf("%s: %v", st.LastError.Action, st.LastError.Err)
	}
	return w
}
