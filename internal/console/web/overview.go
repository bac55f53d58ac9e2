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

var overviewScreens = []screen{{path: "/{$}", entry: "Overview", view: "overview", load: (*visit).loadOverview, fleet: true}}

var environmentActs = []act{
	{"/pause", (*visit).pause},
	{"/resume", (*visit).resume},
}

type overview struct {
	// Attention has the most severe health causes, More the others.
	Attention, More []attention
	// Environment is nil unless several instances share a registry.
	Environment *health.Environment
	Since       time.Time
	Range       string
	Ranges      []choice
	Queues      []queueRow
	Tasks       []api.Task // failing ones first, paused ones last, otherwise by next run
	Problems    []api.Problem
	Subject     api.KnownInstance
}

// Most is the most frequent reason of dead letters; nil if unknown or hidden.
type attention struct {
	health.Cause
	Most     *api.ReasonGroup
	Redrives bool
}

type queueRow struct {
	api.Queue
	Dead         bool
	Worker       *api.Worker
	FailingShare float64 // of deliveries in the last five minutes, 0 to 1
	DeadLetters  int64
	State        string
	Reason       string
	Traffic      series.Traffic // last 15 minutes; empty if unknown
	Spark        *sparkline
}

const (
	shownAttention = 5
	shownTasks     = 5
	shownProblems  = 10
)

func (v *visit) loadOverview() (any, error) {
	st, err := v.subjectStatus()
	if err != nil {
		return nil, err
	}

	o := &overview{Queues: withoutDead(v.queueRowsOf(&st)), Tasks: v.Status.Tasks.First(shownTasks), Subject: v.subject()}
	if o.Problems, err = v.problems(); err != nil {
		return nil, err
	}
	o.Problems = o.Problems[:min(len(o.Problems), shownProblems)]
	o.Range, o.Ranges = v.ranges()

	if h := st.Health; h != nil {
		o.Since = h.Since
	}
	if h := v.Status.Health; h != nil && h.Environment.IsShared() {
		o.Environment = h.Environment
	}

	all := v.attention(st.Health)
	shown := min(len(all), shownAttention)
	o.Attention, o.More = all[:shown], all[shown:]
	return o, nil
}

func (v *visit) attention(h *health.Report) (all []attention) {
	if h == nil {
		return nil
	}
	for _, cause := range h.Each() {
		row := attention{Cause: cause}
		if cause.Kind == health.KindDeadLetters {
			row.Redrives = v.Caller.May(api.ScopeAct) && queueNamed(v.Status.Queues, cause.Name).URL == ""
			groups, err := v.api.Reasons(v.ctx, cause.Name)
			if err == nil && len(groups) > 0 && groups[0].Reason != "" {
				row.Most = &groups[0]
			}
		}
		all = append(all, row)
	}
	return all
}

func (v *visit) ranges() (chosen string, links []choice) {
	names := series.Ranges()
	chosen = v.query("range")
	if !slices.Contains(names, chosen) {
		chosen = names[0]
	}
	for i, name := range names {
		link := choice{Label: strings.NewReplacer("m", " minutes", "h", " hours").Replace(name), Path: v.pathWith("range", name),
			Chosen: name == chosen}
		if i == 0 {
			link.Path = v.pathWith("range", "")
		}
		links = append(links, link)
	}
	return chosen, links
}

func (v *visit) problems() (all []api.Problem, err error) {
	if v.Fleet == nil {
		return v.Status.Problems, nil
	}
	statuses, err := v.statuses()
	for _, st := range statuses {
		for _, p := range st.Answer.Problems {
			all = addProblem(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b api.Problem) int { return b.Last.Compare(a.Last) })
	return all, err
}

func addProblem(all []api.Problem, p api.Problem) []api.Problem {
	i := slices.IndexFunc(all, func(other api.Problem) bool { return other.Queue == p.Queue && other.Reason == p.Reason })
	if i < 0 {
		return append(all, p)
	}
	count, first := all[i].Count+p.Count, all[i].First
	if p.First.Before(first) {
		first = p.First
	}
	if p.Last.After(all[i].Last) {
		all[i] = p
	}
	all[i].Count, all[i].First = count, first
	return all
}

func (v *visit) queueRows() []queueRow { return v.queueRowsOf(&v.Status) }

func (v *visit) queueRowsOf(st *api.Status) []queueRow {
	live := map[string]int64{}
	for _, q := range st.Queues {
		live[q.Name] = q.Ledger.Live
	}

	dead, curves := api.DeadLetterQueues(st.Queues), v.site.curves.read(v)
	rows := make([]queueRow, len(st.Queues))
	for i, q := range st.Queues {
		traffic := curves[q.Name]
		rows[i] = queueRow{Queue: q, Dead: dead[q.Name], DeadLetters: live[q.DeadLetterQueue], Traffic: traffic,
			Spark: sparklineOf(traffic)}
		rows[i].setState(st.Workers)
	}

	slices.SortStableFunc(rows, func(a, b queueRow) int { return cmp.Compare(a.rank(), b.rank()) })
	return rows
}

// The rows of source queues include the counts of their dead-letter queues.
func withoutDead(rows []queueRow) []queueRow {
	return slices.DeleteFunc(slices.Clone(rows), func(q queueRow) bool { return q.Dead })
}

func (q *queueRow) setState(workers []api.Worker) {
	q.State = "Not receiving"
	for i := range workers {
		if w := &workers[i]; w.Queue == q.Name {
			q.Worker = w
			q.FailingShare = w.FailingShare()
			q.State, q.Reason = w.State, w.Why
		}
	}
	if q.Dead {
		q.State = "Dead letters"
	}
	if problem := q.Problem(); problem != "" {
		q.Reason = strings.TrimPrefix(q.Reason+"; "+problem, "; ")
	}
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
