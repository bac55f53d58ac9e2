package deliver

import (
	"strings"
	"time"

	"tendril/queue"
)

// outcomeHeader is a response header or trailer in which the app instructs tendril how to handle its message:
//
//	Tendril-Outcome: retry; after=90s; reason="the printer is busy"
//	Tendril-Outcome: drop; reason="no such order any more"
//	Tendril-Outcome: dead-letter; reason="not a picture"
//	Tendril-Outcome: extend; for=30m
//
// extend is sent in an informational response (1xx), or in the headers of a success response. Invalid headers are
// ignored and reported.
const outcomeHeader = "Tendril-Outcome"

type wish uint8

const (
	wishNothing wish = iota
	wishRetry
	wishDrop
	wishDeadLetter
	wishExtend
)

type steering struct {
	wish   wish
	timed  bool
	time   time.Duration // of the after or for parameter
	reason string        // printable, truncated
}

// Problems do not quote the header, so that there are only a few.
const (
	problemTwice    = "given more than once"
	problemWord     = "does not start with retry, drop, dead-letter or extend"
	problemForm     = `is not of the form retry; after=90s; reason="text"`
	problemName     = "has a parameter that is repeated or not allowed with its first word"
	problemTime     = "has a time outside of 0 to 12 hours: use one such as 90s"
	problemExtend   = "extend needs for= with 1 second to 12 hours, such as for=30m"
	problemEarly    = "an informational answer allows only extend"
	problemTooLate  = "extend is not allowed in a failure or in a trailer"
	maxSteeringTime = queue.MaxVisibility
)

// readSteering parses the header, which must be ignored if there is a problem.
func readSteering(values []string) (s steering, problem string) {
	if len(values) != 1 {
		return s, problemTwice
	}
	word, rest, more := strings.Cut(values[0], ";")
	var allowed string
	switch strings.TrimSpace(word) {
	case "retry":
		s.wish, allowed = wishRetry, "after reason"
	case "drop":
		s.wish, allowed = wishDrop, "reason"
	case "dead-letter":
		s.wish, allowed = wishDeadLetter, "reason"
	case "extend":
		s.wish, allowed = wishExtend, "for"
	default:
		return s, problemWord
	}

	for more {
		var name, value string
		if name, value, rest, more, problem = nextParameter(rest); problem != "" {
			return steering{}, problem
		}
		if !strings.Contains(allowed, name) {
			return steering{}, problemName
		}
		allowed = strings.Replace(allowed, name, "", 1)
		if name == "reason" {
			s.reason = printable(value)
			continue
		}
		var ok bool
		if s.time, ok = steeringTime(value); !ok {
			return steering{}, problemTime
		}
		s.timed = true
	}

	if s.wish == wishExtend && s.time < time.Second {
		return steering{}, problemExtend
	}
	return s, ""
}

func nextParameter(text string) (name, value, rest string, more bool, problem string) {
	name, text, found := strings.Cut(strings.TrimLeft(text, " \t"), "=")
	if !found || name != "after" && name != "reason" && name != "for" {
		return "", "", "", false, problemForm
	}
	if !strings.HasPrefix(text, `"`) {
		value, rest, more = strings.Cut(text, ";")
		if value = strings.TrimRight(value, " \t"); value == "" || strings.ContainsAny(value, " \t\"\\,=") {
			return "", "", "", false, problemForm
		}
		return name, value, rest, more, ""
	}

	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case c == '"':
			after := strings.TrimLeft(text[i+1:], " \t")
			if rest, more = strings.CutPrefix(after, ";"); !more && after != "" {
				return "", "", "", false, problemForm
			}
			return name, b.String(), rest, more, ""
		default:
			b.WriteByte(c)
		}
	}
	return "", "", "", false, problemForm
}

func steeringTime(text string) (time.Duration, bool) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return 0, false
	}
	if strings.Trim(text, "0123456789") == "" {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0 && d <= maxSteeringTime
}

func (c *conn) applyOutcome(values []string, final, success bool) steering {
	s, problem := readSteering(values)
	switch {
	case problem != "":
	case s.wish != wishExtend && !final:
		problem = problemEarly
	case s.wish == wishExtend && final && !success:
		problem = problemTooLate
	case s.wish == wishExtend:
		c.idle = s.time
		c.extended = true
		c.resting = true
		return steering{}
	}

	if problem != "" {
		c.problem = problem
		return steering{}
	}

	return s
}

func (s *steering) result(status string, result queue.Result) queue.Result {
	if s.reason != "" {
		result.Answer, result.Excerpt = s.reason, ""
	}

	switch s.wish {
	case wishDrop:
		result.Outcome, result.Instruction = queue.Done, queue.Drop
		result.Reason = status + " (app says drop)"
	case wishDeadLetter:
		result.Outcome, result.Instruction = queue.Failed, queue.DeadLetterNow
		result.Reason = status + " (app says dead-letter)"
	case wishRetry:
		result.Outcome, result.Reason = queue.Failed, status+" (app says retry)"
		if s.timed {
			result.Instruction, result.RetryAfter = queue.Retry, s.time
			result.Reason = status + " (app says retry in " + s.time.String() + ")"
		}
	}

	return result
}
