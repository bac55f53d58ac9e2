package worker

import (
	"cmp"
	"time"

	"tendril/queue"
)

func (s *settler) accept(msgs []queue.Message, filtered []bool, visibility time.Duration, hiddenSince, now time.Time) {
	for i := range msgs {
		if m := &msgs[i]; s.messages.held[m.ID] != nil {
			s.receivedAgain(s.messages.held[m.ID], m, visibility, hiddenSince, now)
		} else {
			s.acceptNew(m, filtered != nil && filtered[i], visibility, hiddenSince, now)
		}
	}
}

func (s *settler) acceptNew(m *queue.Message, filtered bool, visibility time.Duration, hiddenSince, now time.Time) {
	h := &held{msg: *m}
	h.received(m, visibility, hiddenSince, now)
	s.messages.hold(h)

	skipped := s.messages.unposted.values[keyInQueue(m.ID, h.receives, h.receivesHere)]
	h.msg.Attempt = max(cmp.Or(h.receivesHere, m.ReceiveCount)-skipped, 1)
	s.pace.body = average(s.pace.body, float64(len(m.Body)))

	if !s.mustDeliver(h, filtered, now) {
		s.deletes.remove(h, now)
		return
	}
	if h.msg.Attempt > 1 {
		s.messages.groupFailed(h, now)
	}
	if s.messages.joinGroup(h) {
		s.messages.makeReady(h, now)
	}
}

// mustDeliver returns false for a message to delete at once, which it counts and reports: it is done, filtered or
// expired.
func (s *settler) mustDeliver(h *held, filtered bool, now time.Time) bool {
	switch _, isDone := s.messages.done.values[h.msg.ID]; {
	case isDone:
		s.reportDuplicate(h, "done")
	case filtered:
		s.core.counts.Filtered++
		notify(s.core, s.core.events.Filtered, Filtered{ID: h.msg.ID, Task: h.task(), ReceiveCount: h.receives})
	case expired(&s.core.opts, &h.msg, now):
		h.isExpired = true
		s.core.counts.Expired++
		notify(s.core, s.core.events.Expired, Expired{ID: h.msg.ID, Task: h.task(), ReceiveCount: h.receives,
			FirstReceivedAt: h.msg.FirstReceivedAt})
	default:
		return true
	}
	return false
}

func (s *settler) receivedAgain(h *held, m *queue.Message, visibility time.Duration, hiddenSince, now time.Time) {
	s.reportDuplicate(h, h.stage.String())
	s.messages.countUnposted(h, true)
	h.received(m, visibility, hiddenSince, now)
	if h.stage == deleting {
		s.deletes.queueDelete(h, now)
	}
}

func (s *settler) reportDuplicate(h *held, stage string) {
	s.core.counts.Duplicates++
	notify(s.core, s.core.events.Duplicate, Duplicate{ID: h.msg.ID, Task: h.task(), Stage: stage})
}
