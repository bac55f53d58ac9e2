package delivery

import (
	"context"
	"time"

	"tendril/periodic"
)

// RunAccount keeps account of the scheduled runs that are delivered.
type RunAccount interface {
	// Begun notes that a run of a task is delivered now.
	Begun(task string)
	// Ended notes how the delivery of a run ended.
	Ended(outcome periodic.Outcome)
}

// bookkeep notes the begin and the end of scheduled runs. The account that heard of
// the begin hears of the end.
func bookkeep(next Deliverer, account func() RunAccount) Deliverer {
	return func(ctx context.Context, batch []*Message) {
		to := account()
		if to == nil {
			next(ctx, batch)
			return
		}
		for _, m := range batch {
			if m.Run.Named() {
				to.Begun(m.Run.Task)
			}
		}
		next(ctx, batch)
		for _, m := range batch {
			if m.Run.Named() {
				to.Ended(periodic.Outcome{Task: m.Run.Task, ScheduledAt: m.Run.ScheduledAt, MessageID: m.ID,
					Attempt: m.ReceiveCount, At: time.Now(), Result: m.Result})
			}
		}
	}
}
