package broker

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"tendril/queue"
)

const (
	// runRetention is how long a run is remembered: longer than anybody looks back
	// for missed ones.
	runRetention = 30 * 24 * time.Hour
	// runSweep is the most that one run removes of those that are older.
	runSweep = 64
)

// RunRequest names one run of a periodic task.
type RunRequest struct {
	// Queue is the name of the queue that the message goes to.
	Queue string
	// ID names the run: the same from every instance and at every try, made of
	// the task and the time. Of one ID there is never a second message.
	ID string
	// Task is the task whose last run moves on to At, unless that is later
	// already; "" moves none, for runs outside the schedule.
	Task string
	// At is the scheduled time; milliseconds count.
	At time.Time
	// Lease and Term are the fence: the run is made only while the lease
	// stored under that name has this term and was not released. "" and 0
	// together leave it out; one without the other is refused.
	Lease string
	Term  int64
}

// Enqueue enqueues m as the run that req names. In one transaction it checks
// the fence, notes the run, enqueues the message and moves the task's last
// run on; all of it is on the disk when Enqueue returns. already tells that the
// run was made before, by anybody: sent is then the first message, and nothing
// has changed.
//
// A term that is over gets queue.ErrStaleTerm, also for a run that was made.
// Refusals of the message are those of [Broker.Send]. Runs are remembered for
// 30 days.
func (r *Registry) Enqueue(ctx context.Context, req RunRequest, m queue.Outgoing) (sent queue.Sent, already bool,
	err error) {
	if err := req.check(); err != nil {
		return queue.Sent{}, false, err
	}
	q, err := r.b.queues.get(req.Queue)
	if err != nil {
		return queue.Sent{}, false, err
	}
	path := (&queue.Message{Attributes: m.Attributes}).Attribute(pathAttribute)
	f := &runSending{sending: newSending(q, []queue.Outgoing{m}), req: req, path: path}
	if err := cmp.Or(f.sending.set.checkIDs([]queue.Outgoing{m}), f.sending.sent[0].Err); err != nil {
		return queue.Sent{}, false, err
	}
	if err := r.b.writer.do(ctx, f, needs{durable: true, space: true}); err != nil {
		return queue.Sent{}, false, err
	}
	return f.sending.sent[0], f.already, nil
}

func (req *RunRequest) check() error {
	if err := checkRegistryName("run", req.ID); err != nil {
		return err
	}
	if req.Task != "" {
		if err := checkRegistryName("task", req.Task); err != nil {
			return err
		}
	}
	if req.At.IsZero() {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"Run %s has no time; give the time that it was scheduled for.", req.ID)
	}
	return fence{req.Lease, req.Term}.check()
}

// runSending is the request of one Enqueue: a sending under conditions.
type runSending struct {
	sending *sending
	req     RunRequest
	path    string // of the message
	already bool
	refusal error
}

func (f *runSending) apply(t *tx) (err error) {
	f.already, f.refusal = false, nil
	if t.gone(f.sending.q) {
		f.refusal = errNoQueue()
		return nil
	}
	if f.refusal, err = (fence{f.req.Lease, f.req.Term}).refuse(t.c, "Run "+f.req.ID); f.refusal != nil || err != nil {
		return err
	}
	if f.already, err = f.first(t.c); f.already || err != nil {
		return err
	}
	if err := f.sending.apply(t); err != nil {
		return err
	}
	f.sending.answer()
	return f.note(t.c)
}

func (f *runSending) onCommit(err error) error {
	if err == nil && (f.refusal != nil || f.already) {
		return f.refusal
	}
	return f.sending.onCommit(err)
}

// first finds the message of a run that was made before.
func (f *runSending) first(c *conn) (found bool, err error) {
	err = c.query(func(row row) {
		found = true
		f.sending.sent[0].ID, f.sending.sent[0].SequenceNumber = row.text(0), row.text(1)
	}, `SELECT message, sequence FROM fires WHERE id = ?`, f.req.ID)
	return found, err
}

// note writes what has to be known of the run later, and removes some of
// what has not.
func (f *runSending) note(c *conn) (err error) {
	r, now := &f.req, stamp()
	c.run(&err, `INSERT INTO fires (id, task, queue, at, term, recorded, message, sequence, path)
		VALUES (?,?,?,?,?,?,?,?,?)`,
		r.ID, r.Task, r.Queue, r.At.UnixMilli(), r.Term, now, f.sending.sent[0].ID, f.sending.sent[0].SequenceNumber, f.path)
	if err == nil && r.Task != "" {
		err = accountUpTo(c, r.Task, r.At)
	}
	c.run(&err, `DELETE FROM fires WHERE id IN (SELECT id FROM fires WHERE recorded < ? ORDER BY recorded LIMIT ?)`,
		now-runRetention.Milliseconds(), int64(runSweep))
	return err
}

// Last returns the time of the last run of each task, in UTC; a task without
// one is not in the map.
func (r *Registry) Last(ctx context.Context, tasks []string) (map[string]time.Time, error) {
	return view(ctx, r.b, func(c *conn) (map[string]time.Time, error) {
		last := map[string]time.Time{}
		for _, task := range tasks {
			err := c.query(func(row row) { last[task] = time.UnixMilli(row.int(0)).UTC() },
				`SELECT last FROM tasks WHERE task = ?`, task)
			if err != nil {
				return nil, err
			}
		}
		return last, nil
	})
}

