package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Attempt is one delivery of a message that did not succeed.
type Attempt struct {
	At       time.Time `json:"at"` // when it ended
	Instance string    `json:"instance,omitempty"`
	// Outcome, Status, Reason and Answer are those of [queue.Result].
	Outcome      string        `json:"outcome"`
	Status       int           `json:"status,omitempty"`
	Reason       string        `json:"reason,omitempty"`
	Answer       string        `json:"answer,omitempty"`
	Duration     time.Duration `json:"duration"`
	ReceiveCount int           `json:"receive_count,omitempty"`
	RetryAt      time.Time     `json:"retry_at,omitzero"` // when the message becomes visible again, where that is known
}

const (
	// keptAttempts is how many attempts of a message are kept: the last ones.
	keptAttempts = 10
	// keptAnswer is how many bytes of an answer are kept; keptText bounds every other text of an attempt.
	keptAnswer = 1 << 10
	keptText   = 512
	// attemptBatch attempts go to the writer together, or those that came within attemptLinger.
	attemptBatch  = 256
	attemptLinger = 200 * time.Millisecond
	// mostAttempts is how many may wait to be written; those beyond are lost.
	mostAttempts = 10_000
	lossesEvery  = time.Minute // between log lines about lost attempts
)

// bounded returns the attempt as it is kept: in UTC, to the millisecond, with texts of limited length.
func (a Attempt) bounded() Attempt {
	a.At, a.RetryAt = a.At.UTC().Truncate(time.Millisecond), a.RetryAt.UTC().Truncate(time.Millisecond)
	a.Duration = a.Duration.Truncate(time.Microsecond)
	a.Answer = cutText(a.Answer, keptAnswer)
	for _, text := range []*string{&a.Instance, &a.Outcome, &a.Reason} {
		*text = cutText(*text, keptText)
	}
	return a
}

// cutText returns the first bytes of a text, at most limit, as valid UTF-8.
func cutText(text string, limit int) string {
	text = strings.ToValidUTF8(text[:min(len(text), limit+utf8.UTFMax)], string(utf8.RuneError))
	if len(text) <= limit {
		return text
	}
	for !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// RecordAttempt keeps a failed delivery with its message, in whichever queue that is by now. name is the queue that
// the message was received from. It does not wait: an attempt is written a moment later, and lost when the process is
// killed before, when the disk is full, or when too many wait.
func (b *Broker) RecordAttempt(name, messageID string, a Attempt) {
	origin, ok := b.seal.origin(messageID)
	if !ok {
		return
	}
	q, err := b.queues.get(name)
	if err != nil {
		return
	}
	if b.background.closing.Load() {
		return
	}

	a = a.bounded()
	it := attempted{origin: origin, at: a.At.UnixMilli(), line: a.line(), reason: b.attempts.reasonOf(&a)}
	q.mu.Lock()
	if m := q.index.held[origin]; m != nil && !m.claimed {
		it.home = q
		it.receipt = m.receiptRow(q.broker.clock)
		it.again = m.failed
		m.stored, m.failed = true, true
	}

	q.mu.Unlock()
	b.attempts.add(b, it)
}

// attempted is an attempt on its way to the disk.
type attempted struct {
	origin  int64 // of the message
	at      int64 // Unix milliseconds
	line    string
	reason  string     // its group
	home    *liveQueue // the queue that the message was sent to, and was in; nil for one that came from another queue
	receipt receiptRow // of the message; only with home
	again   bool       // the message has attempts already, as far as memory knows; only with home
}

// attemptLog gathers attempts for the writer.
type attemptLog struct {
	mu      sync.Mutex
	pending []attempted
	waiting int // of earlier batches, that the writer has
	alarm   alarm
	lost    int       // since the log line of
	lostAt  time.Time // this moment
	latest  struct {  // most attempts fail like the one before
		attempt Attempt
		reason  string
	}
}

// reasonOf is failureReason, remembered for an attempt that failed in the same words as the latest one.
func (l *attemptLog) reasonOf(a *Attempt) string {
	l.mu.Lock()
	latest, reason := l.latest.attempt, l.latest.reason
	l.mu.Unlock()
	if reason != "" && a.Status == latest.Status && a.Reason == latest.Reason && a.Answer == latest.Answer {
		return reason
	}
	reason = failureReason(a)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest.attempt, l.latest.reason = *a, reason
	return reason
}

func (l *attemptLog) add(b *Broker, it attempted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending)+l.waiting >= mostAttempts {
		l.lose(b, 1)
		return
	}
	switch l.pending = append(l.pending, it); {
	case len(l.pending) >= attemptBatch:
		l.submit(b)
	case len(l.pending) == 1:
		l.alarm.set(1, attemptLinger)
	}
}

