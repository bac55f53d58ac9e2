package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"tendril/queue"
)

// Attempt is a failed delivery of a message.
type Attempt struct {
	At       time.Time `json:"at"`
	Instance string    `json:"instance,omitempty"`
	// Outcome to Duration have the meaning of [queue.Result]'s fields; Answer may be its Excerpt.
	Outcome      string        `json:"outcome"`
	Status       int           `json:"status,omitempty"`
	Reason       string        `json:"reason,omitempty"`
	Answer       string        `json:"answer,omitempty"`
	Duration     time.Duration `json:"duration"`
	ReceiveCount int           `json:"receive_count,omitempty"`
	RetryAt      time.Time     `json:"retry_at,omitzero"` // when the message becomes visible again; zero if unknown
}

const (
	keptAttempts = 10
	// keptAnswer and keptText limit stored texts, in bytes.
	keptAnswer         = 1 << 10
	keptText           = 512
	attemptBatch       = 256
	attemptLinger      = 200 * time.Millisecond
	maxPendingAttempts = 10_000
	dropLogInterval    = time.Minute
)

func (a Attempt) bounded() Attempt {
	a.At = a.At.UTC().Truncate(time.Millisecond)
	a.RetryAt = a.RetryAt.UTC().Truncate(time.Millisecond)
	a.Duration = a.Duration.Truncate(time.Microsecond)
	a.Answer = cutText(a.Answer, keptAnswer)
	a.Instance = cutText(a.Instance, keptText)
	a.Outcome = cutText(a.Outcome, keptText)
	a.Reason = cutText(a.Reason, keptText)
	return a
}

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

// RecordAttempt asynchronously stores a failed delivery of a message received from the named queue. If it cannot,
// for example because the disk is full, it drops the attempt.
func (b *Broker) RecordAttempt(name, messageID string, a Attempt) {
	origin, ok := b.seal.origin(messageID)
	if !ok {
		return
	}
	q, err := b.live(name)
	if err != nil || b.background.closing.Load() {
		return
	}

	a = a.bounded()
	it := pendingAttempt{origin: origin, at: a.At.UnixMilli(), line: a.line(), reason: b.attempts.reasonOf(&a)}
	q.mu.Lock()
	if m := q.index.held[origin]; m != nil && !m.claimed {
		it.originalQueue = q
		it.receipt = m.receiptRow(b.clock)
		it.hasEarlier = m.failed
		m.stored = true
		m.failed = true
	}
	q.mu.Unlock()

	b.attempts.add(it)
}

type pendingAttempt struct {
	origin        int64
	at            int64 // Unix milliseconds
	line          string
	reason        string     // see [queue.FailureGroup]
	originalQueue *liveQueue // nil if the message was moved or is not in memory
	receipt       receiptRow
	hasEarlier    bool
}

type attemptLog struct {
	b             *Broker
	mu            sync.Mutex
	pending       []pendingAttempt
	inWriter      int
	alarm         alarm
	dropped       int
	droppedLogged time.Time
	latest        struct {
		attempt Attempt
		reason  string
	}
}

func (l *attemptLog) reasonOf(a *Attempt) string {
	l.mu.Lock()
	latest, reason := l.latest.attempt, l.latest.reason
	l.mu.Unlock()
	if reason != "" && a.Status == latest.Status && a.Reason == latest.Reason && a.Answer == latest.Answer {
		return reason
	}
	reason = queue.FailureGroup(a.Status, a.Reason, a.Answer)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest.attempt, l.latest.reason = *a, reason
	return reason
}

func (l *attemptLog) add(it pendingAttempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending)+l.inWriter >= maxPendingAttempts {
		l.countDropped(1)
		return
	}

	l.pending = append(l.pending, it)
	switch {
	case len(l.pending) >= attemptBatch:
		l.submit()
	case len(l.pending) == 1:
		l.alarm.setUnlessSet(attemptLinger)
	}
}

func (l *attemptLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.submit()
}

// The caller must hold l.mu.
func (l *attemptLog) submit() {
	l.alarm.stop()
	if len(l.pending) == 0 {
		return
	}

	if l.b.writer.submit(&attemptStore{log: l, items: l.pending}, needsSpace, nil) == nil {
		l.inWriter += len(l.pending)
	} else {
		l.countDropped(len(l.pending))
	}
	l.pending = nil
}

func (l *attemptLog) countDropped(n int) {
	l.dropped += n
	if time.Since(l.droppedLogged) >= dropLogInterval {
		l.b.log.Warn("attempts not recorded", "dir", l.b.dir, "attempts", l.dropped)
		l.dropped = 0
		l.droppedLogged = time.Now()
	}
}

func (l *attemptLog) flushAndWait(ctx context.Context) {
	l.mu.Lock()
	l.submit()
	unfinished := l.inWriter
	l.mu.Unlock()
	if unfinished > 0 {
		// On an error, the read that follows may miss recent attempts.
		_ = l.b.writer.doUntil(ctx, &change{run: func(*tx) {}}, needsNothing)
	}
}

type attemptStore struct {
	log   *attemptLog
	items []pendingAttempt
}

func (s *attemptStore) onCommit(err error) error {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inWriter -= len(s.items)
	if err != nil {
		l.countDropped(len(s.items))
	}
	return err
}

