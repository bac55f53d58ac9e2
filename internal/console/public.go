package console

import (
	"slices"
	"strings"

	"tendril/api"
	"tendril/internal/observe/health"
)

const withheld = "hidden: sign in, or send the console's token"

// withoutDetails removes text from the app, a hook or another server, which may contain secrets or personal data.
func withoutDetails(answer any) any {
	switch a := answer.(type) {
	case api.Status:
		return publicStatus(a)
	case health.Report:
		return publicHealth(a)
	case api.Delivery:
		return publicDelivery(a)
	case api.DeliveryList:
		a.Deliveries = edited(a.Deliveries, func(d *api.Delivery) { *d = publicDelivery(*d) })
		return a
	case api.TasksStatus:
		return publicTasks(a)
	case api.RunList:
		a.Runs = edited(a.Runs, func(r *api.TaskRun) { withhold(&r.Reason) })
		return a
	}
	return answer
}

// edited returns a copy, because the environment still uses the original.
func edited[T any](all []T, edit func(*T)) []T {
	all = slices.Clone(all)
	for i := range all {
		edit(&all[i])
	}
	return all
}

func withhold(text *string) {
	if *text != "" {
		*text = withheld
	}
}

func publicStatus(st api.Status) api.Status {
	st.Version = ""
	if st.Health != nil {
		st.Health = new(publicHealth(*st.Health))
	}

	if st.Deployment != nil {
		d := *st.Deployment
		withhold(&d.Error)
		withhold(&d.Step)
		st.Deployment = &d
	}

	if st.Scaling != nil {
		s := *st.Scaling
		withhold(&s.Problem)
		s.Decisions = edited(s.Decisions, func(d *api.ScaleDecision) { withhold(&d.NotApplied) })
		st.Scaling = &s
	}

	if st.Tasks != nil {
		st.Tasks = new(publicTasks(*st.Tasks))
	}

	st.Workers = edited(st.Workers, func(w *api.Worker) {
		withhold(&w.LastError)
		withholdError(&w.Progress)
	})
	st.Queues = edited(st.Queues, func(q *api.Queue) { withholdError(&q.Progress) })
	st.App = edited(st.App, func(p *api.Process) { withhold(&p.NotReady) })
	st.Problems = edited(st.Problems, func(p *api.Problem) { withhold(&p.Reason) })
	return st
}

func withholdError(p *api.Progress) {
	if p.State == api.QueueFailing {
		withhold(&p.Why)
	}
}

// publicHealth keeps only the first sentence of each cause, because the rest may quote a hook, a command or a server.
// It also removes the names of instances.
func publicHealth(r health.Report) health.Report {
	r.Causes = edited(r.Causes, keepFirstSentence)
	r.Details = edited(r.Details, func(c *health.Cause) { keepFirstSentence(&c.Text) })
	if r.Environment != nil {
		e := *r.Environment
		e.Causes = edited(e.Causes, func(c *health.SharedCause) {
			keepFirstSentence(&c.Text)
			c.Instances = nil
			c.FiguresOf = ""
		})
		r.Environment = &e
	}
	return r
}

func keepFirstSentence(text *string) {
	if first, _, more := strings.Cut(*text, ". "); more {
		*text = first + "."
	}
}

// publicDelivery copies listed fields, so that new fields are not published by accident.
func publicDelivery(d api.Delivery) api.Delivery {
	withhold(&d.Reason)
	return api.Delivery{
		MessageID: d.MessageID, Queue: d.Queue, Outcome: d.Outcome, Status: d.Status, Reason: d.Reason,
		Attempt: d.Attempt, ReceiveCount: d.ReceiveCount, DurationMS: d.DurationMS, WaitMS: d.WaitMS, At: d.At,
		RetryAt: d.RetryAt, DeadLetterQueue: d.DeadLetterQueue,
	}
}

func publicTasks(st api.TasksStatus) api.TasksStatus {
	withhold(&st.Leader.Error)
	st.Leader.Console = ""
	st.Tasks = edited(st.Tasks, func(t *api.Task) {
		t.URL, _, _ = strings.Cut(t.URL, "?") // may contain a secret
		withhold(&t.LastFailure)
		if t.Last != nil {
			t.Last = new(*t.Last)
			withhold(&t.Last.Reason)
		}
	})
	return st
}