// flush hands what is pending to the writer.
func (l *attemptLog) flush(b *Broker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.submit(b)
}

// submit is flush. The lock is held.
func (l *attemptLog) submit(b *Broker) {
	l.alarm.stop()
	l.alarm.at = 0
	if n := len(l.pending); n > 0 {
		if b.writer.submit(&attemptStore{b: b, items: l.pending}, needs{space: true}, nil) == nil {
			l.waiting += n
		} else {
			l.lose(b, n)
		}
		l.pending = nil
	}
}

// lose counts attempts that are not kept, and says so once in a while. The lock is held.
func (l *attemptLog) lose(b *Broker, n int) {
	if l.lost += n; time.Since(l.lostAt) >= lossesEvery {
		b.log.Warn("attempts not recorded", "dir", b.dir, "attempts", l.lost)
		l.lost, l.lostAt = 0, time.Now()
	}
}

// settle brings what was recorded until now to the store, so that it is seen.
func (l *attemptLog) settle(ctx context.Context, b *Broker) {
	l.mu.Lock()
	l.submit(b)
	idle := l.waiting == 0
	l.mu.Unlock()
	if !idle {
		// What cannot be written is lost; reading says what is wrong with the store.
		_ = b.writer.do(ctx, &change{run: func(*tx) error { return nil }}, needs{})
	}
}

// attemptStore is the request that writes attempts.
type attemptStore struct {
	b     *Broker
	items []attempted
}

func (s *attemptStore) onCommit(err error) error {
	l := &s.b.attempts
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting -= len(s.items); err != nil {
		l.lose(s.b, len(s.items))
	}
	return err
}

func (s *attemptStore) apply(t *tx) error {
	// What requests before this one took away is not to be found.
	err := t.flushRows()
	for i := 0; i < len(s.items) && err == nil; i++ {
		err = t.writeAttempt(&s.items[i])
	}
	return err
}

// writeAttempt adds an attempt to those of its message.
func (t *tx) writeAttempt(it *attempted) error {
	written, err := t.writeAtHome(it)
	if written || err != nil {
		return err
	}
	return t.writeAnywhere(it)
}

// maxAppended is how many bytes of attempts another one is put behind. Beyond, those that are not kept are dropped.
const maxAppended = 4 << 10

// firstAttempt is for a message without attempts. appendAttempt is for one that failed for the same reason in the same
// hour: neither the index nor the counts of reasons change.
const firstAttempt = `INSERT OR IGNORE INTO attempts (id, at, reason, history)
	SELECT id, ?2, ?3, ?4 FROM messages WHERE id = ?1 AND origin IS NULL`

var appendAttempt = fmt.Sprintf(`UPDATE attempts SET at = ?2, history = history || ?4
	WHERE id = ?1 AND reason = ?3 AND at / %d = ?2 / %[1]d AND octet_length(history) < %d`, hourMillis, maxAppended)

// writeAtHome is writeAttempt in one statement, without reading: for a message that is in the queue it was sent to, and
// has no attempts or ones that failed alike. It reports whether it was one.
func (t *tx) writeAtHome(it *attempted) (written bool, err error) {
	if it.home == nil || t.gone(it.home) || keySeq(it.origin) <= it.home.disk.floor {
		return false, nil
	}
	text := firstAttempt
	if it.again {
		text = appendAttempt
	}
	n, err := t.c.exec(text, it.origin, it.at, it.reason, it.line)
	if n == 0 || err != nil || it.again {
		return n > 0, err
	}
	t.countReason(it.origin, it.reason, it.at, 1)
	return true, t.writeReceipt(it)
}