// SetPaused notes for all instances that a task is paused, with a reason for
// people, which may be "", or that it no longer is; reason does not matter then.
func (r *Registry) SetPaused(ctx context.Context, task, reason string, paused bool) error {
	if err := checkRegistryName("task", task); err != nil {
		return err
	}
	if err := checkRegistryText(fmt.Sprintf("reason for pausing task %s", task), reason); err != nil {
		return err
	}
	_, err := alter(ctx, r.b, fence{}, func(c *conn) (int64, error) {
		if paused {
			return c.exec(`INSERT OR REPLACE INTO paused (task, reason) VALUES (?, ?)`, task, reason)
		}
		return c.exec(`DELETE FROM paused WHERE task = ?`, task)
	})
	return err
}

// Paused returns the paused tasks and the reason of each; it is never nil.
func (r *Registry) Paused(ctx context.Context) (map[string]string, error) {
	return view(ctx, r.b, func(c *conn) (map[string]string, error) {
		reasons := map[string]string{}
		err := c.query(func(row row) { reasons[row.text(0)] = row.text(1) }, `SELECT task, reason FROM paused`)
		return reasons, err
	})
}

// SinceUnder returns the times of each task of from. A task that is not known is
// entered with its time in from, so that a later leader looks back to it. One that
// is known exists from that time, if that is earlier. lease and term are the fence,
// as in [RunRequest].
//
// schedules holds any text that differs when the schedule does. A task that is
// known with another schedule is accounted for up to its time in from at least, and
// exists from then: earlier times of the new schedule were never due. A task without
// a schedule here, or entered without one, is not compared.
func (r *Registry) SinceUnder(ctx context.Context, lease string, term int64, from map[string]time.Time,
	schedules map[string]string) (map[string]queue.TaskTimes, error) {
	for task := range from {
		if err := checkRegistryName("task", task); err != nil {
			return nil, err
		}
	}
	return alter(ctx, r.b, fence{lease, term}, func(c *conn) (map[string]queue.TaskTimes, error) {
		known := make(map[string]queue.TaskTimes, len(from))
		for task, at := range from {
			if err := enterTask(c, task, at, schedules[task]); err != nil {
				return nil, err
			}
			var times queue.TaskTimes
			err := c.query(func(row row) {
				times.UpTo = time.UnixMilli(row.int(0)).UTC()
				if row[1] != nil {
					times.From = time.UnixMilli(row.int(1)).UTC()
				}
			}, `SELECT last, at FROM tasks LEFT JOIN task_starts USING (task) WHERE task = ?`, task)
			if err != nil {
				return nil, err
			}
			known[task] = times
		}
		return known, nil
	})
}

// enterTask makes the row of a task right for its schedule, "" for any.
func enterTask(c *conn, task string, at time.Time, schedule string) error {
	started, err := c.exec(`INSERT OR IGNORE INTO tasks (task, last, schedule) VALUES (?, ?, nullif(?, ''))`, task,
		at.UnixMilli(), schedule)
	if err == nil && started == 0 && schedule != "" {
		started, err = c.exec(`UPDATE tasks SET last = max(last, ?), schedule = ? WHERE task = ? AND schedule <> ?`,
			at.UnixMilli(), schedule, task, schedule)
	}
	if started > 0 {
		c.run(&err, `INSERT OR REPLACE INTO task_starts (task, at) VALUES (?, ?)`, task, at.UnixMilli())
		return err
	}
	if schedule != "" { // a row without a schedule is a skip's
		c.run(&err, `UPDATE tasks SET schedule = ? WHERE task = ? AND schedule IS NULL`, schedule, task)
	}
	c.run(&err, `UPDATE task_starts SET at = ? WHERE task = ? AND at > ?`, at.UnixMilli(), task, at.UnixMilli())
	return err
}

// accountUpTo moves the last run of a task on to a time, unless it is later already.
func accountUpTo(c *conn, task string, at time.Time) error {
	_, err := c.exec(`INSERT INTO tasks (task, last) VALUES (?, ?)
		ON CONFLICT (task) DO UPDATE SET last = max(last, excluded.last)`, task, at.UnixMilli())
	return err
}

// Skip accounts for the times of req.Task up to req.At without a message. It
// returns which of the runs called ids were made all the same, with the message of
// each.
func (r *Registry) Skip(ctx context.Context, req RunRequest, ids []string) (made map[string]string, err error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	if err := checkRegistryName("task", req.Task); err != nil {
		return nil, err
	}
	return alter(ctx, r.b, fence{req.Lease, req.Term}, func(c *conn) (map[string]string, error) {
		found := map[string]string{}
		for _, id := range ids {
			err := c.query(func(row row) { found[id] = row.text(0) }, `SELECT message FROM fires WHERE id = ?`, id)
			if err != nil {
				return nil, err
			}
		}
		return found, accountUpTo(c, req.Task, req.At)
	})
}

// Enqueued reports whether a run of that id was made in the last 30 days.
func (r *Registry) Enqueued(ctx context.Context, id string) (bool, error) {
	return view(ctx, r.b, func(c *conn) (bool, error) { return c.finds(`SELECT 1 FROM fires WHERE id = ?`, id) })
}

// EnqueuedTo reports whether a run of that id was made in the last 30 days with a
// message to path.
func (r *Registry) EnqueuedTo(ctx context.Context, id, path string) (bool, error) {
	return view(ctx, r.b, func(c *conn) (bool, error) {
		return c.finds(`SELECT 1 FROM fires WHERE id = ? AND path = ?`, id, path)
	})
}

// pathAttribute is the message attribute with the path that a run goes to.
const pathAttribute = "beanstalk.sqsd.path"
