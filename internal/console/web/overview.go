package web

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"tendril/api"
	"tendril/internal/observe/health"
	"tendril/internal/observe/series"
)

var overviewScreens = []screen{{path: "/{$}", entry: "Overview", view: "overview", load: (*visit).overview}}

var environmentActs = []act{
	{"/pause", func(v *visit) (string, error) {
		answer, err := v.api.Pause(v.ctx, "", api.Reason{Reason: v.field("reason")})
		return "Every queue is paused" + scope(answer) + ". Messages in flight will finish.", err
	}},
	{"/resume", func(v *visit) (string, error) {
		answer, err := v.api.Resume(v.ctx, "", api.Reason{})
		return "Every queue is received from again" + scope(answer) + ".", err
	}},
	{"/reload", func(v *visit) (string, error) {
		_, err := v.api.Reload(v.ctx)
		return "Reloaded.", err
	}},
}

type overview struct {
	Causes   []health.Cause
	Since    time.Time
	Dead     []deadQueue
	Paused   []queueRow
	Queues   []queueRow
	Tasks    []api.Task // failing tasks first, then by next run
	Problems []api.Problem
}

type deadQueue struct {
	Queue string
	Count int64
	Most  *api.ReasonGroup // nil if the reasons are unknown or hidden
	Since time.Time        // time of the oldest message; zero if unknown
}

type queueRow struct {
	api.Queue
	Dead         bool // true if used as dead-letter queue
	Worker       *api.Worker
	FailingShare float64 // share of failed deliveries in the last five minutes, 0 to 1
	DeadLetters  int64
	State        string
	Reason       string
	Traffic      series.Traffic // last 15 minutes; empty if unknown
	Spark        *sparkline
}

const (
	shownTasks    = 5
	shownProblems = 10
)

func (v *visit) overview() (any, error) {
	o := &overview{Queues: v.queueRows(), Problems: v.status.Problems, Tasks: v.status.Tasks.First(shownTasks)}
	o.Problems = o.Problems[:min(len(o.Problems), shownProblems)]
	if h := v.status.Health; h != nil {
		o.Causes, o.Since = h.Each(), h.Since
	}
	for _, q := range o.Queues {
		if q.Dead && q.Ledger.Live > 0 {
			o.Dead = append(o.Dead, v.deadQueue(q.Name, q.Ledger.Live))
		}
		if q.Worker != nil && q.Worker.Paused {
			o.Paused = append(o.Paused, q)
		}
	}
	return o, nil
}

// deadQueue reads the reasons of a dead-letter queue. Callers without permission see the count only.
func (v *visit) deadQueue(name string, count int64) deadQueue {
	d := deadQueue{Queue: name, Count: count}
	groups, err := v.api.Reasons(v.ctx, name)
	if err != nil {
		return d
	}
	for i, g := range groups {
		if i == 0 && g.Reason != "" {
			d.Most = &groups[0]
		}
		if d.Since.IsZero() || !g.First.IsZero() && g.First.Before(d.Since) {
			d.Since = g.First
		}
	}
	return d
}

// queueRows returns all queues, those with a worker first.
func (v *visit) queueRows() []queueRow {
	live := map[string]int64{}
	for _, q := range v.status.Queues {
		live[q.Name] = q.Ledger.Live
	}

	dead, curves := deadLetterQueues(v.status.Queues), v.site.curves.of(v)
	rows := make([]queueRow, len(v.status.Queues))
	for i, q := range v.status.Queues {
		rows[i] = queueRow{Queue: q, Dead: dead[q.Name], DeadLetters: live[q.DeadLetterQueue], State: "Not worked on"}
		for j := range v.status.Workers {
			if w := &v.status.Workers[j]; w.Queue == q.Name {
				rows[i].work(w)
			}
		}
		if rows[i].Dead {
			rows[i].State = "Dead letters"
		}
		if problem := q.Problem(); problem != "" {
			rows[i].Reason = strings.TrimPrefix(rows[i].Reason+"; "+problem, "; ")
		}
		rows[i].Traffic = curves[q.Name]
		rows[i].Spark = sparklineOf(rows[i].Traffic)
	}

	slices.SortStableFunc(rows, func(a, b queueRow) int { return cmp.Compare(a.rank(), b.rank()) })
	return rows
}

func (q *queueRow) work(w *api.Worker) {
	q.Worker, q.FailingShare = w, w.FailingShare()
	q.State, q.Reason = w.State, w.Why
}

func (q *queueRow) rank() int {
	switch {
	case q.Worker != nil:
		return 0
	case !q.Dead:
		return 1
	}
	return 2
}
