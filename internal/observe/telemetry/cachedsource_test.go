package telemetry

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSourcesAreCalledOncePerSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines, queues atomic.Int32
		tel := New(&Options{Sources: Sources{
			Workers: func() []WorkerStatus { lines.Add(1); return nil },
			Queues:  func() []Queue { queues.Add(1); return nil },
		}})
		for range 40 {
			read(t, tel, "")
			time.Sleep(250 * time.Millisecond)
		}
		if n := lines.Load(); n != 10 {
			t.Errorf("the workers were asked %d times in 10 s, want 10", n)
		}
		if n := queues.Load(); n != 10 {
			t.Errorf("the queues were asked %d times in 10 s, want 10", n)
		}
	})
}

func TestMetricsOfASlowSourceAreAbsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		tel := New(&Options{Sources: Sources{
			Leader: func() bool { return true },
			Queues: func() []Queue {
				asked.Add(1)
				<-release
				return []Queue{{Name: "jobs"}}
			},
		}})
		for range 3 {
			began := time.Now()
			text := read(t, tel, "")
			if took := time.Since(began); took > sourceTimeout {
				t.Errorf("a reading took %s, want at most %s", took, sourceTimeout)
			}
			if strings.Contains(text, "tendril_queue_messages{") || !strings.Contains(text, "tendril_leader 1") {
				t.Error("want the fast source and not the slow one")
			}
			time.Sleep(5 * time.Second)
		}
		if asked.Load() != 1 {
			t.Errorf("the slow source was asked %d times, want once", asked.Load())
		}
		close(release)
		synctest.Wait()
		if text := read(t, tel, ""); !strings.Contains(text, `tendril_queue_messages{queue="jobs",state="visible"} 0`) {
			t.Error("an answer that came late is good for the next reading")
		}
	})
}

func TestOldValueIsNotReturnedForANewOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var slow atomic.Bool
		tel := New(&Options{Sources: Sources{Leader: func() bool {
			if slow.Load() {
				<-hang
			}
			return true
		}}})
		if !strings.Contains(read(t, tel, ""), "tendril_leader 1") {
			t.Error("the answer is missing")
		}
		slow.Store(true)
		time.Sleep(time.Minute)
		if strings.Contains(read(t, tel, ""), "tendril_leader 1") {
			t.Error("a value from a minute ago is reported as current")
		}
		close(hang)
	})
}
