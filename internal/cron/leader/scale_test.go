package leader

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

type perSecond struct {
	mu            sync.Mutex
	began         time.Time
	reads, writes map[int]int
}

// measure makes each call take 5 ms, like a DynamoDB call.
func measure(store *memoryStore, err error) *perSecond {
	p := &perSecond{began: time.Now(), reads: map[int]int{}, writes: map[int]int{}}
	store.SetFault(func(swap bool) storeFault {
		p.mu.Lock()
		defer p.mu.Unlock()
		second := int(time.Since(p.began) / time.Second)
		if swap {
			p.writes[second]++
		} else {
			p.reads[second]++
		}
		return storeFault{Takes: 5 * time.Millisecond, Drop: err != nil, Err: err}
	})
	return p
}

// many is small in short mode, which is used with the race detector.
func many() int {
	if testing.Short() {
		return 200
	}
	return 1000
}

func highest(counts map[int]int) (n int) {
	for _, c := range counts {
		n = max(n, c)
	}
	return n
}

func sum(counts map[int]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

func (r *harness) startMany(n int) {
	for range n {
		r.start()
		r.sleep(10 * time.Second / time.Duration(n))
	}
	r.sleep(10 * time.Second)
}

func TestLeaseTrafficOfManyInstances(t *testing.T) {
	for _, n := range []int{1, 10, 100, many()} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			in(t, func(r *harness) {
				r.startMany(n)
				p := measure(r.store, nil)
				const minutes = 2
				r.sleep(minutes * time.Minute)
				reads, writes := float64(sum(p.reads))/minutes, float64(sum(p.writes))/minutes
				t.Logf("%d instances: %.0f reads and %.1f writes a minute, at most %d reads in a second", n, reads, writes,
					highest(p.reads))
				if each := reads / float64(max(n-1, 1)); n > 1 && (each < 12 || each > 16) {
					t.Errorf("each follower reads %.1f times a minute, want 12 to 16", each)
				}
				if writes < 11 || writes > 13 {
					t.Errorf("%.1f writes a minute, want the leader's 12", writes)
				}
				if most := highest(p.reads); most > n/2+5 {
					t.Errorf("%d reads in one second of %d instances: their looks are not spread", most, n)
				}
			})
		})
	}
}

func TestInstancesThatCanWaitReadLessOften(t *testing.T) {
	in(t, func(r *harness) {
		const n, watch = 20, 90 * time.Second
		for range n {
			r.start(func(o *Options) { o.Watch = func() time.Duration { return watch } })
		}
		r.sleep(2 * watch)
		leader := r.atMostOne()
		p := measure(r.store, nil)
		for range 30 {
			r.sleep(20 * time.Second)
			for _, other := range r.nodes {
				if s := other.Status(); s.Leader != leader.opts.Owner {
					t.Fatalf("%s follows %q, want %s", other.opts.Owner, s.Leader, leader.opts.Owner)
				}
			}
		}
		if each := float64(sum(p.reads)) / 10 / (n - 1); each > 0.9 || each < 0.6 {
			t.Errorf("each follower reads %.2f times a minute, want one read in 67 to 90 s", each)
		}

		urgent := r.start()
		r.sleep(time.Minute)
		leader.kill()
		r.until(20*time.Second+100*time.Millisecond, urgent)
		urgent.kill()
		r.until(2*watch, r.nodes...)
	})
}

func TestDeadLeadersOfManyInstancesAreReplaced(t *testing.T) {
	in(t, func(r *harness) {
		n, kills := many(), testpeer.Size(5, 200)
		r.startMany(n)
		p := measure(r.store, nil)
		began := time.Now()
		var times []time.Duration
		refused, writes := r.store.Counts().Refused, 0
		for i := range kills {
			dead, killed := r.atMostOne(), time.Now()
			if dead == nil {
				t.Fatal("nobody leads")
			}
			dead.kill()
			for r.atMostOne() == nil {
				r.sleep(100 * time.Millisecond)
			}
			times = append(times, time.Since(killed))
			r.sleep(time.Duration(7+i%5) * time.Second)
			r.start()
		}
		refused = r.store.Counts().Refused - refused
		writes = sum(p.writes)
		slices.Sort(times)
		p50, p99 := times[len(times)/2], times[(len(times)*99)/100]
		t.Logf("%d instances, %d kills: a new leader after %v (p50) and %v (p99); %.1f refused writes for each; at most %d "+
			"writes and %d reads in a second; %.1f writes a minute", n, kills, p50, p99, float64(refused)/float64(kills),
			highest(p.writes), highest(p.reads), float64(writes)/time.Since(began).Minutes())
		if last := times[len(times)-1]; last > 20*time.Second+100*time.Millisecond {
			t.Errorf("a dead leader was replaced after %v, want at most lease and renewal, 20 s", last)
		}
		if refused > 20*kills {
			t.Errorf("%d refused writes for %d kills: a dead leader must not cost a write of every instance", refused, kills)
		}
	})
}

func TestManyInstancesAfterAnOutageOfTheStore(t *testing.T) {
	in(t, func(r *harness) {
		n := many()
		r.startMany(n)
		down, away := measure(r.store, errors.New("no connection")), testpeer.Size(2*time.Minute, 10*time.Minute)
		r.sleep(away)
		refused := r.store.Counts().Refused
		back := measure(r.store, nil)
		for r.atMostOne() == nil {
			r.sleep(10 * time.Millisecond)
		}
		elected := time.Since(back.began)
		r.sleep(time.Minute)
		refused = r.store.Counts().Refused - refused
		t.Logf("%d instances, %v without the store: at most %d reads and %d writes in a second while it is away; "+
			"when it is back at most %d and %d, %d of them refused, and a leader after %v", n, away, highest(down.reads),
			highest(down.writes), highest(back.reads), highest(back.writes), refused, elected)
		if elected > 5*time.Second {
			t.Errorf("a leader %v after the store is back, want within the longest back-off, 5 s", elected)
		}
		if most := highest(down.reads); most > 3*n/2 {
			t.Errorf("%d reads in a second while the store is away", most)
		}
		if most := highest(back.reads); most > n/2 {
			t.Errorf("%d reads in a second when the store is back", most)
		}
		if refused > 20 {
			t.Errorf("%d refused writes after the outage: want those of the few that tried at once", refused)
		}
	})
}
