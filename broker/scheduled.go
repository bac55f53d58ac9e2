package broker

import (
	"strconv"
	"strings"
	"time"

	"tendril/queue"
)

// scheduled reports whether a message counts as sent when it becomes visible. Such rows are not in order of sent
// time.
func scheduled(sent, due int64) bool { return due != 0 && due == sent }

const maxAhead = 100 * 365 * 24 * time.Hour

// notBefore returns Unix milliseconds, or 0 if not scheduled. The NotBefore field takes precedence over the
// attribute.
func (s *settings) notBefore(m *queue.Outgoing) (int64, error) {
	if at := m.NotBefore; !at.IsZero() {
		return s.checkNotBefore(at, at.UTC().Format(time.RFC3339))
	}
	for i := range m.Attributes {
		if a := &m.Attributes[i]; a.Name == queue.AttributeNotBefore {
			at, err := parseNotBefore(a)
			if err != nil || at.IsZero() {
				return 0, err
			}
			return s.checkNotBefore(at, a.Value)
		}
	}
	return 0, nil
}

func parseNotBefore(a *queue.Attribute) (at time.Time, err error) {
	if strings.HasPrefix(a.Type, "Number") {
		var seconds int64
		seconds, err = strconv.ParseInt(a.Value, 10, 64)
		at = time.Unix(seconds, 0)
	} else {
		at, err = time.Parse(time.RFC3339, a.Value)
	}
	if err != nil || !a.IsText() {
		return time.Time{}, errParameter(a.Name, a.Value,
			"It must be a String such as 2026-12-24T18:00:00Z, or a Number of seconds since 1970.")
	}
	return at, nil
}

func (s *settings) checkNotBefore(at time.Time, text string) (int64, error) {
	switch {
	case s.fifo:
		return 0, errParameter(queue.AttributeNotBefore, text, notForThisType)
	case time.Until(at) > maxAhead:
		return 0, errParameter(queue.AttributeNotBefore, text, "It must be within 100 years.")
	}
	return max(1, at.UnixMilli()), nil
}

// Delays beyond the SQS maximum are rounded up to longGrid milliseconds.
const longGrid = 1000

// visibleAt converts to Unix milliseconds on the broker's clock, whose reading is now. If that clock agrees with the
// wall clock, whole seconds stay whole.
func (s *sending) visibleAt(notBefore, now int64) int64 {
	ahead := now - s.at
	if -delayGrid <= ahead && ahead <= delayGrid {
		ahead = 0
	}
	if notBefore-s.at <= maxDelay.Milliseconds() {
		return roundUp(notBefore+ahead, delayGrid)
	}
	return roundUp(notBefore+ahead, longGrid)
}
