package broker

import (
	"testing"
	"time"

	"tendril/queue"
)

func TestSizeCountsBodyAndAttributes(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := create(t, b, "work", nil)
	attributes := []queue.Attribute{{Name: "a", Type: "String", Value: "some text"}}
	send(t, q, queue.Outgoing{Body: "four", Attributes: attributes})
	size, want := integerOf(t, b, `SELECT size FROM messages`), int64(len("four")+len(encodeAttributes(attributes)))
	if size != want {
		t.Errorf("the size is %d, want %d", size, want)
	}
}

func TestDuplicatesWithinTheWindow(t *testing.T) {
	t.Parallel()
	b := openTest(t, nil)
	q := liveOf(t, create(t, b, "work.fifo", map[string]string{"FifoQueue": "true"}))
	const sentAt = 1_000_000
	r := &record{key: makeKey(q.index.number, 7), dedup: "d", group: "g"}
	for _, c := range []struct {
		after time.Duration
		floor int64
		want  int64
	}{
		{0, 0, r.key},
		{dedupWindow - time.Millisecond, 0, r.key},
		{dedupWindow, 0, 0},
		{time.Hour, 0, 0},
		{0, 6, r.key},
		{0, 7, 0},
		{0, 8, 0},
	} {
		var original int64
		err := b.writer.change(func(t *tx) {
			defer func(floor int64) { q.disk.floor = floor }(q.disk.floor)
			q.disk.floor = c.floor
			t.remember(q, r, q.settings(), sentAt)
			original = t.originalOf(q, r, q.settings(), sentAt+c.after.Milliseconds())
		}, func() {})
		if err != nil || original != c.want {
			t.Errorf("%s later, with all up to %d purged: a duplicate of %d, %v; want %d", c.after, c.floor, original, err,
				c.want)
		}
	}
}
