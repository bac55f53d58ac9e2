package periodic

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTwoVersionsOfTheFile(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"embedded", "fifo", "standard"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				th := &scriptRun{fleet: newFleet(), script: script{kind: kind}, reported: map[int64]bool{}}
				same := Task{Name: "same", URL: "/same", Schedule: Every(time.Minute), Missed: MissedAll}
				old := Task{Name: "changed", URL: "/old", Schedule: Every(time.Minute), Missed: MissedAll}
				renewed := Task{Name: "changed", URL: "/new", Schedule: Every(3 * time.Minute), Missed: MissedAll}
				gone := Task{Name: "gone", URL: "/gone", Schedule: Every(2 * time.Minute), Missed: MissedAll}
				added := Task{Name: "added", URL: "/added", Schedule: Every(2 * time.Minute), Missed: MissedAll}
				files := []*File{{Tasks: []Task{same, old, gone}}, {Tasks: []Task{same, renewed, added}}}
				for i, f := range files {
					th.file = f
					th.start(i)
				}
				start := th.wall()
				for turn := range 20 {
					th.elect(th.instances[turn%2].node)
					time.Sleep(time.Duration(40+7*turn) * time.Second)
				}
				synctest.Wait()
				end := th.wall().Add(-2 * time.Minute)
				for _, in := range th.instances[:2] {
					in.cancel()
					<-in.done
				}
				type run struct {
					task string
					at   int64
				}
				seen, tasks := map[run]int{}, map[string]int{}
				for _, arrivals := range th.queues {
					for _, a := range arrivals {
						seen[run{a.task, a.scheduled.Unix()}]++
						tasks[a.task]++
						if a.wall.Before(a.scheduled) {
							t.Errorf("%s of %v was early: %v", a.task, a.scheduled, a.wall)
						}
					}
				}
				for r, n := range seen {
					if n > 1 {
						t.Errorf("%s of %v was enqueued %d times", r.task, time.Unix(r.at, 0).UTC(), n)
					}
				}
				for at := start.Truncate(time.Minute).Add(2 * time.Minute); at.Before(end); at = at.Add(time.Minute) {
					if seen[run{"same", at.Unix()}] == 0 {
						t.Errorf("the task that both have was missed at %v", at.UTC())
					}
				}
				if len(tasks) != 4 {
					t.Errorf("enqueued by task: %v", tasks)
				}
			})
		})
	}
}
