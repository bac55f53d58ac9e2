package broker

import (
	"strconv"
	"strings"
	"time"

	"tendril/queue"
)

// A message that is not to be visible before a time counts as sent at that time: its sent time is the end of its delay,
// and so its age and its retention begin there. By that the row says that it is scheduled. Such rows are not in the
// order in which they count as sent, so what relies on that order passes over them.

// scheduled reports whether a row is that of a message sent to be visible at a time.
func scheduled(sent, due int64) bool { return due != 0 && due == sent }

// maxAhead is how far ahead a message may be scheduled: far less than what a timer can count.
const maxAhead = 100 * 365 * 24 * time.Hour

// notBefore returns when a message is to be visible, in Unix milliseconds: by its field, or else by its attribute; 0
// for neither.
func (s *settings) notBefore(m *queue.Outgoing) (int64, error) {
	at, text := m.NotBefore, ""
	for i := range m.Attributes {
		if a := &m.Attributes[i]; a.Name == queue.AttributeNotBefore && at.IsZero() {
			text = a.Value
			seconds, err := strconv.ParseInt(a.Value, 10, 64)
			if at = time.Unix(seconds, 0); !strings.HasPrefix(a.Type, "Number") {
				at, err = time.Parse(time.RFC3339, a.Value)
			}
			if err != nil || !a.IsText() {
				return 0, errParameter(a.Name, a.Value, "It must be a String such as 2026-12-24T18:00:00Z, or a Number of seconds "+
					"since 1970.")
			}
		}
	}

	switch {
	case at.IsZero():
		return 0, nil
	case text == "":
		text = at.UTC().Format(time.RFC3339)
	}

	switch {
	case s.fifo:
		return 0, errParameter(queue.AttributeNotBefore, text, notForThisType)
	case time.Until(at) > maxAhead:
		return 0, errParameter(queue.AttributeNotBefore, text, "It must be within 100 years.")
	}
	return max(1, at.UnixMilli()), nil
}

// longGrid is the precision, in milliseconds, of delays that are longer than SQS has them: memory counts the messages
// of each instant.
const longGrid = 1000

// visibleAt returns the end of the delay of a message that is to be visible at a time, in Unix milliseconds on the
// broker's clock, which reads now. Where that is as good as the wall clock, whole seconds stay what they are.
func (s *sending) visibleAt(notBefore, now int64) int64 {
	ahead := now - s.at
	if -delayGrid <= ahead && ahead <= delayGrid {
		ahead = 0
	}
	if notBefore-s.at <= maxDelay.Milliseconds() {
		return gridUp(notBefore + ahead)
	}
	return (notBefore + ahead + longGrid - 1) / longGrid * longGrid
}
