package broker

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tendril/internal/access"
	"tendril/queue"
)

// SetAttributes changes all the given attributes of a queue, or none. As in SQS, existing messages get a new
// retention period, but a new delay only on a FIFO queue.
func (b *Broker) SetAttributes(ctx context.Context, name string, attrs map[string]string) error {
	attrs = canonicalAttributes(attrs)
	return b.administer(ctx, name, func(q *liveQueue) error { return b.setAttributes(q, attrs) })
}

func (b *Broker) setAttributes(q *liveQueue, attrs map[string]string) error {
	old := q.settings()
	if err := checkTypeUnchanged(old.fifo, attrs); err != nil {
		return err
	}
	merged := mergeAttributes(q.description().attributes, attrs)
	set, err := parseSettings(old.fifo, merged)
	if err != nil {
		return err
	}
	if policy, given := attrs["RedrivePolicy"]; given {
		if err := b.checkRedrive(q.name, &set, policy); err != nil {
			return err
		}
	}

	now := stamp()
	return b.writer.change(
		func(t *tx) { t.writeSettings(q, merged, old, &set, now) },
		func() { q.publishSettings(merged, old, set, now) },
	)
}

func checkTypeUnchanged(fifo bool, attrs map[string]string) error {
	value, given := attrs["FifoQueue"]
	switch {
	case !given:
		return nil
	case !fifo:
		return queue.Errorf(queue.CodeInvalidAttributeName, "Unknown Attribute FifoQueue.")
	case value != "true":
		return queue.Errorf(queue.CodeInvalidAttributeValue,
			"Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.")
	}
	return nil
}

func (t *tx) writeSettings(q *liveQueue, attributes map[string]string, old, set *settings, now int64) {
	if t.gone(q) {
		return
	}
	t.exec(`UPDATE queues SET attributes = ?, modified = ? WHERE number = ?`, toJSON(attributes), now,
		q.index.number)
	if delayChanged(old, set) {
		t.changeDelays(q, set.delay)
	}
}

func delayChanged(old, set *settings) bool { return set.fifo && old.delay != set.delay }

func (t *tx) changeDelays(q *liveQueue, delay time.Duration) {
	t.flushRows()
	low := makeKey(q.index.number, q.disk.floor)
	// Earlier messages are so old that no delay hides them.
	lastVisible := t.integer(`SELECT max(id) FROM messages WHERE id > ? AND id <= ? AND sent < ?`, low,
		q.index.high(), stamp()-maxDelay.Milliseconds())
	t.exec(`UPDATE messages SET due = (sent + ?1 + ?2 - 1) / ?2 * ?2 WHERE id > ?3 AND id <= ?4`,
		orNull(delay.Milliseconds()), int64(delayGrid), max(low, lastVisible), q.index.high())
}

func (q *liveQueue) publishSettings(attributes map[string]string, old *settings, set settings, now int64) {
	q.mu.Lock()
	q.describe(func(d *description) {
		d.set = set
		d.attributes = attributes
		d.modified = now
	})
	if old.retention != set.retention {
		q.restartRetention()
	}
	q.mu.Unlock()

	if delayChanged(old, &set) {
		q.reloadDelays()
	}
}

// restartRetention also makes messages deliverable that had expired before. The caller must hold the lock.
func (q *liveQueue) restartRetention() {
	q.index.cutoff = 0
	q.index.resetWindow()
	for _, m := range q.index.held {
		if !m.inFlight && m.eligible() {
			q.index.order.requeue(m)
		}
	}

	q.sweepNow()
	q.wakeAfterRemoval(1)
}

func (q *liveQueue) reloadDelays() {
	err := q.broker.read(func(c *conn) error {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.index.resetWindow()
		return q.loadDelays(c)
	})
	if err != nil {
		q.broker.log.Error("reading the delays of a queue failed", "queue", q.name,
			"err", loggedError(q.broker.dir, err))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.setAlarm()
	q.wakeAfterRemoval(1)
}

// Attributes returns a queue's attributes under their SQS names, with exact message counts.
func (b *Broker) Attributes(name string) (map[string]string, error) {
	q, err := b.live(name)
	if err != nil {
		return nil, err
	}

	q.lockAndExpire()
	defer q.mu.Unlock()
	d := q.description()
	all := effectiveAttributes(d.set.fifo, d.attributes)
	l := q.index.ledger()
	all["QueueArn"] = q.arn
	all["CreatedTimestamp"] = strconv.FormatInt(q.created/1000, 10)
	all["LastModifiedTimestamp"] = strconv.FormatInt(d.modified/1000, 10)
	all["ApproximateNumberOfMessages"] = strconv.FormatInt(l.Visible, 10)
	all["ApproximateNumberOfMessagesNotVisible"] = strconv.FormatInt(l.InFlight, 10)
	all["ApproximateNumberOfMessagesDelayed"] = strconv.FormatInt(l.Delayed, 10)
	return all, nil
}

// Policy returns a queue's policy, or nil if there is no policy or no such queue.
func (b *Broker) Policy(name string) *access.Policy {
	q, err := b.live(name)
	if err != nil {
		return nil
	}
	return q.settings().policy
}

// Tags returns a queue's tags.
func (b *Broker) Tags(name string) (map[string]string, error) {
	q, err := b.live(name)
	if err != nil {
		return nil, err
	}
	return q.tags(), nil
}

func (q *liveQueue) tags() map[string]string {
	tags := map[string]string{}
	maps.Copy(tags, q.description().tags)
	return tags
}

// SetTags adds or replaces the tags in add and removes the keys in remove. A queue has at most 50 tags. A key has 1
// to 128 letters, digits, spaces and _.:/=+-@, and does not start with "aws:"; a value has at most 256 characters.
// Otherwise SetTags returns InvalidParameterValue.
func (b *Broker) SetTags(ctx context.Context, name string, add map[string]string, remove []string) error {
	return b.administer(ctx, name, func(q *liveQueue) error {
		tags := q.tags()
		maps.Copy(tags, add)
		for _, key := range remove {
			delete(tags, key)
		}
		if err := checkTags(name, tags, add); err != nil {
			return err
		}
		return b.writer.change(func(t *tx) {
			t.exec(`UPDATE queues SET tags = ? WHERE number = ?`, toJSON(tags), q.index.number)
		}, func() { q.describe(func(d *description) { d.tags = tags }) })
	})
}

const (
	maxTags     = 50
	maxTagKey   = 128 // in characters
	maxTagValue = 256 // in characters
)

// notInTagKey follows AWS's "Tag naming limits and requirements".
func notInTagKey(c rune) bool {
	return c != ' ' && !unicode.IsLetter(c) && !unicode.IsNumber(c) && !strings.ContainsRune("_.:/=+-@", c)
}

func checkTags(name string, all, added map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(added)) {
		if n := utf8.RuneCountInString(key); n < 1 || n > maxTagKey {
			return errInvalid("Tag keys must be between 1 and %d characters in length: %s", maxTagKey, clip(key))
		}
		if strings.HasPrefix(strings.ToLower(key), "aws:") || strings.ContainsFunc(key, notInTagKey) {
			return errInvalid(
				"Tag keys can only include letters, digits, spaces and _.:/=+-@, and must not begin with aws: %s",
				clip(key))
		}
		if utf8.RuneCountInString(added[key]) > maxTagValue {
			return errInvalid("Tag values must be between 0 and %d characters in length: the value of %s is longer.",
				maxTagValue, clip(key))
		}
	}

	if len(all) > maxTags {
		return errInvalid("Too many tags added for queue %s.", name)
	}
	return nil
}
