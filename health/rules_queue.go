package health

import (
	"cmp"
	"time"
)

func ageRule(in *Inputs, _ time.Time) []finding {
	q := in.Queue
	if !q.Known || q.Oldest <= 0 {
		return nil
	}
	late := cmp.Or(q.Late, recent)
	status := reach(float64(q.Oldest), level{float64(late), Warning}, level{6 * float64(late), Degraded})
	if q.Retention > 0 && q.Oldest >= q.Retention*8/10 {
		return at(Severe, "The oldest message has waited for %s, and is deleted after %s.", ago(q.Oldest), ago(q.Retention))
	}
	return at(status, "The oldest message has waited for %s.", ago(q.Oldest))
}

func backlogRule(in *Inputs, now time.Time) []finding {
	q := in.Queue
	if !q.Known || q.Backlog == 0 {
		return nil
	}
	status := Ok // a fact worth a line, but no matter of health
	if q.Oldest >= cmp.Or(q.Late, recent)/5 {
		status = Info
	}
	return at(status, "%s waiting in the queue%s.", count(q.Backlog, "message"), in.read(now))
}

func deadLetterRule(in *Inputs, now time.Time) []finding {
	q := in.Queue
	if !q.Known || q.DeadLetters == 0 {
		return nil
	}
	if q.NewDeadLetters > 0 {
		return fact(Warning, "%s in the dead-letter queue, %d of them from the last 5 minutes%s.",
			count(q.DeadLetters, "message"), q.NewDeadLetters, in.read(now))
	}
	return fact(Info, "%s in the dead-letter queue%s.", count(q.DeadLetters, "message"), in.read(now))
}

// expiredRule holds for what this instance itself deleted, also while the figures
// of the queue are not known.
func expiredRule(in *Inputs, _ time.Time) []finding {
	if in.Queue.Expired == 0 {
		return nil
	}
	return fact(Warning, "%s deleted in the last 5 minutes because the retention period was over.",
		count(in.Queue.Expired, "message"))
}

// read says when the figures of the queue are from.
func (in *Inputs) read(now time.Time) string {
	if in.Queue.Taken.IsZero() {
		return ""
	}
	return " (" + ago(now.Sub(in.Queue.Taken)) + " ago)"
}

func storeRule(in *Inputs, _ time.Time) []finding {
	if in.Queue.Failed == "" {
		return nil
	}
	return fact(Severe, "The queue accepts no messages.%s", because(in.Queue.Failed))
}

func pollRule(in *Inputs, now time.Time) []finding {
	p := in.Poll
	if p.FailingSince.IsZero() {
		return nil
	}
	failing := now.Sub(p.FailingSince)
	if p.Refused {
		return fact(Severe, "The queue refuses to be read, for %s.%s", ago(failing), because(p.Error))
	}
	status := reach(failing.Seconds(), level{30, Warning}, level{120, Degraded}, level{300, Severe})
	return at(status, "The queue has not answered for %s.%s", ago(failing), because(p.Error))
}

func leaderRule(in *Inputs, now time.Time) []finding {
	l := in.Leader
	if l.Tasks == 0 || l.Unknown.IsZero() {
		return nil
	}
	without := now.Sub(l.Unknown)
	status := reach(without.Seconds(), level{60, Warning}, level{600, Degraded})
	return at(status, "For %s no instance is known to be in charge of %s.%s", ago(without),
		count(int64(l.Tasks), "periodic task"), because(l.Error))
}
