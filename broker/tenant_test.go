package broker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func sendFor(t testing.TB, q *Queue, tenant string, n int) {
	t.Helper()
	for from := 0; from < n; from += 10 {
		var msgs []queue.Outgoing
		for i := from; i < min(n, from+10); i++ {
			msgs = append(msgs, queue.Outgoing{Body: fmt.Sprint(tenant, i), GroupID: tenant})
		}
		send(t, q, msgs...)
	}
}

func receipts(msgs []queue.Message) (list []string) {
	for _, m := range msgs {
		list = append(list, m.ReceiptHandle)
	}
	return list
}

func of(msgs []queue.Message, tenant string) (n int) {
	for _, m := range msgs {
		if m.GroupID == tenant {
			n++
		}
	}
	return n
}

func TestFairQueueFewOfATenantDoNotWaitForManyOfAnother(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		receives int
		deleted  bool
	}{{"by processing time", 1, true}, {"by messages in flight", noisyFlights / 10, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := create(t, openTest(t, nil), "work", nil)
				sendFor(t, q, "many", 200)
				sendFor(t, q, "few", 5)
				for range c.receives {
					if got := take(t, q, 10); c.deleted {
						remove(t, q, receipts(got)...)
					}
				}
				if got := take(t, q, 10); of(got[:5], "few") != 5 {
					t.Errorf("received %s, want the five of the quiet tenant first", texts(got))
				}
			})
		})
	}
}

func deepBacklog() *Options {
	return limited(func(l *memoryLimits) { l.standard, l.fill, l.least = 40, 16, 4 })
}

// readAhead receives one message, so that the broker looks for messages of quiet tenants.
func readAhead(t *testing.T, q *Queue) {
	t.Helper()
	synctest.Wait()
	take(t, q, 1)
	synctest.Wait()
}

func TestFairQueueLooksBehindADeepBacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, deepBacklog())
		q := create(t, b, "work", nil)
		sendFor(t, q, "many", 1000)
		sendFor(t, q, "few", 5)
		send(t, q, queue.Outgoing{Body: "late", GroupID: "delayed", Delay: new(time.Second)})
		remove(t, q, receipts(take(t, q, 10))...)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		got := take(t, q, 6)
		if of(got, "few") != 5 || of(got, "delayed") != 1 {
			t.Errorf("received %s, want those that are behind the noisy tenant", texts(got))
		}
		remove(t, q, receipts(got)...)
		sendFor(t, q, "other", 3)
		send(t, q, body("without a tenant")...)
		if got := take(t, q, 10); of(got, "other") != 3 || of(got, "") != 1 {
			t.Errorf("received %s, want those that arrived last", texts(got))
		}
		if n, most := int(b.memory.fresh.Load()), 2*b.memory.limits.standard; n > most {
			t.Errorf("%d messages in memory, at most %d are allowed", n, most)
		}
	})
}

// The backlog is too old to show that the tenant still sends.
func TestFairQueueTenantThatKeepsSendingBecomesNoisyBehindAnOldBacklog(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]queue.Outgoing{
		"visible":   {},
		"delayed":   {Delay: new(time.Second)},
		"scheduled": {NotBefore: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := create(t, openTest(t, deepBacklog()), "work", nil)
				sendFor(t, q, "many", 1000)
				time.Sleep(2 * quietAfter)
				message.Body, message.GroupID = "new", "many"
				send(t, q, message)
				sendFor(t, q, "few", 5)
				remove(t, q, receipts(take(t, q, 10))...)
				readAhead(t, q)
				if got := take(t, q, 5); of(got, "few") != 5 {
					t.Errorf("received %s, want those of the quiet tenant", texts(got))
				}
			})
		})
	}
}

func TestFairQueueNoisyTenantStaysNoisyWhileItSends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, deepBacklog())
		q := create(t, b, "work", nil)
		sendFor(t, q, "many", 1000)
		remove(t, q, receipts(take(t, q, 10))...)
		readAhead(t, q)
		sendFor(t, q, "few", 3*b.memory.limits.standard)
		for range 2 {
			time.Sleep(quietAfter - time.Minute)
			sendFor(t, q, "many", 1)
		}
		if got := take(t, q, quietShare); of(got, "few") != quietShare {
			t.Errorf("received %s, want those of the quiet tenant", texts(got))
		}
	})
}

func TestFairQueueTenantOfAScheduledMessageIsQuietAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := create(t, openTest(t, nil), "work", map[string]string{"VisibilityTimeout": "43200"})
		sendFor(t, q, "a", 100)
		send(t, q, queue.Outgoing{Body: "later", GroupID: "a", NotBefore: time.Now().Add(24 * time.Hour)})
		for range 4 {
			take(t, q, 10)
		}
		time.Sleep(quietAfter + time.Minute)
		sendFor(t, q, "b", 1)
		if got := take(t, q, 1); of(got, "a") != 1 {
			t.Errorf("received %s: a has sent nothing for 5 minutes, and its messages are older", texts(got))
		}
	})
}

