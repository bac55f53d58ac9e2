package health

import "time"

func ageRule(in *Inputs) []finding {
	q := in.Queue
	if !q.Known || q.Oldest <= 0 {
		return nil
	}
	if q.Retention > 0 && q.Oldest >= q.Retention*8/10 {
		return measured(Severe, "The oldest message has waited for %s, and is deleted after %s.", ago(q.Oldest),
			ago(q.Retention))
	}
	return measured(reach(q.Oldest.Minutes(), level{5, Warning}, level{30, Degraded}),
		"The oldest message has waited for %s.", ago(q.Oldest))
}

func backlogRule(in *Inputs) []finding {
	q := in.Queue
	if !q.Known || q.Backlog == 0 {
		return nil
	}
	status := Ok // worth mentioning, but not a matter of health
	if q.Oldest >= time.Minute {
		status = Info
	}
	return measured(status, "%s waiting in the queue%s.", count(q.Backlog, "message"), in.queueAge())
}

func deadLetterRule(in *Inputs) []finding {
	q := in.Queue
	if !q.Known || q.DeadLetters == 0 {
		return nil
	}
	if q.NewDeadLetters > 0 {
		return certain(Warning, "%s in the dead-letter queue, %d of them from the last 5 minutes%s.",
			count(q.DeadLetters, "message"), q.NewDeadLetters, in.queueAge())
	}
	return certain(Info, "%s in the dead-letter queue%s.", count(q.DeadLetters, "message"), in.queueAge())
}

// queueAge says when the figures of the queue are from.
func (in *Inputs) queueAge() string {
	if in.Queue.Taken.IsZero() {
		return ""
	}
	return " (" + ago(in.Now.Sub(in.Queue.Taken)) + " ago)"
}

// expiredRule holds for what this instance itself deleted, also while the figures
// of the queue are not known.
func expiredRule(in *Inputs) []finding {
	if in.Queue.Expired == 0 {
		return nil
	}
	return certain(Warning, "%s deleted in the last 5 minutes because the retention period was over.",
		count(in.Queue.Expired, "message"))
}

func storeRule(in *Inputs) []finding {
	if in.Queue.Failed == "" {
		return nil
	}
	return certain(Severe, "The queue accepts no messages.%s", because(in.Queue.Failed))
}

func pollRule(in *Inputs) []finding {
	p := in.Poll
	if p.FailingSince.IsZero() {
		return nil
	}
	failing := in.Now.Sub(p.FailingSince)
	if p.Refused {
		return certain(Severe, "The queue refuses to be read, for %s.%s", ago(failing), because(p.Error))
	}
	return measured(reach(failing.Seconds(), level{30, Warning}, level{120, Degraded}, level{300, Severe}),
		"The queue has not answered for %s.%s", ago(failing), because(p.Error))
}

func leaderRule(in *Inputs) []finding {
	l := in.Leader
	if l.Tasks == 0 || l.Unknown.IsZero() {
		return nil
	}
	without := in.Now.Sub(l.Unknown)
	return measured(reach(without.Seconds(), level{60, Warning}, level{600, Degraded}),
		"For %s no instance is known to be in charge of %s.%s", ago(without), count(int64(l.Tasks), "periodic task"),
		because(l.Error))
}
