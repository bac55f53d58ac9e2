package broker

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func killed(t *testing.T, b *Broker) *Broker {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "killed")
	copyDir(t, b.dir, dir)
	return openDir(t, dir, nil)
}

func receiveToPost(t *testing.T, q *Queue) queue.Message {
	t.Helper()
	msgs, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 1, CountAtPost: true})
	if err != nil || len(msgs) != 1 {
		t.Fatalf("received %d messages, %v", len(msgs), err)
	}
	return msgs[0]
}

func TestReceiveJustBeforeAKillCounts(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		name, attributes := "work", map[string]string{}
		if fifo {
			name, attributes = "work.fifo", fifoAttributes
		}
		out := func(text string) queue.Outgoing {
			m := queue.Outgoing{Body: text}
			if fifo {
				m.GroupID = text
			}
			return m
		}
		tests := []struct {
			name string
			act  func(t *testing.T, q *Queue)
			want int
		}{
			{"waiting", func(*testing.T, *Queue) {}, 1},
			{"received", func(t *testing.T, q *Queue) { one(t, q) }, 2},
			{"received twice", func(t *testing.T, q *Queue) {
				q.ChangeVisibility(t.Context(), changes(one(t, q).ReceiptHandle))
				one(t, q)
			}, 3},
			{"fetched by a worker", func(t *testing.T, q *Queue) { receiveToPost(t, q) }, 1},
			{"fetched and posted", func(t *testing.T, q *Queue) { q.Posting(receiveToPost(t, q).ReceiptHandle) }, 2},
			{"posted, then fetched", func(t *testing.T, q *Queue) {
				m := receiveToPost(t, q)
				q.Posting(m.ReceiptHandle)
				q.ChangeVisibility(t.Context(), changes(m.ReceiptHandle))
				receiveToPost(t, q)
			}, 2},
			{"given back, then posted", func(t *testing.T, q *Queue) {
				unread(t, q, receiveToPost(t, q))
				q.Posting(receiveToPost(t, q).ReceiptHandle)
			}, 2},
			{"posted, then returned unread", func(t *testing.T, q *Queue) {
				m := receiveToPost(t, q)
				q.Posting(m.ReceiptHandle)
				unread(t, q, m)
			}, 1},
			{"posted with an earlier receipt handle", func(t *testing.T, q *Queue) {
				m := receiveToPost(t, q)
				unread(t, q, m)
				receiveToPost(t, q)
				q.Posting(m.ReceiptHandle)
			}, 1},
		}
		for _, test := range tests {
			t.Run(fmt.Sprint(name, "/", test.name), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := openTest(t, nil)
					q := create(t, b, name, attributes)
					send(t, q, out("a"))
					test.act(t, q)
					b = killed(t, b)
					if got := one(t, b.Queue(name)).ReceiveCount; got != test.want {
						t.Errorf("received %d times, want %d", got, test.want)
					}
				})
			})
		}
	}
}

func TestPoisonMessageThatKillsAtOnceIsDeadLettered(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", ".fifo"} {
		t.Run("work"+suffix, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { killByPoison(t, suffix) })
		})
	}
}

func killByPoison(t *testing.T, suffix string) {
	b := openTest(t, nil)
	attributes := map[string]string{}
	if suffix != "" {
		attributes = fifoAttributes
	}
	create(t, b, "dead"+suffix, attributes)
	create(t, b, "work"+suffix, attributes)
	redrive := map[string]string{"RedrivePolicy": policy(b, "dead"+suffix, 3)}
	if err := b.SetAttributes(t.Context(), "work"+suffix, redrive); err != nil {
		t.Fatal(err)
	}
	out := queue.Outgoing{Body: "poison"}
	if suffix != "" {
		out.GroupID = "g"
	}
	send(t, b.Queue("work"+suffix), out)
	for want := 1; want <= 3; want++ {
		m := receiveToPost(t, b.Queue("work"+suffix))
		if m.ReceiveCount != want || m.Attempt != want {
			t.Errorf("receive %d of %d, attempt %d", m.ReceiveCount, want, m.Attempt)
		}
		b.Queue("work" + suffix).Posting(m.ReceiptHandle)
		b = killed(t, b)
	}
	for range 5 {
		if got := take(t, b.Queue("work"+suffix), 1); len(got) != 0 {
			t.Fatalf("received a fourth time: %+v", got)
		}
	}
	if l, _ := b.Ledger("dead" + suffix); l.Live != 1 {
		t.Errorf("the dead-letter queue has %+v", l)
	}
}

func TestUnpostedMessagesAreNeverDeadLetteredByKills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		_, _ = deadLetters(t, b, 0)
		send(t, b.Queue("work"), body("a")...)
		for i := range 4 {
			if got := receiveToPost(t, b.Queue("work")); got.ReceiveCount != 1 {
				t.Fatalf("received %d times", got.ReceiveCount)
			}
			if i%2 == 0 {
				storeReceives(t, b.Queue("work"))
			}
			b = killed(t, b)
			live := liveOf(t, b.Queue("work"))
			live.mu.Lock()
			for _, m := range live.index.held {
				live.changeVisibility(m, live.broker.clock.now(), 0)
			}
			live.mu.Unlock()
		}
	})
}