func (s *attemptStore) apply(t *tx) {
	// Attempts must not be added to messages that this transaction has deleted.
	t.flushRows()
	for i := range s.items {
		it := &s.items[i]
		if !t.writeInOriginalQueue(it) {
			t.writeInAnyQueue(it)
		}
	}
}

// Histories of at least maxAppended bytes are rewritten and trimmed instead of appended to.
const maxAppended = 4 << 10

const firstAttempt = `INSERT OR IGNORE INTO attempts (id, at, reason, history)
	SELECT id, ?2, ?3, ?4 FROM messages WHERE id = ?1 AND origin IS NULL`

// appendAttempt requires the same reason and hour as the previous attempt, because it does not update the counts.
var appendAttempt = fmt.Sprintf(`UPDATE attempts SET at = ?2, history = history || ?4
	WHERE id = ?1 AND reason = ?3 AND at / %d = ?2 / %[1]d AND octet_length(history) < %d`, hourMillis, maxAppended)

// writeInOriginalQueue writes an attempt without reading the message, or returns false if that requires a read.
func (t *tx) writeInOriginalQueue(it *pendingAttempt) (written bool) {
	if it.originalQueue == nil || t.gone(it.originalQueue) || keySeq(it.origin) <= it.originalQueue.disk.floor {
		return false
	}
	if it.hasEarlier {
		return t.exec(appendAttempt, it.origin, it.at, it.reason, it.line) > 0
	}

	if t.exec(firstAttempt, it.origin, it.at, it.reason, it.line) == 0 {
		return false
	}
	t.countReason(it.origin, it.reason, it.at, 1)
	t.writeReceipt(it)
	return true
}

// writeReceipt adds a receipts row, so that deleting an unmoved message also deletes its attempts.
func (t *tx) writeReceipt(it *pendingAttempt) {
	t.exec(`INSERT OR IGNORE INTO receipts`+receiptColumns, it.receipt.args()...)
}

type attemptTarget struct {
	found, received bool
	moved           bool
	key, dead       int64
	history, reason string
	at              int64
	hasAttempts     bool
}

func (t *tx) findAttemptTarget(origin int64) (found attemptTarget) {
	t.query(func(row row) {
		found = attemptTarget{found: true, key: row.int(0), moved: row.int(1) != 0, dead: row.int(2),
			received: row.int(3) != 0, hasAttempts: row.int(4) != 0, at: row.int(5), reason: row.text(6),
			history: row.text(7)}
	}, `SELECT m.id, m.origin, m.dead, r.id, a.id, a.at, a.reason, a.history FROM messages m
		LEFT JOIN receipts r ON r.id = m.id LEFT JOIN attempts a ON a.id = m.id
		WHERE (m.id = ?1 AND m.origin IS NULL OR m.origin = ?1)
		AND NOT EXISTS (SELECT 1 FROM garbage g WHERE m.id > g.low AND m.id <= g.high)`, origin)
	return found
}

func (t *tx) writeInAnyQueue(it *pendingAttempt) {
	m := t.findAttemptTarget(it.origin)
	if !m.found {
		return
	}
	if !m.moved && !m.received {
		if it.originalQueue == nil {
			return // a delete would leave the attempts
		}
		t.writeReceipt(it)
	}

	at := it.at
	if m.dead != 0 {
		at = m.dead
	}
	if m.hasAttempts {
		t.countReason(m.key, m.reason, m.at, -1)
	}
	t.countReason(m.key, it.reason, at, 1)
	t.exec(`INSERT INTO attempts (id, at, reason, history) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (id) DO UPDATE SET at = ?2, reason = ?3, history = ?4`,
		m.key, at, it.reason, lastLines(m.history, keptAttempts-1)+it.line)
}

func (a *Attempt) line() string {
	var line strings.Builder
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(a); err != nil {
		return "" // impossible for the years 0 to 9999
	}
	return line.String()
}

func lastLines(history string, limit int) string {
	for strings.Count(history, "\n") > limit {
		_, history, _ = strings.Cut(history, "\n")
	}
	return history
}

func readHistory(history string) (all []Attempt) {
	for line := range strings.Lines(lastLines(history, keptAttempts)) {
		var a Attempt
		if json.Unmarshal([]byte(line), &a) == nil {
			all = append(all, a)
		}
	}
	return all
}

// moveAttempts changes the key of a message's attempts. dead is the time of dead-lettering, or 0. Dead letters always
// get a row, so that the hourly counts include them.
func (t *tx) moveAttempts(from, to, dead int64) {
	found := false
	at := int64(0)
	reason := ""
	t.query(func(row row) {
		found = true
		at = row.int(0)
		reason = row.text(1)
	}, `SELECT at, reason FROM attempts WHERE id = ?`, from)

	switch {
	case found:
		t.countReason(from, reason, at, -1)
		if dead != 0 {
			at = dead
		}
		t.countReason(to, reason, at, 1)
		t.exec(`UPDATE attempts SET id = ?, at = ? WHERE id = ?`, to, at, from)
	case dead != 0:
		t.countReason(to, "", dead, 1)
		t.exec(`INSERT INTO attempts (id, at, reason, history) VALUES (?, ?, '', '')`, to, dead)
	}
}
