package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tendril/queue"
)

type testRoom struct {
	err  error
	kept int64
}

func (r *testRoom) Acquire(context.Context) error {
	if r.kept > 0 {
		return fmt.Errorf("acquired while %d bytes are kept", r.kept)
	}
	return r.err
}

func (r *testRoom) Keep(bytes int64) { r.kept = bytes }

func TestReceiveReleasesMemoryOfUndeliveredMessages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := openDir(t, dir, quiet())
	q := create(t, b, "jobs", nil)
	body := strings.Repeat("a", keepContent+1) // not cached
	id := send(t, q, queue.Outgoing{Body: body})[0].ID
	spoil(t, dir, body)
	var room testRoom
	msgs, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Room: &room})
	if err != nil || len(msgs) > 0 || room.kept != 0 {
		t.Errorf("received %d messages, kept %d bytes, %v; want none", len(msgs), room.kept, err)
	}
	if n, err := b.DeleteMessages(t.Context(), "jobs", []string{id}); n != 1 || err != nil {
		t.Errorf("%d messages deleted, %v", n, err)
	}
}

func TestReceiveStopsAtItsMemoryLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		fifo       bool
		size, want int
	}{
		{"large", false, 200 << 10, 2},
		{"of the largest size", false, 1 << 20, 1},
		{"small", false, 100, 4},
		{"large of one group", true, 200 << 10, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, name, attributes := t.TempDir(), "jobs", map[string]string{"VisibilityTimeout": "600"}
			out := make([]queue.Outgoing, 4)
			for i := range out {
				out[i] = queue.Outgoing{Body: strings.Repeat(string(rune('a'+i)), c.size)}
				if c.fifo {
					out[i].GroupID = "g"
				}
			}
			if c.fifo {
				name, attributes["FifoQueue"], attributes["ContentBasedDeduplication"] = "jobs.fifo", "true", "true"
			}
			for _, reopened := range []bool{false, true} {
				b := openDir(t, dir, nil)
				q := create(t, b, name, attributes)
				for i := range out {
					if !reopened {
						send(t, q, out[i])
					}
				}
				room := testRoom{err: errors.New("no room")}
				if _, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 10, Room: &room}); !errors.Is(err, room.err) {
					t.Errorf("without room: %v", err)
				}
				room.err = nil
				msgs, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 10, Room: &room})
				if err != nil || len(msgs) != c.want || room.kept != int64(c.want*c.size) {
					t.Errorf("received %d, kept %d bytes, %v; want %d messages", len(msgs), room.kept, err, c.want)
				}
				for _, m := range msgs {
					if m.ReceiveCount != 1 {
						t.Errorf("received %d times", m.ReceiveCount)
					}
					unread(t, q, m)
				}
				closeBroker(t, b)
			}
		})
	}
}