func TestMarksAreDroppedWithTheirReceives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		q := create(t, b, "work", nil)
		marked := func() int {
			b.marks.mu.Lock()
			defer b.marks.mu.Unlock()
			return int(b.marks.used) - len(b.marks.free)
		}
		for range 3 {
			send(t, q, body("a", "b", "c", "d", "e", "f")...)
			msgs := take(t, q, 4)
			if n := marked(); n != 4 {
				t.Fatalf("%d marks of four receives", n)
			}
			remove(t, q, msgs[0].ReceiptHandle, msgs[1].ReceiptHandle)
			if n := marked(); n != 2 {
				t.Errorf("%d marks after two of four were deleted", n)
			}
			storeReceives(t, q)
			if n := marked(); n != 0 {
				t.Errorf("%d marks after the receives were stored", n)
			}
			take(t, q, 2)
			if _, err := b.PurgeQueue(t.Context(), "work"); err != nil {
				t.Fatal(err)
			}
			if n := marked(); n != 0 {
				t.Errorf("%d marks after a purge", n)
			}
		}
		if b.marks.used > 4 {
			t.Errorf("%d places were used for four marks at once", b.marks.used)
		}
	})
}

func TestOutdatedAndPartialMarksDoNotCount(t *testing.T) {
	t.Parallel()
	m := mark{key: makeKey(3, 7), first: 5, serial: 2, received: 1}
	var text [markSize]byte
	m.encode(text[:], 4)
	if got, ok := decodeMark(text[:], 4); !ok || got != m {
		t.Errorf("decoded %+v, %v", got, ok)
	}
	if _, ok := decodeMark(text[:], 5); ok {
		t.Error("a mark of another life counts")
	}
	for i := range text {
		half := text
		half[i] ^= 1
		if _, ok := decodeMark(half[:], 4); ok {
			t.Errorf("a mark with byte %d changed counts", i)
		}
	}
	if _, ok := decodeMark(make([]byte, markSize), 0); ok {
		t.Error("an empty place counts")
	}
}

func BenchmarkMark(b *testing.B) {
	var k receiveMarks
	if _, err := k.open(b.TempDir(), 1); err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := k.close(); err != nil {
			b.Error(err)
		}
	}()
	m := &message{key: makeKey(1, 1), count: 1, epoch: 2}
	for b.Loop() {
		k.put(m)
		k.drop(m)
	}
}

func TestReceiveIsStoredWhenDeadLetteringFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := openDir(t, dir, quiet())
		create(t, b, "dead", nil)
		q := create(t, b, "work", map[string]string{"VisibilityTimeout": "3600", "RedrivePolicy": policy(b, "dead", 5)})
		send(t, q, body("x")...)
		m := one(t, q)

		release := blockWriter(t, b)
		go func() { _ = b.DeleteQueue(t.Context(), "dead") }()
		synctest.Wait()
		var errs []error
		go func() {
			errs = q.DeadLetter(t.Context(), []queue.DeadLetter{{Message: &queue.Message{}}, {Message: &m}})
		}()
		time.Sleep(time.Second) // the receive is due to be stored
		release()
		time.Sleep(time.Second)
		if len(errs) != 2 || !errors.Is(errs[1], errReceipt(m.ReceiptHandle, receiptExpired)) {
			t.Errorf("dead-lettered: %v", errs)
		}
		closeBroker(t, b)

		b = openDir(t, dir, quiet())
		if l, err := b.Ledger("work"); l.InFlight != 1 || err != nil {
			t.Errorf("after a restart within the visibility timeout: %+v, %v", l, err)
		}
	})
}

func TestVisibilityTimeoutOfAMessageThatStaysIsStoredAtTheClose(t *testing.T) {
	t.Parallel()
	for name, closeDuringRemoval := range map[string]func(t *testing.T, b *Broker, m queue.Message){
		"delete": func(t *testing.T, b *Broker, m queue.Message) {
			r := &removal{ctx: t.Context(), q: liveOf(t, b.Queue("work")), cause: CauseDone}
			key, _ := b.seal.origin(m.ID)
			var err error
			if r.messages, err = r.q.reserveKeys([]int64{key}); err != nil || len(r.messages) != 1 {
				t.Fatalf("reserved %d messages, %v", len(r.messages), err)
			}
			closeBroker(t, b)
			if err := b.writer.do(r, needsNothing); !errors.Is(err, queue.ErrClosed) {
				t.Errorf("deleting after the close: %v", err)
			}
		},
		"move into a deleted queue": func(t *testing.T, b *Broker, m queue.Message) {
			release := blockWriter(t, b)
			go func() { _ = b.DeleteQueue(t.Context(), "dead") }()
			synctest.Wait()
			go func() { _, _ = b.Move(t.Context(), "work", "dead", []string{m.ID}) }()
			synctest.Wait()
			closed := make(chan error)
			go func() { closed <- b.Close() }()
			synctest.Wait()
			release()
			if err := <-closed; err != nil {
				t.Errorf("closing: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				b := openDir(t, dir, quiet())
				create(t, b, "dead", nil)
				q := create(t, b, "work", map[string]string{"VisibilityTimeout": "3600"})
				send(t, q, body("x")...)

				closeDuringRemoval(t, b, one(t, q))

				b = openDir(t, dir, quiet())
				if l, err := b.Ledger("work"); l.Live != 1 || l.InFlight != 1 || err != nil {
					t.Errorf("after a restart within the visibility timeout: %+v, %v", l, err)
				}
				time.Sleep(time.Hour)
				if m := one(t, b.Queue("work")); m.ReceiveCount != 2 {
					t.Errorf("receive %d, want 2", m.ReceiveCount)
				}
			})
		})
	}
}
