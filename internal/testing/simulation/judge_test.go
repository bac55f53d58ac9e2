package simulation

import (
	"maps"
	"slices"
	"time"

	"tendril/internal/cron/periodic"
	"tendril/queue"
)

func (o *oracle) judge(healedAt time.Time) {
	b, _ := o.w.server.current()
	dead, err := o.w.server.stored(deadQueue)
	if err != nil {
		o.violated("the dead-letter queue cannot be read: %v", err)
		return
	}
	total := b.TotalLedger()
	o.mu.Lock()
	defer o.mu.Unlock()
	isDead := map[string]int{}
	for i := range dead {
		isDead[keyOf(&dead[i].Message)] = dead[i].ReceiveCount
	}
	o.figures.DeadLettered = len(dead)
	known, perhaps := 0, 0
	for _, key := range slices.Sorted(maps.Keys(o.messages)) {
		m := o.messages[key]
		receives, dead := isDead[key]
		switch m.state {
		case accepted:
			known++
			if len(m.doneBy) == 0 && !dead {
				o.violate("%s was accepted and is lost: %d attempts, %d receives charged, %v", key, m.attempts, m.charges, m.why)
			}
		case sending:
			perhaps++
		}
		if dead {
			o.judgeDead(m, receives)
		} else if m.state == accepted && o.w.plan.nature(key) == poison {
			o.violate("%s always fails and is not in the dead-letter queue", key)
		}
	}
	if sent := int(total.Sent); sent < known || sent > known+perhaps {
		o.violate("the queue counts %d sends, %d were accepted and %d may have been", sent, known, perhaps)
	}
	if total.Sent != total.Done+total.Expired+total.Purged+total.Live || total.Expired+total.Purged > 0 ||
		int(total.Live) != len(dead) {
		o.violate("the ledger does not balance: %+v with %d dead letters", total, len(dead))
	}
	o.judgeRuns(healedAt)
}

func (o *oracle) judgeDead(m *message, receives int) {
	p := o.w.plan
	if m.redriven == 0 && receives != p.MaxReceives {
		o.violate("%s is in the dead-letter queue after %d receives, %d are configured", m.key, receives, p.MaxReceives)
	}
	if p.nature(m.key) == poison {
		return
	}
	o.figures.Innocent++
	// If released receives count, a message that fails at the head of a group may cost messages behind it receives.
	if m.failures+m.charges+m.excuses < p.MaxReceives && (!p.FIFO || p.Embedded) && m.redriven == 0 {
		o.violate("%s is in the dead-letter queue without a cause: %d attempts failed, %d receives were lost: %v", m.key,
			m.failures, m.charges+m.excuses, m.why)
	}
}

func (o *oracle) judgeRuns(healedAt time.Time) {
	if !o.w.plan.Tasks {
		return
	}
	for _, t := range o.w.file().Tasks {
		since, known := o.since[t.Name]
		if !known {
			o.violate("nobody ever led")
			return
		}
		for at := t.Schedule.Next(since); at.Before(healedAt); at = t.Schedule.Next(at) {
			key := t.Name + "@" + at.UTC().Format(queue.RunTimeLayout)
			if m := o.messages[key]; m == nil || m.state != accepted && m.attempts == 0 {
				o.violate("%s is missing", key)
			}
		}
	}
}

// The tasks' grace exceeds the length of any plan, so no run may be missed.
func (w *world) file() *periodic.File {
	return &periodic.File{Tasks: []periodic.Task{
		{Name: "minutely", URL: "/minutely", Schedule: periodic.Every(time.Minute), Missed: periodic.MissedAll,
			Grace: 2 * time.Hour},
		{Name: "spread", URL: "/spread", Schedule: periodic.Every(7 * time.Minute), Jitter: 20 * time.Second,
			Missed: periodic.MissedAll, Grace: 2 * time.Hour},
	}}
}
