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
		a.Deliveries = slices.Clone(a.Deliveries)
		for i := range a.Deliveries {
			a.Deliveries[i] = publicDelivery(a.Deliveries[i])
		}
		return a
	case api.TasksStatus:
		return publicTasks(a)
	case api.RunList:
		a.Runs = slices.Clone(a.Runs)
		for i := range a.Runs {
			withhold(&a.Runs[i].Reason)
		}
		return a
	}
	return answer
}

func withhold(text *string) {
	if *text != "" {
		*text = withheld
	}
}

func publicStatus(st api.Status) api.Status {
	st.Version = ""
	if st.Health != nil {
		h := publicHealth(*st.Health)
		st.Health = &h
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
		s.Decisions = slices.Clone(s.Decisions)
		for i := range s.Decisions {
			withhold(&s.Decisions[i].NotApplied)
		}
		st.Scaling = &s
	}

	if st.Tasks != nil {
		tasks := publicTasks(*st.Tasks)
		st.Tasks = &tasks
	}

	st.Workers = slices.Clone(st.Workers)
	for i := range st.Workers {
		withhold(&st.Workers[i].LastError)
		withholdError(&st.Workers[i].Progress)
	}
	st.Queues = slices.Clone(st.Queues)
	for i := range st.Queues {
		withholdError(&st.Queues[i].Progress)
	}

	st.App = slices.Clone(st.App)
	for i := range st.App {
		withhold(&st.App[i].NotReady)
	}

	st.Problems = slices.Clone(st.Problems)
	for i := range st.Problems {
		withhold(&st.Problems[i].Reason)
	}

	return st
}

func withholdError(p *api.Progress) {
	if p.State == api.QueueFailing {
		withhold(&p.Why)
	}
}

// publicHealth keeps only the first sentence of each cause, because the rest may quote a hook, a command or a server.
func publicHealth(r health.Report) health.Report {
	r.Causes, r.Details = slices.Clone(r.Causes), slices.Clone(r.Details)
	for i := range r.Causes {
		r.Causes[i] = firstSentence(r.Causes[i])
	}
	for i := range r.Details {
		r.Details[i].Text = firstSentence(r.Details[i].Text)
	}
	if r.Environment != nil {
		e := *r.Environment
		e.Causes = slices.Clone(e.Causes)
		for i := range e.Causes {
			cause := &e.Causes[i]
			cause.Text = firstSentence(cause.Text)
			cause.Instances = nil
			cause.FiguresOf = ""
		}
		r.Environment = &e
	}
	return r
}

func firstSentence(text string) string {
	if first, _, more := strings.Cut(text, ". "); more {
		return first + "."
	}
	return text
}

func publicDelivery(d api.Delivery) api.Delivery {
	d.Answer = ""
	withhold(&d.Reason)
	return d
}

func publicTasks(st api.TasksStatus) api.TasksStatus {
	withhold(&st.Leader.Error)
	st.Leader.Console = ""
	st.Tasks = slices.Clone(st.Tasks)
	for i := range st.Tasks {
		t := &st.Tasks[i]
		t.URL, _, _ = strings.Cut(t.URL, "?") // may contain a secret
		withhold(&t.LastFailure)
		if t.Last != nil {
			last := *t.Last
			withhold(&last.Reason)
			t.Last = &last
		}
	}
	return st
}
