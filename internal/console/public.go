package console

import (
	"slices"
	"strings"

	"tendril/internal/observe/health"
)

// withheld stands in the place of a text that only a caller with the token sees.
const withheld = "send the console's token"

// publisher is an answer that shows less to callers without the token. What an
// app, a hook or a server elsewhere said may hold secrets and personal data;
// states, counts and times do not.
type publisher interface{ public() any }

// withhold hides a text, unless there is none.
func withhold(text *string) {
	if *text != "" {
		*text = withheld
	}
}

func (st Status) public() any {
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
		tasks := st.Tasks.public().(TasksStatus)
		st.Tasks = &tasks
	}
	st.Workers = slices.Clone(st.Workers)
	for i := range st.Workers {
		withhold(&st.Workers[i].LastError)
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

// publicHealth leaves out of each cause why it is so, which follows its first sentence: that part may be what
// a hook, a command or a server said.
func publicHealth(r health.Report) health.Report {
	r.Causes, r.Details = slices.Clone(r.Causes), slices.Clone(r.Details)
	for i := range r.Causes {
		r.Causes[i] = firstSentence(r.Causes[i])
	}
	for i := range r.Details {
		r.Details[i].Text = firstSentence(r.Details[i].Text)
	}
	return r
}

func firstSentence(text string) string {
	if first, _, more := strings.Cut(text, ". "); more {
		return first + "."
	}
	return text
}

// healthReport is the answer of /api/v1/health.
type healthReport struct{ health.Report }

func (h healthReport) public() any { return publicHealth(h.Report) }

// public names the fields that are shown, so that one that is new is not.
func (d Delivery) public() any {
	shown := Delivery{
		MessageID: d.MessageID, Queue: d.Queue, Outcome: d.Outcome, Status: d.Status, Reason: d.Reason,
		Attempt: d.Attempt, ReceiveCount: d.ReceiveCount, DurationMS: d.DurationMS, WaitMS: d.WaitMS, At: d.At,
		RetryAt: d.RetryAt, DeadLetterQueue: d.DeadLetterQueue,
	}
	withhold(&shown.Reason)
	return shown
}

func (l deliveryList) public() any {
	l.Deliveries = slices.Clone(l.Deliveries)
	for i := range l.Deliveries {
		l.Deliveries[i] = l.Deliveries[i].public().(Delivery)
	}
	return l
}

func (st TasksStatus) public() any {
	withhold(&st.Leader.Error)
	st.Leader.Console = ""
	st.Tasks = slices.Clone(st.Tasks)
	for i := range st.Tasks {
		t := &st.Tasks[i]
		t.URL, _, _ = strings.Cut(t.URL, "?") // a query may hold a secret
		withhold(&t.LastFailure)
		if t.Last != nil {
			last := *t.Last
			withhold(&last.Reason)
			t.Last = &last
		}
	}
	return st
}

func (l runList) public() any {
	l.Runs = slices.Clone(l.Runs)
	for i := range l.Runs {
		withhold(&l.Runs[i].Reason)
	}
	return l
}
