package environment

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tendril/api"
	"tendril/internal/config"
	"tendril/internal/delivery/limit"
	"tendril/internal/instances"
	"tendril/internal/worker"
)

type pipeline struct {
	queue   *workQueue
	target  *target
	worker  *worker.Worker
	limiter *limit.Limiter // shared by pipelines with the same target; may be nil
	begun   atomic.Bool    // has started to receive, or would have without a pause

	pausing sync.Mutex
	pauses  [pauseSources]instances.Pause
}

// pauseSource is the origin of a pause. A queue receives while no source pauses it.
type pauseSource int

const (
	byThis     pauseSource = iota // an operator, on this instance only
	byFleet                       // an operator, on all instances
	byRollout                     // a rollout, until this instance runs another version of the app
	byRegistry                    // the loss of the registry, until it answers
	byProcess                     // a signal or hook, until a resume or the process's exit
	pauseSources
)

func (p *pipeline) setPause(by pauseSource, pause instances.Pause) (changed bool) {
	p.pausing.Lock()
	defer p.pausing.Unlock()
	changed = p.pauses[by] != pause
	p.pauses[by] = pause
	effective := cmp.Or(p.pauses[:]...)
	p.target.paused.Store(effective != instances.Pause{})
	if effective != (instances.Pause{}) {
		p.worker.Pause(cmp.Or(effective.Reason, pausedText))
	} else {
		p.worker.Resume()
	}
	return changed
}

func (p *pipeline) pause() instances.Pause {
	p.pausing.Lock()
	defer p.pausing.Unlock()
	return cmp.Or(p.pauses[:]...)
}

func (p *pipeline) isPausedBy(source pauseSource) bool {
	p.pausing.Lock()
	defer p.pausing.Unlock()
	return p.pauses[source] != instances.Pause{}
}

// heldByRollout reports whether only a rollout has paused the queue. No command resumes it then.
func (p *pipeline) heldByRollout() bool {
	p.pausing.Lock()
	defer p.pausing.Unlock()
	others := p.pauses
	others[byRollout] = instances.Pause{}
	return others == [pauseSources]instances.Pause{} && p.pauses[byRollout] != instances.Pause{}
}

func newPause(reason, by string) instances.Pause {
	return instances.Pause{Reason: reason, By: by, At: thisSecond()}
}

func thisSecond() time.Time { return time.Now().UTC().Truncate(time.Second) }

// deliveryLimit returns the maximum duration of a delivery or, without a deadline, the maximum time without progress.
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
	counts := st.Counts
	w := api.Worker{
		Queue: st.Name, FIFO: p.queue.fifo, Target: p.target.current(), Concurrency: st.Concurrency, InWork: st.InWork,
		Prefetched: st.Prefetched + st.Waiting, Receiving: st.Receiving,
		WorkerCounts: api.WorkerCounts{Received: counts.Received, Done: counts.Done, Failed: counts.Failed,
			Unreached: counts.Unreached, Returned: counts.Returned, Expired: counts.Expired,
			Filtered: counts.Filtered, Throttled: counts.Throttled}, PerSecond: st.PerSecond,
		RecentDeliveries: st.Recent, RecentFailed: st.RecentFailed,
		OldestSeconds: st.Oldest.Seconds(), LongestWaitSeconds: st.LongestWait.Seconds(), TurnShare: st.TurnShare,
		LimitedBy: st.LimitedBy,
	}
	w.LongestDeliverySeconds = st.LongestDelivery.Seconds()
	w.LongestMessageID = st.LongestID
	w.LongestGroup = st.LongestGroup
	if st.Limit < st.Concurrency {
		w.Limit = st.Limit
	}

	for _, r := range st.Reasons {
		if r.Block == worker.Paused {
			pause := p.pause()
			w.Paused = !p.heldByRollout()
			w.PauseReason = pause.Reason
			w.PausedBy = pause.By
			w.PausedAt = pause.At
		}
		w.GateReasons = append(w.GateReasons, r.Text)
	}
	if st.LastError != nil {
		w.LastError = fmt.Sprintf("%s: %v", st.LastError.Action, st.LastError.Err)
	}
	return w
}
