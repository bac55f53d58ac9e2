package broker

import (
	"context"
	"database/sql/driver"
	"time"

	"tendril/queue"
)

// Since returns, for each task of from, the scheduled time up to which its runs
// are accounted for: enqueued, or skipped. A task that is not known is entered
// with its time in from, so that a later leader looks back to it. lease and
// term are the fence, as in [RunRequest].
func (r *Registry) Since(ctx context.Context, lease string, term int64,
	from map[string]time.Time) (map[string]time.Time, error) {
	return r.SinceUnder(ctx, lease, term, from, nil)
}

// SinceUnder is [Registry.Since] for tasks with these schedules, in any words. A
// task that is known with another schedule is accounted for up to its time in
// from at least: earlier times of the new schedule were never due. Of a task
// that has no schedule here, or was entered without one, nothing is compared.
func (r *Registry) SinceUnder(ctx context.Context, lease string, term int64, from map[string]time.Time,
	schedules map[string]string) (map[string]time.Time, error) {
	for task := range from {
		if err := checkRegistryName("task", task); err != nil {
			return nil, err
		}
	}
	since := make(map[string]time.Time, len(from))
	err := r.fenced(ctx, lease, term, func(c *conn) error {
		clear(since)
		for task, at := range from {
			if err := enterTask(c, task, at, schedules[task]); err != nil {
				return err
			}
			err := c.query(func(row []driver.Value) error {
				milli, _ := row[0].(int64)
				since[task] = time.UnixMilli(milli).UTC()
				return nil
			}, `SELECT last FROM tasks WHERE task = ?`, task)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err // the writer may be at it still: since is not looked at
	}
	return since, nil
}

// enterTask makes the row of a task right for its schedule, "" for any.
func enterTask(c *conn, task string, at time.Time, schedule string) error {
	_, err := c.exec(`INSERT OR IGNORE INTO tasks (task, last, schedule) VALUES (?, ?, nullif(?, ''))`, task,
		at.UnixMilli(), schedule)
	if err == nil && schedule != "" {
		// A row without a schedule is an older version's, or a skip's.
		_, err = c.exec(`UPDATE tasks SET last = CASE WHEN schedule IS NULL THEN last ELSE max(last, ?) END, schedule = ?
			WHERE task = ? AND schedule IS NOT ?`, at.UnixMilli(), schedule, task, schedule)
	}
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
	found := map[string]string{}
	err = r.fenced(ctx, req.Lease, req.Term, func(c *conn) error {
		clear(found)
		for _, id := range ids {
			err := c.query(func(row []driver.Value) error {
				found[id], _ = row[0].(string)
				return nil
			}, `SELECT message FROM fires WHERE id = ?`, id)
			if err != nil {
				return err
			}
		}
		_, err := c.exec(`INSERT INTO tasks (task, last) VALUES (?, ?) ON CONFLICT (task) DO UPDATE SET last = max(last, excluded.last)`,
			req.Task, req.At.UnixMilli())
		return err
	})
	if err != nil {
		return nil, err // the writer may be at it still: found is not looked at
	}
	return found, nil
}

// Enqueued reports whether a run of that id was made in the last 30 days.
func (r *Registry) Enqueued(ctx context.Context, id string) (bool, error) {
	return lookUp(ctx, r.b, func(c *conn) (found bool, err error) {
		err = c.query(func([]driver.Value) error { found = true; return nil }, `SELECT 1 FROM fires WHERE id = ?`, id)
		return found, err
	})
}

// pathAttribute is the message attribute with the path that a run goes to.
const pathAttribute = "beanstalk.sqsd.path"

// EnqueuedTo reports whether a run of that id was made in the last 30 days with a
// message to path. Of runs that an older version made, no path is known: they
// were made with any, so that what was enqueued before an upgrade goes where it
// was to go.
func (r *Registry) EnqueuedTo(ctx context.Context, id, path string) (bool, error) {
	return lookUp(ctx, r.b, func(c *conn) (found bool, err error) {
		err = c.query(func([]driver.Value) error {
			found = true
			return nil
		}, `SELECT 1 FROM fires WHERE id = ? AND (path IS NULL OR path = ?)`, id, path)
		return found, err
	})
}

// pathOf is the path that a message goes to, "" when it names none.
func pathOf(m *queue.Outgoing) string {
	for _, a := range m.Attributes {
		if a.Name == pathAttribute {
			return a.Value
		}
	}
	return ""
}

// fenced makes a change unless the term of the lease is over.
func (r *Registry) fenced(ctx context.Context, lease string, term int64, change func(c *conn) error) error {
	if (lease == "") != (term == 0) || term < 0 {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"Lease %q with term %d is no fence; give a lease and its term, which counts from 1, or neither.", clip(lease), term)
	}
	var refusal error
	err := r.write(ctx, func(t *tx) error {
		f := runSending{req: RunRequest{Lease: lease, Term: term, ID: "accounting"}}
		var err error
		if refusal, err = f.fence(t.c); refusal != nil || err != nil {
			return err
		}
		return change(t.c)
	})
	if err != nil {
		return err
	}
	return refusal
}
