package deliver

import (
	"slices"
	"strings"
	"time"

	"tendril/queue"
)

// In this response header or trailer, the app tells tendril how to handle its message:
//
//	Tendril-Outcome: retry; after=90s; reason="the printer is busy"
//	Tendril-Outcome: drop; reason="no such order any more"
//	Tendril-Outcome: dead-letter; reason="not a picture"
//	Tendril-Outcome: extend; for=30m
//
// extend must be in an informational response (1xx) or the headers of a success. Invalid headers are ignored and
// reported.
const outcomeHeader = "Tendril-Outcome"

type verb uint8

const (
	verbNone verb = iota
	verbRetry
	verbDrop
	verbDeadLetter
	verbExtend
)

type instruction struct {
	verb   verb
	timed  bool
	time   time.Duration // of the after or for parameter
	reason string
}

// The problems of a header do not quote it, so that their number is limited.
const (
	problemTwice       = "given more than once"
	problemWord        = "does not start with retry, drop, dead-letter or extend"
	problemForm        = `is not of the form retry; after=90s; reason="text"`
	problemName        = "has a parameter that is repeated or not allowed with its first word"
	problemTime        = "has a time outside of 0 to 12 hours: use one such as 90s"
	problemExtend      = "extend needs for= with 1 second to 12 hours, such as for=30m"
	problemEarly       = "an informational response allows only extend"
	problemTooLate     = "extend is not allowed in a failure or in a trailer"
	maxInstructionTime = queue.MaxVisibility
)

// parseInstruction returns an instruction, or the reason to ignore the header.
func parseInstruction(values []string) (s instruction, problem string) {
	if len(values) != 1 {
		return instruction{}, problemTwice
	}
	word, rest, more := strings.Cut(values[0], ";")
	verb, allowed := parseVerb(strings.TrimSpace(word))
	if verb == verbNone {
		return instruction{}, problemWord
	}

	s.verb = verb
	for more {
		p, ok := cutParameter(rest)
		if !ok {
			return instruction{}, problemForm
		}
		at := slices.Index(allowed, p.name)
		if at < 0 {
			return instruction{}, problemName
		}
		allowed = slices.Delete(allowed, at, at+1)
		if !s.set(p) {
			return instruction{}, problemTime
		}
		rest, more = p.rest, p.more
	}

	if s.verb == verbExtend && s.time < time.Second {
		return instruction{}, problemExtend
	}
	return s, ""
}

func parseVerb(word string) (verb, []string) {
	switch word {
	case "retry":
		return verbRetry, []string{"after", "reason"}
	case "drop":
		return verbDrop, []string{"reason"}
	case "dead-letter":
		return verbDeadLetter, []string{"reason"}
	case "extend":
		return verbExtend, []string{"for"}
	}
	return verbNone, nil
}

func (s *instruction) set(p parameter) (ok bool) {
	if p.name == "reason" {
		s.reason = printable(p.value)
		return true
	}
	s.timed = true
	s.time, ok = parseInstructionTime(p.value)
	return ok
}

type parameter struct {
	name, value string
	rest        string
	more        bool
}

func cutParameter(text string) (p parameter, ok bool) {
	name, text, found := strings.Cut(strings.TrimLeft(text, " \t"), "=")
	if !found || name != "after" && name != "reason" && name != "for" {
		return parameter{}, false
	}
	p.name = name
	if !strings.HasPrefix(text, `"`) {
		p.value, p.rest, p.more = strings.Cut(text, ";")
		p.value = strings.TrimRight(p.value, " \t")
		return p, p.value != "" && !strings.ContainsAny(p.value, " \t\"\\,=")
	}

	value, after, closed := cutQuoted(text)
	after = strings.TrimLeft(after, " \t")
	p.value = value
	p.rest, p.more = strings.CutPrefix(after, ";")
	return p, closed && (p.more || after == "")
}

func cutQuoted(text string) (value, after string, closed bool) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case c == '"':
			return b.String(), text[i+1:], true
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

func parseInstructionTime(text string) (time.Duration, bool) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return 0, false
	}
	if strings.Trim(text, "0123456789") == "" {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0 && d <= maxInstructionTime
}

type headerPlace uint8

const (
	inInformational headerPlace = iota
	inSuccess
	inFailure
	inTrailer
)

// applyOutcome carries out an extend instruction, and returns any other. It records the problem of a header that must
// be ignored.
func (c *conn) applyOutcome(values []string, place headerPlace) instruction {
	s, problem := parseInstruction(values)
	switch {
	case problem != "":
	case s.verb != verbExtend && place == inInformational:
		problem = problemEarly
	case s.verb == verbExtend && (place == inFailure || place == inTrailer):
		problem = problemTooLate
	}
	if problem != "" {
		c.problem = problem
		return instruction{}
	}

	if s.verb == verbExtend {
		c.idle = s.time
		c.extended = true
		c.restartTimeout = true
		return instruction{}
	}
	return s
}

func (s *instruction) result(status string, result queue.Result) queue.Result {
	if s.reason != "" {
		result.Answer, result.Excerpt = s.reason, ""
	}

	switch s.verb {
	case verbDrop:
		result.Outcome = queue.Done
		result.Instruction = queue.Drop
		result.Reason = status + " (app says drop)"
	case verbDeadLetter:
		result.Outcome = queue.Failed
		result.Instruction = queue.DeadLetterNow
		result.Reason = status + " (app says dead-letter)"
	case verbRetry:
		result.Outcome = queue.Failed
		result.Reason = status + " (app says retry)"
		if s.timed {
			result.Instruction = queue.Retry
			result.RetryAfter = s.time
			result.Reason = status + " (app says retry in " + s.time.String() + ")"
		}
	}

	return result
}
