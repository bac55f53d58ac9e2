package broker

import (
	"cmp"
	"context"
	"strings"
	"time"

	"tendril/internal/registry"
	"tendril/queue"
)

// Registry is a [registry.QueueStore] in the queues' database, so that a scheduled run and its message are written in
// one transaction. Writes are durable.
type Registry struct{ b *Broker }

// Registry returns the registry in the broker's database.
func (b *Broker) Registry() *Registry { return &Registry{b} }

const (
	// runRetention exceeds how far back instances look for missed runs.
	runRetention = 30 * 24 * time.Hour
	runSweep     = 64
)

// Read implements [registry.Store].
func (r *Registry) Read(ctx context.Context, kind registry.Kind, keys ...string) ([]registry.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	records := make([]registry.Record, len(keys))
	done := make(chan error, 1)
	started := r.b.background.start(func() {
		done <- r.b.read(func(c *conn) (err error) {
			for i, key := range keys {
				if records[i], err = readRecord(c, kind, key); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if !started {
		return nil, queue.ErrClosed
	}

	select {
	case err := <-done:
		return records, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Swap implements [registry.Store]. It makes all changes or none.
func (r *Registry) Swap(ctx context.Context, fence registry.Fence, changes ...registry.Change) ([]registry.Record, error) {
	w := &recordWrite{fence: fence, changes: changes, what: "The change"}
	if err := r.b.writer.doUntil(ctx, w, needsFsync); err != nil {
		return nil, err // the writer may still be using w
	}
	return w.stored, nil
}

// Enqueue implements [registry.QueueStore]. It rejects the same messages as [Queue.Send].
func (r *Registry) Enqueue(ctx context.Context, fence registry.Fence, queueName string, m queue.Outgoing,
	changes ...registry.Change) (sent queue.Sent, conflict []registry.Record, err error) {
	q, err := r.b.live(queueName)
	if err != nil {
		return sent, nil, err
	}
	s, err := newSending(q, []queue.Outgoing{m})
	if err == nil {
		err = s.sent[0].Err
	}
	if err != nil {
		return sent, nil, err
	}

	w := &recordWrite{fence: fence, changes: changes, what: "Run " + changes[0].Next.Key, sending: s}
	if err := r.b.writer.doUntil(ctx, w, needsFsync|needsSpace); err != nil {
		return sent, nil, err
	}
	if w.conflict {
		return sent, w.stored, nil
	}
	return s.sent[0], nil, nil
}

type recordWrite struct {
	fence   registry.Fence
	changes []registry.Change
	what    string
	sending *sending // nil without a message; otherwise, the first change is its run

	stored   []registry.Record
	conflict bool
	refusal  error
}

func (w *recordWrite) apply(t *tx) {
	w.stored = make([]registry.Record, len(w.changes))
	w.conflict = false
	w.refusal = w.refuse(t)
	if w.refusal != nil {
		return
	}

	w.readStored(t)
	if w.conflict {
		return
	}
	if w.sending != nil {
		w.sending.apply(t)
		w.sending.setIDs()
	}
	w.writeNext(t)
}

func (w *recordWrite) refuse(t *tx) error {
	if w.sending != nil && t.gone(w.sending.q) {
		return errNoQueue()
	}
	if w.fence == (registry.Fence{}) {
		return nil
	}
	return w.fence.Refuse(t.record(registry.KindLease, w.fence.Lease), w.what)
}

// A record that differs from both the change's old and next record is a conflict.
func (w *recordWrite) readStored(t *tx) {
	for i, change := range w.changes {
		stored := t.record(change.Old.Kind, change.Old.Key)
		if !registry.Same(stored, change.Old) && !registry.Same(stored, change.Next) {
			w.conflict = true
		}
		w.stored[i] = stored
	}
}

func (w *recordWrite) writeNext(t *tx) {
	for i, change := range w.changes {
		next := change.Next
		if i == 0 && w.sending != nil {
			sent := &w.sending.sent[0]
			next = next.With(registry.Fields{"queue": w.sending.q.name, "message": sent.ID,
				"sequence": sent.SequenceNumber})
		}
		t.writeRecord(w.stored[i], next)
		w.stored[i] = next
	}
}

func (w *recordWrite) onCommit(err error) error {
	notSent := w.refusal != nil || w.conflict
	if w.sending == nil || err == nil && notSent {
		return cmp.Or(err, w.refusal)
	}
	return w.sending.onCommit(err)
}

func (t *tx) record(kind registry.Kind, key string) (record registry.Record) {
	if t.err == nil {
		record, t.err = readRecord(t.c, kind, key)
	}
	return record
}

func readRecord(c *conn, kind registry.Kind, key string) (record registry.Record, err error) {
	record = registry.Record{Kind: kind, Key: key}
	switch kind {
	case registry.KindLease:
		record.Version, record.Fields, err = c.lease(key)
	case registry.KindRun:
		record.Fields, err = c.run(key)
	case registry.KindTask:
		record.Fields, err = c.task(key)
	case registry.KindPauses:
		record.Fields, err = c.pauses(pausePrefix(key))
	}
	return record, err
}

func (c *conn) lease(name string) (version string, fields registry.Fields, err error) {
	err = c.query(func(row row) {
		version = row.text(0)
		fields = registry.Fields{"term": row.int(1), "owner": row.text(2), "duration_ms": row.int(3),
			"released": row.int(4) != 0, "data": row.text(5)}
	}, `SELECT version, term, owner, duration, released, data FROM leases WHERE name = ?`, name)
	return version, fields, err
}

func (c *conn) run(id string) (fields registry.Fields, err error) {
	err = c.query(func(row row) {
		fields = registry.Fields{"task": row.text(0), "queue": row.text(1), "at_ms": row.int(2), "term": row.int(3),
			"message": row.text(4), "sequence": row.text(5), "path": row.text(6), "tries": int64(1), "settled": true}
	}, `SELECT task, queue, at, term, message, sequence, path FROM fires WHERE id = ?`, id)
	return fields, err
}

func (c *conn) task(id string) (fields registry.Fields, err error) {
	err = c.query(func(row row) {
		fields = registry.Fields{"last_ms": row.int(0)}
		if row[1] != nil {
			fields["schedule"] = row.text(1)
		}
		if row[2] != nil {
			fields["from_ms"] = row.int(2)
		}
	}, `SELECT last, schedule, at FROM tasks LEFT JOIN task_starts USING (task) WHERE task = ?`, id)
	return fields, err
}

func (c *conn) pauses(prefix string) (fields registry.Fields, err error) {
	err = c.query(func(row row) {
		if task, ok := strings.CutPrefix(row.text(0), prefix); ok {
			if fields == nil {
				fields = registry.Fields{}
			}
			fields[registry.PausedTask+task] = row.text(1)
		}
	}, `SELECT task, reason FROM paused`)
	return fields, err
}

func (t *tx) writeRecord(old, next registry.Record) {
	f := next.Fields
	switch next.Kind {
	case registry.KindLease:
		t.exec(`INSERT OR REPLACE INTO leases (name, version, term, owner, duration, released, data)
			VALUES (?,?,?,?,?,?,?)`,
			next.Key, next.Version, f["term"], f["owner"], f["duration_ms"], f["released"], f["data"])
	case registry.KindRun:
		t.writeRun(next.Key, f)
	case registry.KindTask:
		t.exec(`INSERT OR REPLACE INTO tasks (task, last, schedule) VALUES (?,?,?)`, next.Key, f["last_ms"], f["schedule"])
		if from := f["from_ms"]; from != nil {
			t.exec(`INSERT OR REPLACE INTO task_starts (task, at) VALUES (?,?)`, next.Key, from)
		}
	case registry.KindPauses:
		t.writePauses(next.Key, old.Fields, f)
	}
}

func (t *tx) writeRun(id string, f registry.Fields) {
	path, _ := f["path"].(string)
	t.exec(`INSERT OR REPLACE INTO fires (id, task, queue, at, term, recorded, message, sequence, path)
		VALUES (?,?,?,?,?,?,?,?,?)`,
		id, f["task"], f["queue"], f["at_ms"], f["term"], stamp(), f["message"], f["sequence"], path)
	t.exec(`DELETE FROM fires WHERE id IN (SELECT id FROM fires WHERE recorded < ? ORDER BY recorded LIMIT ?)`,
		stamp()-runRetention.Milliseconds(), int64(runSweep))
}

func (t *tx) writePauses(scope string, old, next registry.Fields) {
	for name := range old {
		t.exec(`DELETE FROM paused WHERE task = ?`, pausedTask(scope, name))
	}
	for name, reason := range next {
		t.exec(`INSERT OR REPLACE INTO paused (task, reason) VALUES (?,?)`, pausedTask(scope, name), reason)
	}
}

func pausePrefix(key string) string { return registry.Scope{Name: key}.Key("") }

func pausedTask(key, field string) string {
	return pausePrefix(key) + strings.TrimPrefix(field, registry.PausedTask)
}
