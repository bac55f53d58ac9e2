package environment

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"tendril/api"
	"tendril/internal/config"
	"tendril/internal/delivery/limit"
	"tendril/internal/worker"
)

// pipeline is one queue with its worker and target.
type pipeline struct {
	queue   *workQueue
	target  *target
	worker  *worker.Worker
	limiter *limit.Limiter // limits requests to the target, also for other pipelines with that target; may be nil

	pausing sync.Mutex
	pauses  [pauseSources]string // reasons; "" if that source does not pause the queue
}

// pauseSource is who pauses a queue. A queue receives while no source pauses it.
type pauseSource int

const (
	byThis    pauseSource = iota // an operator, on this instance only
	byFleet                      // an operator, on all instances
	byProcess                    // a signal or hook, until the process exits
	pauseSources
)

// setPause changes one source's pause; "" ends it. It reports whether that changed anything.
func (p *pipeline) setPause(by pauseSource, reason string) (changed bool) {
	p.pausing.Lock()
	defer p.pausing.Unlock()
	changed = p.pauses[by] != reason
	p.pauses[by] = reason
	if effective := cmp.Or(p.pauses[:]...); effective != "" {
		p.worker.Pause(effective)
	} else {
		p.worker.Resume()
	}
	return changed
}

// deliveryLimit returns the maximum duration of a delivery. Without a deadline, it is the maximum time without
// progress.
func deliveryLimit(set *config.QueueSettings, ofFunctions time.Duration) time.Duration {
	if set.ToFunction() {
		return ofFunctions
	}
	return cmp.Or(set.Deadline, set.InactivityTimeout)
}

func isPaused(st worker.Status) bool {
	return slices.ContainsFunc(st.Reasons, func(r worker.Reason) bool { return r.Block == worker.Paused })
}

func (p *pipeline) status() api.Worker {
	st := p.worker.Status()
	w := api.Worker{
		Queue: st.Name, Target: p.target.current(), Concurrency: st.Concurrency, InWork: st.InWork,
		Prefetched: st.Prefetched + st.Waiting, Receiving: st.Receiving,
		WorkerCounts: api.WorkerCounts{Received: st.Counts.Received, Done: st.Counts.Done, Failed: st.Counts.Failed,
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
