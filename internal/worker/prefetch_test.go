package worker

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

func TestPrefetch(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	now := time.Now()
	tests := []struct {
		name               string
		limit              int
		service, roundTrip time.Duration
		body               float64
		visibility         time.Duration
		idle               time.Duration
		want               int
	}{
		{name: "nothing known", limit: 50, want: 0},
		{name: "speed of the app known, queue not", limit: 50, service: 10 * ms, want: 10},
		{name: "50 slots, 10 ms, 10 ms", limit: 50, service: 10 * ms, roundTrip: 10 * ms, want: 85},
		{name: "10 slots, 10 ms, 10 ms", limit: 10, service: 10 * ms, roundTrip: 10 * ms, want: 25},
		{name: "10 slots, 50 ms: 200 a second", limit: 10, service: 50 * ms, roundTrip: 10 * ms, want: 13},
		{name: "20 a second fill no ten in a tenth of a second", limit: 10, service: 500 * ms, roundTrip: 10 * ms, want: 3},
		{name: "one slot, 900 ms", limit: 1, service: 900 * ms, roundTrip: 10 * ms, want: 1},
		{name: "one second: none", limit: 50, service: time.Second, roundTrip: 10 * ms, want: 0},
		{name: "a minute: none", limit: 50, service: time.Minute, roundTrip: 10 * ms, want: 0},
		{name: "nothing ended for a second: none", limit: 50, service: 10 * ms, roundTrip: 10 * ms, idle: time.Second,
			want: 0},
		{name: "large bodies", limit: 50, service: 10 * ms, roundTrip: 10 * ms, body: 1 << 20, want: 16},
		{name: "short visibility: no more than the app takes in an eighth of it", limit: 50, service: 500 * ms,
			roundTrip: 2 * time.Second, visibility: time.Second, want: 12},
		{name: "bounded", limit: 1000, service: ms, roundTrip: time.Second, want: maxPrefetch},
	}
	for _, tt := range tests {
		p := pace{service: tt.service, completed: maxPrefetch, roundTrip: tt.roundTrip, body: tt.body,
			finished: now.Add(-tt.idle)}
		o := (&Options{VisibilityTimeout: tt.visibility}).withDefaults()
		if got := p.prefetch(tt.limit, &o, now); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestPaceAverages(t *testing.T) {
	t.Parallel()
	p := newPace()
	now := time.Now()
	p.recordDelivery(160*time.Millisecond, now)
	if p.service != 160*time.Millisecond {
		t.Errorf("the first sample counts whole, got %v", p.service)
	}
	p.recordDelivery(0, now)
	if p.service != 80*time.Millisecond {
		t.Errorf("the second sample counts half, got %v", p.service)
	}
	for range 14 {
		p.recordDelivery(0, now)
	}
	if p.service.Round(time.Microsecond) != 10*time.Millisecond {
		t.Errorf("the first 16 samples count alike, got %v", p.service)
	}
	p.recordDelivery(170*time.Millisecond, now)
	if p.service.Round(time.Microsecond) != 20*time.Millisecond {
		t.Errorf("a later sample counts a sixteenth, got %v", p.service)
	}
	p.recordReceive(time.Hour, true, now)
	if p.roundTrip != 10*time.Second {
		t.Errorf("a round trip counts at most 10 s, got %v", p.roundTrip)
	}
	p.body = average(p.body, 1000)
	p.body = average(p.body, 1000)
	if p.body != 1000 {
		t.Errorf("equal bodies have their own size on average, got %v", p.body)
	}
}

func TestPrefetchFollowsTheFirstDeliveries(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct {
		name  string
		ended []time.Duration
		batch float64
		want  int
	}{
		{name: "none", want: 0},
		{name: "one, at once", ended: make([]time.Duration, 1), want: 2},
		{name: "one in 1 ms", ended: []time.Duration{ms}, want: 2},
		{name: "one batch of five", ended: []time.Duration{ms}, batch: 5, want: 10},
		{name: "one in 1 ms, one in 5 s", ended: []time.Duration{ms, 5 * time.Second}, want: 0},
		{name: "three in 1 ms, one in 5 s", ended: []time.Duration{ms, ms, ms, 5 * time.Second}, want: 0},
		{name: "ten at once", ended: make([]time.Duration, 10), want: 20},
		{name: "twenty at once", ended: make([]time.Duration, 20), want: 40},
		{name: "twelve in 10 ms: twice as many", want: 24,
			ended: slices.Repeat([]time.Duration{10 * ms}, 12)},
		{name: "thirteen in 10 ms: what the speed allows", want: 25,
			ended: slices.Repeat([]time.Duration{10 * ms}, 13)},
	} {
		p := pace{roundTrip: 10 * ms, batch: tt.batch}
		for _, d := range tt.ended {
			p.recordDelivery(d, now)
		}
		o := (&Options{}).withDefaults()
		if got := p.prefetch(10, &o, now); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

// On Amazon SQS, returning a prefetched message uses up a receive.
func TestFastFirstAnswerOfASlowApp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{Latency: 5 * ms})
		ids := send(t, fake, 100, "")
		var mu sync.Mutex
		n := 0
		app := &testApp{handle: func(ctx context.Context, m *queue.Message) queue.Result {
			mu.Lock()
			n++
			d := time.Duration(2+n%5) * time.Second
			if n == 1 {
				d = ms
			}
			mu.Unlock()
			return done(d)(ctx, m)
		}}
		most := 0
		r := start(t, fake, app, &Options{Concurrency: 12, VisibilityTimeout: 40 * time.Second})
		for range 500 {
			after(10 * ms)
			most = max(most, r.w.Status().Prefetched)
		}
		if most > 2 {
			t.Errorf("%d messages were prefetched after one fast answer, want at most 2", most)
		}
		after(2 * time.Minute)
		r.place(queuetest.FakeDeleted, 100)
		for _, id := range ids {
			if m, _ := fake.Message(id); m.Receives != 1 {
				t.Errorf("%s was received %d times, want once", id, m.Receives)
			}
		}
		if c := r.w.Status().Counts; c.Returned+c.VisibilityExpired > 0 {
			t.Errorf("%d were returned and %d expired, want none", c.Returned, c.VisibilityExpired)
		}
		r.stop()
	})
}

