package worker

import (
	"cmp"
	"time"

	"tendril/queue"
)

// The visibility timeouts started at began.
func (s *settler) accept(msgs []queue.Message, filtered []bool, visibility time.Duration, began, now time.Time) {
	for i := range msgs {
		if m := &msgs[i]; s.messages.held[m.ID] != nil {
			s.receivedAgain(s.messages.held[m.ID], m, visibility, began, now)
		} else {
			s.acceptNew(m, filtered != nil && filtered[i], visibility, began, now)
		}
	}
}

func (s *settler) acceptNew(m *queue.Message, filtered bool, visibility time.Duration, began, now time.Time) {
	h := &held{msg: *m}
	h.received(m, began, now, visibility)
	s.messages.hold(h)

	skipped := s.messages.unposted.values[keyInQueue(m.ID, h.receives, h.receivesHere)]
	h.attempt = max(cmp.Or(h.receivesHere, m.ReceiveCount)-skipped, 1)
	h.msg.Attempt = h.attempt
	s.pace.body = average(s.pace.body, float64(len(m.Body)))

	if !s.mustDeliver(h, m, filtered, now) {
		s.deletes.remove(h, now)
		return
	}
	if h.attempt > 1 {
		s.messages.groupFailed(h, now)
	}
	if s.messages.joinGroup(h) {
		s.messages.makeReady(h, now)
	}
}

// mustDeliver returns false for a message to delete at once, which it counts and reports: it is done, filtered or
// expired.
func (s *settler) mustDeliver(h *held, m *queue.Message, filtered bool, now time.Time) bool {
	switch _, isDone := s.messages.done.values[m.ID]; {
	case isDone:
		s.duplicate(m, "done")
	case filtered:
		s.core.counts.Filtered++
		notify(s.core, s.core.events.Filtered, Filtered{ID: m.ID, Task: m.Attribute(queue.AttributeTask), ReceiveCount: m.ReceiveCount})
	case expired(&s.core.opts, m, now):
		h.isExpired = true
		s.core.counts.Expired++
		notify(s.core, s.core.events.Expired, Expired{ID: m.ID, Task: m.Attribute(queue.AttributeTask), ReceiveCount: m.ReceiveCount,
			FirstReceivedAt: m.FirstReceivedAt})
	default:
		return true
	}
	return false
}

func (s *settler) receivedAgain(h *held, m *queue.Message, visibility time.Duration, began, now time.Time) {
	s.duplicate(m, h.stage.String())
	s.messages.countUnposted(h, true)
	h.received(m, began, now, visibility)
	if h.stage == deleting {
		s.deletes.queueDelete(h, now)
	}
}

func (s *settler) duplicate(m *queue.Message, stage string) {
	s.core.counts.Duplicates++
	notify(s.core, s.core.events.Duplicate, Duplicate{ID: m.ID, Task: m.Attribute(queue.AttributeTask), Stage: stage})
}
