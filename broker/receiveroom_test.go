package broker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tendril/queue"
)

type testRoom struct {
	err  error
	kept int64
}

func (r *testRoom) Acquire(context.Context) error { return r.err }
func (r *testRoom) Keep(bytes int64)              { r.kept = bytes }

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