func TestTravel(t *testing.T) {
	t.Parallel()
	tests := []struct{ roundTrip, visibility, want time.Duration }{
		{0, 300 * time.Second, time.Second},
		{10 * time.Millisecond, 300 * time.Second, 250 * time.Millisecond},
		{2 * time.Second, 300 * time.Second, 6 * time.Second},
		{2 * time.Second, 4 * time.Second, time.Second},
	}
	for _, tt := range tests {
		if got := (&pace{roundTrip: tt.roundTrip}).longestTransit(tt.visibility); got != tt.want {
			t.Errorf("round trip %v, visibility %v: got %v, want %v", tt.roundTrip, tt.visibility, got, tt.want)
		}
	}
}

func TestStale(t *testing.T) {
	t.Parallel()
	now := time.Now()
	tests := []struct {
		name                    string
		visibility, waited, age time.Duration
		want                    bool
	}{
		{"fresh", 300 * time.Second, 0, time.Second, false},
		{"waited 10 s", 300 * time.Second, 10 * time.Second, 10 * time.Second, true},
		{"waited three eighths", 8 * time.Second, 3 * time.Second, 3 * time.Second, true},
		{"waited less", 8 * time.Second, 2900 * time.Millisecond, 3 * time.Second, false},
		{"half of the visibility is gone", 300 * time.Second, 0, 150 * time.Second, true},
	}
	for _, tt := range tests {
		h := &held{readyAt: now.Add(-tt.waited), visibility: tt.visibility}
		h.hide(now.Add(-tt.age), tt.visibility)
		if got := h.stale(&Options{VisibilityTimeout: tt.visibility}, now); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestHeldList(t *testing.T) {
	t.Parallel()
	var l heldList
	if l.first() != nil || l.len() != 0 {
		t.Fatal("a new list is not empty")
	}
	next, out := 0, 0
	for range 50 {
		for range 10 {
			h := &held{msg: queue.Message{ReceiveCount: next, Body: "four"}}
			l.push(h)
			next++
		}
		for range 9 {
			if got := l.first().msg.ReceiveCount; got != out {
				t.Fatalf("got message %d, want %d", got, out)
			}
			l.pop()
			out++
		}
	}
	if l.len() != next-out || l.bytes != 4*(next-out) {
		t.Errorf("holds %d messages of %d bytes, want %d of %d", l.len(), l.bytes, next-out, 4*(next-out))
	}
	if cap(l.list) > 1000 {
		t.Errorf("room for %d entries after %d at most 60 at once", cap(l.list), next)
	}
	for l.first() != nil {
		l.pop()
	}
	if l.len() != 0 || l.bytes != 0 {
		t.Errorf("emptied, it holds %d messages of %d bytes", l.len(), l.bytes)
	}
}

// The operations are letters: i inserts, r removes a random message, and p pops the first one.
func TestPostponedListIsSortedStably(t *testing.T) {
	t.Parallel()
	now := time.Now()
	random := rand.New(rand.NewPCG(1, 2))
	for _, operations := range []string{"ip", "iiiip", "iiiippiir", strings.Repeat("i", 40) + strings.Repeat("pri", 38),
		strings.Repeat("iirpi", 40) + strings.Repeat("r", 40)} {
		var l postponedList
		var want []*held
		for i, operation := range operations {
			switch operation {
			case 'i':
				h := &held{msg: queue.Message{Body: strings.Repeat("x", i)}, postponedUntil: now.Add(time.Duration(random.IntN(4)))}
				l.insert(h)
				want = append(want, h)
				slices.SortStableFunc(want, func(a, b *held) int { return a.postponedUntil.Compare(b.postponedUntil) })
			case 'r':
				i := random.IntN(len(want))
				l.remove(want[i])
				want = slices.Delete(want, i, i+1)
			case 'p':
				if got := l.pop(); got != want[0] {
					t.Errorf("%s: operation %d popped the message of %d bytes, want %d", operations, i, len(got.msg.Body),
						len(want[0].msg.Body))
				}
				want = want[1:]
			}

			bytes := 0
			for _, h := range want {
				bytes += len(h.msg.Body)
			}
			if !slices.Equal(l.list[l.head:], want) || l.len() != len(want) || l.bytes != bytes {
				t.Fatalf("%s: after operation %d, the list has %d messages of %d bytes, want %d of %d in order of time",
					operations, i, l.len(), l.bytes, len(want), bytes)
			}
		}
	}
}

func TestHeldBytesAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		held, size, most int
		embedded, pooled bool
	}{
		{"of one message", 1, 1 << 20, 1, true, false},
		{"of eight large ones", 8 << 20, 1 << 20, 8, true, false},
		{"of eight large ones in a pool", 8 << 20, 1 << 20, 8, true, true},
		{"of eight large ones in a remote queue", 8 << 20, 1 << 20, 8, false, false},
		{"of small ones", 8 << 20, 1, 20, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := queuetest.NewFake(nil)
				for range 40 {
					body := strings.Repeat("x", c.size)
					if _, err := fake.Send(t.Context(), []queue.Outgoing{{Body: body}}); err != nil {
						t.Fatal(err)
					}
				}
				opts := &Options{Concurrency: 20, HeldBytes: c.held, UncountedReturns: c.embedded}
				if c.pooled {
					opts.Pool = NewPool(&PoolOptions{Concurrency: 20})
				}
				h := start(t, fake, &testApp{handle: done(time.Second)}, opts)
				most := 0
				for range 500 {
					after(100 * time.Millisecond)
					most = max(most, fake.Count(queuetest.FakeInFlight))
				}
				if most != c.most {
					t.Errorf("%d messages were held at once, want %d", most, c.most)
				}
				h.place(queuetest.FakeDeleted, 40)
				h.stop()
			})
		})
	}
}