func TestFairQueueLosesNothing(t *testing.T) {
	t.Parallel()
	b := openTest(t, deepBacklog())
	q := create(t, b, "work", nil)
	seen, want := map[string]int{}, 0
	for round := range 12 {
		sendFor(t, q, fmt.Sprint("many", round%3, "-"), 120)
		sendFor(t, q, fmt.Sprint("few", round, "-"), 3)
		want += 123
		for range 4 {
			msgs := take(t, q, 10)
			for _, m := range msgs {
				seen[m.GroupID+m.Body+m.ID]++
			}
			remove(t, q, receipts(msgs)...)
		}
		if round == 6 {
			if n, err := b.DeleteMessages(t.Context(), "work", ids(t, b, "work")[:1]); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			want--
		}
	}
	for msgs := take(t, q, 10); len(msgs) > 0; msgs = take(t, q, 10) {
		for _, m := range msgs {
			seen[m.GroupID+m.Body+m.ID]++
		}
		remove(t, q, receipts(msgs)...)
	}
	for m, n := range seen {
		if n != 1 {
			t.Errorf("%s came %d times", m, n)
		}
	}
	if len(seen) != want {
		t.Errorf("%d messages came, want %d", len(seen), want)
	}
	if n := b.memory.fresh.Load(); n != 0 {
		t.Errorf("%d messages are counted in memory, and there are none", n)
	}
}

func TestFairQueueAmongNoisyTenantsTheFewestInFlightIsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := create(t, openTest(t, nil), "work", nil)
		sendFor(t, q, "a", 100)
		for range 5 {
			take(t, q, 10)
		}
		sendFor(t, q, "b", 100)
		for range 4 {
			if got := take(t, q, 10); of(got, "b") < 9 {
				t.Fatalf("received %s, want those of the tenant that is quiet, or has fewer in flight", texts(got))
			}
		}
		for range 2 {
			take(t, q, 10)
		}
		if got := take(t, q, 10); of(got, "a") != 5 || of(got, "b") != 5 {
			t.Errorf("received %s, want both in turn: they have the same number in flight", texts(got))
		}
	})
}

func TestFairQueueNoisyTenantIsQuietAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		q := create(t, b, "work", map[string]string{"VisibilityTimeout": "43200"})
		sendFor(t, q, "a", 100)
		for range 4 {
			take(t, q, 10)
		}
		sendFor(t, q, "b", 1)
		if got := take(t, q, 1); of(got, "b") != 1 {
			t.Fatalf("received %s: a is noisy", texts(got))
		}
		time.Sleep(6 * time.Minute)
		sendFor(t, q, "b", 1)
		for range 3 {
			got := take(t, q, 1)
			if of(got, "a") != 1 {
				t.Errorf("received %s: a has sent nothing for 5 minutes, and its messages are older", texts(got))
			}
			remove(t, q, receipts(got)...)
		}
		live := liveOf(t, q)
		live.mu.Lock()
		defer live.mu.Unlock()
		if s := live.index.order.(*standardOrder); len(s.byID) != 2 {
			t.Errorf("%d tenants", len(s.byID))
		}
	})
}

func TestFairQueueNoisyTenantDoesNotStarve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := create(t, openTest(t, nil), "work", nil)
		sendFor(t, q, "noisy", 200)
		for range 4 {
			take(t, q, 10)
		}
		noisy := 0
		for range 10 {
			var msgs []queue.Outgoing
			for range 10 {
				msgs = append(msgs, queue.Outgoing{Body: "x"})
			}
			send(t, q, msgs...)
			got := take(t, q, 10)
			noisy += of(got, "noisy")
			remove(t, q, receipts(got)...)
		}
		if noisy < 8 || noisy > 12 {
			t.Errorf("the noisy tenant got %d of 100 receives, want about a tenth", noisy)
		}
	})
}

func TestFairQueueForgetsTenants(t *testing.T) {
	t.Parallel()
	b := openTest(t, quiet())
	q := create(t, b, "work", nil)
	for i := range 600 {
		var msgs []queue.Outgoing
		for j := range 10 {
			msgs = append(msgs, queue.Outgoing{Body: "x", GroupID: strings.Repeat("g", 100) + fmt.Sprint(i*10+j)})
		}
		send(t, q, msgs...)
		got, err := q.Receive(context.Background(), queue.ReceiveRequest{Max: 10})
		if err != nil {
			t.Fatal(err)
		}
		remove(t, q, receipts(got)...)
	}
	live := liveOf(t, q)
	live.mu.Lock()
	defer live.mu.Unlock()
	if n := len(live.index.order.(*standardOrder).byID); n > fewTenants {
		t.Errorf("memory knows %d tenants, and there are no messages", n)
	}
}