// writeReceipt sees to the row in receipts of a message that was never moved: it says that the message has attempts.
// Without one, they would outlive it.
func (t *tx) writeReceipt(it *attempted) (err error) {
	t.c.run(&err, `INSERT OR IGNORE INTO receipts`+receiptColumns, it.receipt.args()...)
	return err
}

// attemptedRow is what the store knows of a message when an attempt at it is recorded.
type attemptedRow struct {
	found, received bool // it has a row in receipts
	moved           bool // it came from another queue
	key, dead       int64
	history, reason string
	at              int64
	hasAttempts     bool
}

// attemptedTexts find a message by its origin: in the queue it was sent to, and elsewhere. Purged ones do not count.
var attemptedTexts = [...]string{attemptedText(`m.id = ?1 AND m.origin IS NULL`), attemptedText(`m.origin = ?1`)}

func attemptedText(where string) string {
	return `SELECT m.id, m.origin, m.dead, r.id, a.id, a.at, a.reason, a.history FROM messages m
		LEFT JOIN receipts r ON r.id = m.id LEFT JOIN attempts a ON a.id = m.id
		WHERE ` + where + ` AND NOT EXISTS (SELECT 1 FROM garbage g WHERE m.id > g.low AND m.id <= g.high)`
}

func (t *tx) findAttempted(origin int64) (found attemptedRow, err error) {
	for _, text := range attemptedTexts {
		err = t.c.query(func(row row) {
			found = attemptedRow{found: true, key: row.int(0), moved: row.int(1) != 0, dead: row.int(2),
				received: row.int(3) != 0, hasAttempts: row.int(4) != 0, at: row.int(5), reason: row.text(6),
				history: row.text(7)}
		}, text, origin)
		if found.found || err != nil {
			break
		}
	}
	return found, err
}

// writeAnywhere is writeAttempt for any message, wherever it is by now.
func (t *tx) writeAnywhere(it *attempted) error {
	m, err := t.findAttempted(it.origin)
	if err != nil || !m.found || !m.moved && !m.received && it.home == nil {
		return err
	}

	if !m.moved && !m.received {
		err = t.writeReceipt(it)
	}

	if m.hasAttempts {
		t.countReason(m.key, m.reason, m.at, -1)
	}

	at := it.at
	if m.dead != 0 {
		at = m.dead
	}

	t.c.run(&err, `INSERT INTO attempts (id, at, reason, history) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (id) DO UPDATE SET at = ?2, reason = ?3, history = ?4`,
		m.key, at, it.reason, lastLines(m.history, keptAttempts-1)+it.line)
	t.countReason(m.key, it.reason, at, 1)
	return err
}

// line is the attempt as a line of a history.
func (a *Attempt) line() string {
	var line strings.Builder
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(a); err != nil {
		return "" // never: times of 5 digits aside, everything encodes
	}
	return line.String()
}

// lastLines returns the last lines of a history, at most limit.
func lastLines(history string, limit int) string {
	for strings.Count(history, "\n") > limit {
		_, history, _ = strings.Cut(history, "\n")
	}
	return history
}

// readHistory returns the attempts of a history that are kept, the oldest first. What cannot be read is left out.
func readHistory(history string) (all []Attempt) {
	for line := range strings.Lines(lastLines(history, keptAttempts)) {
		var a Attempt
		if json.Unmarshal([]byte(line), &a) == nil {
			all = append(all, a)
		}
	}
	return all
}

// moveAttempts takes the attempts of a message along to another queue. dead is when it was dead-lettered, if this move
// does that: then the message has a row, even without an attempt, so that it counts by the hour.
func (t *tx) moveAttempts(from, to, dead int64) error {
	found := false
	at := dead
	reason := ""
	err := t.c.query(func(row row) {
		found = true
		at = row.int(0)
		reason = row.text(1)
	}, `SELECT at, reason FROM attempts WHERE id = ?`, from)
	switch {
	case err != nil || !found && dead == 0:
		return err
	case !found:
		t.c.run(&err, `INSERT INTO attempts (id, at, reason, history) VALUES (?, ?, '', '')`, to, dead)
	default:
		t.countReason(from, reason, at, -1)
		if dead != 0 {
			at = dead
		}
		t.c.run(&err, `UPDATE attempts SET id = ?, at = ? WHERE id = ?`, to, at, from)
	}

	t.countReason(to, reason, at, 1)
	return err
}
