package main

import (
	"fmt"
	"strings"
	"time"

	"tendril/console"
)

// stateLines are what else is to say of the environment as a whole: its health,
// its newest deployment, and messages that end the app.
func stateLines(st *console.Status) (lines []string) {
	if st.Health != nil {
		lines = append(lines, "health: "+reportText(st.Health))
	}
	if st.Deployment != nil {
		lines = append(lines, "deployment: "+deploymentText(st.Deployment))
	}
	if st.PoisonMessages != nil {
		lines = append(lines, poisonText(*st.PoisonMessages))
	}
	return lines
}

// breakerLines say which queues stand still since what they deliver to fails, and
// which are received from for a trial.
func breakerLines(st *console.Status) (lines []string) {
	for _, l := range st.Limits {
		if l.Breaker != "open" {
			continue
		}
		var still, trying []string
		for _, w := range st.Workers {
			switch {
			case w.Target != l.Target:
			case w.Receiving:
				trying = append(trying, w.Queue)
			default:
				still = append(still, w.Queue)
			}
		}
		trial := "the next message is a trial"
		if left := time.Until(l.TrialAt); left > 0 {
			trial = "next trial in " + age(left+time.Second)
		}
		switch {
		case len(still) > 0:
			lines = append(lines, "NOT receiving from "+strings.Join(still, ", ")+": the breaker is open, "+trial)
		case len(trying) == 0:
			lines = append(lines, "NOT delivering to "+plain(l.Target, false)+": the breaker is open, "+trial)
		}
		if len(trying) > 0 {
			lines = append(lines, "receiving from "+strings.Join(trying, ", ")+" for a trial: the breaker is open")
		}
	}
	return lines
}

// deploymentText says what a deployment is at, or how it ended.
func deploymentText(d *console.Deployment) string {
	to := plain(d.To, false)
	switch {
	case d.State == console.DeployDone:
		return to + ", " + since(d.Ended) + " ago"
	case d.State == console.DeployRolledBack:
		return to + " was rolled back " + since(d.Ended) + " ago: " + plain(d.Error, false)
	case d.Over():
		return to + " has the messages, and failed " + since(d.Ended) + " ago: " + plain(d.Error, false)
	}
	return stepText(d) + ", for " + since(d.Since)
}

func poisonText(i console.PoisonMessages) string {
	if i.Broken {
		return "every message crashes the app: the app itself is broken"
	}
	return fmt.Sprintf("messages that may crash the app: %d in quarantine, %d known as poison messages",
		i.Quarantined, i.Poison)
}

// paceText says how a queue fares among others and under its limits; "" when
// there is nothing to say.
func paceText(w *console.Worker) string {
	var words []string
	if w.LimitedBy != "" {
		words = append(words, "held back by "+limitName(w.LimitedBy))
	}
	if w.TurnShare > 0 && w.TurnShare < 1 {
		words = append(words, fmt.Sprintf("%.0f%% of the deliveries of the last minute", 100*w.TurnShare))
	}
	if w.OldestSeconds >= 1 {
		words = append(words, "oldest in hand "+seconds(w.OldestSeconds))
	}
	if w.LongestWaitSeconds >= 1 {
		words = append(words, "waited at most "+seconds(w.LongestWaitSeconds)+" in the last minute")
	}
	return strings.Join(words, ", ")
}

// limitName names what keeps messages back, as far as the worker knows.
func limitName(reason string) string {
	switch reason {
	case "limit":
		return "the limits"
	case "breaker":
		return "the breaker"
	}
	return "the limit of " + plain(reason, false)
}

// limitText says how a target is protected, and what it takes now.
func limitText(l *console.Limit) string {
	words := []string{fmt.Sprintf("%d in work", l.InWork)}
	if l.Concurrency > 0 {
		words[0] = fmt.Sprintf("%d of %d in work", l.InWork, l.Concurrency)
	}
	if l.Rate > 0 {
		words = append(words, fmt.Sprintf("%g/s at most", l.Rate))
	}
	if l.Breaker != "" {
		breaker := "breaker " + l.Breaker
		if left := time.Until(l.TrialAt); !l.TrialAt.IsZero() && left > 0 {
			breaker += ", next trial in " + age(left+time.Second)
		}
		words = append(words, breaker)
	}
	if l.Failing > 0 {
		words = append(words, fmt.Sprintf("%.0f%% failing", 100*l.Failing))
	}
	if l.Refused > 0 {
		words = append(words, fmt.Sprintf("kept back %d times", l.Refused))
	}
	return plain(l.Target, false) + "\n        " + strings.Join(words, ", ")
}

// scalingText says what size is wanted, within which bounds, and what changed it
// last.
func scalingText(s *console.Scaling) string {
	what := "processes on this machine"
	switch group, ok := strings.CutPrefix(s.Target, "asg:"); {
	case ok:
		what = "the group " + plain(group, false)
	case s.Target == "publish":
		what = "instances, by figures that are published"
	}
	wanted := "no decision yet"
	if s.Desired > 0 {
		wanted = fmt.Sprintf("%d wanted", s.Desired)
	}
	text := fmt.Sprintf("%s: %s (%d to %d), %d ready", what, wanted, s.MinSize, s.MaxSize, s.Ready)
	if !s.IsLeader {
		text += ", another instance is in charge"
	}
	for _, d := range s.Decisions {
		if d.From != d.Desired && d.Applied {
			text += fmt.Sprintf("\n        last change %s ago, from %d to %d: %s", since(d.At), d.From, d.Desired,
				plain(d.Why, false))
			break
		}
	}
	if s.Problem != "" {
		text += "\n        PROBLEM: " + plain(s.Problem, false)
	}
	return text
}

// seconds is a time in seconds for people.
func seconds(s float64) string { return age(time.Duration(s * float64(time.Second))) }
