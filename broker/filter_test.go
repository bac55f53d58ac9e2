package broker

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

// The dead letters are an hour apart.
func filterQueues(t *testing.T, b *Broker) (work, dead *Queue, start time.Time) {
	t.Helper()
	work, dead = deadLetters(t, b, 0)
	start = time.Now()
	text := func(name, value string) queue.Attribute {
		return queue.Attribute{Name: name, Type: "String", Value: value}
	}
	for i, m := range []queue.Outgoing{
		{Body: "apple", Attributes: []queue.Attribute{text("tenant", "a")}},
		{Body: "banana", Attributes: []queue.Attribute{text("tenant", "b"), {Name: "tries", Type: "Number", Value: "3"}}},
		{Body: "apple pie", Attributes: []queue.Attribute{text("note", "tenant String a"), text("tenant", "c")}},
		{Body: "100% <b>_'\"", Attributes: []queue.Attribute{text("tenant", "a")}},
	} {
		send(t, work, m)
		for range 2 {
			_, err := work.Receive(context.Background(), queue.ReceiveRequest{Max: 1, Visibility: new(time.Duration)})
			if err != nil {
				t.Fatal(err)
			}
		}
		if l, err := b.Ledger("dead"); err != nil || l.Live != int64(i+1) {
			t.Fatalf("%+v, %v", l, err)
		}
		time.Sleep(time.Hour)
	}
	return work, dead, start
}

type tester interface {
	Helper()
	Fatal(args ...any)
}

func browsed(t tester, b *Broker, name string, req BrowseRequest) (all []Stored) {
	t.Helper()
	for {
		page, next, err := b.Browse(context.Background(), name, req)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page...)
		if req.After = next; next == "" {
			return all
		}
	}
}

func bodiesOf(t testing.TB, b *Broker, name string, req BrowseRequest) (bodies []string) {
	t.Helper()
	for _, m := range browsed(t, b, name, req) {
		bodies = append(bodies, m.Body)
	}
	return bodies
}

func TestFilterSelectsMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		_, _, start := filterQueues(t, b)
		all := browsed(t, b, "dead", BrowseRequest{})
		if len(all) != 4 {
			t.Fatal(all)
		}
		for _, c := range []struct {
			name   string
			filter Filter
			want   []int
		}{
			{"all", Filter{}, []int{0, 1, 2, 3}},
			{"text", Filter{Match: "apple"}, []int{0, 2}},
			{"text is no pattern", Filter{Match: "%"}, []int{3}},
			{"text with quotes", Filter{Match: `'"`}, []int{3}},
			{"attribute of any value", Filter{Attribute: "tries"}, []int{1}},
			{"attribute with a value", Filter{Attribute: "tenant", Value: "a"}, []int{0, 3}},
			{"number", Filter{Attribute: "tries", Value: "3"}, []int{1}},
			{"a type is no value", Filter{Attribute: "tenant", Value: "String"}, nil},
			{"since", Filter{DeadSince: start.Add(90 * time.Minute)}, []int{2, 3}},
			{"until", Filter{DeadUntil: start.Add(90 * time.Minute)}, []int{0, 1}},
			{"until is exclusive", Filter{DeadSince: all[1].DeadAt, DeadUntil: all[2].DeadAt}, []int{1}},
			{"ids", Filter{IDs: []string{all[2].ID, all[0].ID, "nonsense"}}, []int{0, 2}},
			{"up to a place", Filter{Through: 2}, []int{0, 1}},
			{"up to a place, with text", Filter{Through: 3, Match: "apple"}, []int{0, 2}},
			{"up to a place to come", Filter{Through: 1000}, []int{0, 1, 2, 3}},
			{"no such ids", Filter{IDs: []string{"nonsense"}}, nil},
			{"everything at once", Filter{IDs: []string{all[0].ID}, Match: "app", Attribute: "tenant", Value: "a",
				DeadUntil: start.Add(time.Hour)}, []int{0}},
		} {
			var want []string
			for _, i := range c.want {
				want = append(want, all[i].Body)
			}
			for _, limit := range []int{1, 100} {
				if got := bodiesOf(t, b, "dead", BrowseRequest{Filter: c.filter, Limit: limit}); !slices.Equal(got, want) {
					t.Errorf("%s, pages of %d: %q, want %q", c.name, limit, got, want)
				}
			}
			n, exact, err := b.Queue("dead").Count(t.Context(), c.filter, time.Hour)
			if n != int64(len(want)) || !exact || err != nil {
				t.Errorf("%s: counted %d, %t, %v", c.name, n, exact, err)
			}
		}
	})
}

func TestCountStopsAtItsTimeLimit(t *testing.T) {
	b := openTest(t, nil)
	q := create(t, b, "work", nil)
	const n = browseChunk + 500
	for i := 0; i < n; i += queue.MaxBatch {
		send(t, q, slices.Repeat([]queue.Outgoing{{Body: "x"}}, queue.MaxBatch)...)
	}
	got, exact, err := b.Queue("work").Count(t.Context(), Filter{Match: "x"}, time.Hour)
	if got != n || !exact || err != nil {
		t.Errorf("counted %d, %t, %v", got, exact, err)
	}
	got, exact, err = b.Queue("work").Count(t.Context(), Filter{Match: "x"}, 0)
	if got != browseChunk || exact || err != nil {
		t.Errorf("counted %d, %t, %v in no time", got, exact, err)
	}
}

func TestMoveTaskWithAFilterLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		_, _, start := filterQueues(t, b)
		filter := Filter{Attribute: "tenant", Value: "a"}
		if _, err := b.StartMoveTask(t.Context(), MoveRequest{Source: b.ARN("dead"), Filter: filter}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if task := lastMove(t, b, "dead"); task.Status != MoveCompleted || task.Moved != 2 || task.ToMove != 2 ||
			task.Filter.Value != "a" {
			t.Errorf("task %+v", task)
		}
		if got := bodiesOf(t, b, "work", BrowseRequest{}); !slices.Equal(got, []string{"apple", "100% <b>_'\""}) {
			t.Errorf("moved %q", got)
		}
		filter = Filter{DeadSince: start.Add(2 * time.Hour)}
		req := MoveRequest{Source: b.ARN("dead"), Delete: true, Filter: filter}
		if _, err := b.StartMoveTask(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if task := lastMove(t, b, "dead"); task.Status != MoveCompleted || task.Moved != 1 || !task.Delete {
			t.Errorf("task %+v", task)
		}
		if got := bodiesOf(t, b, "dead", BrowseRequest{}); !slices.Equal(got, []string{"banana"}) {
			t.Errorf("left %q", got)
		}
		if l, _ := b.Ledger("dead"); l.Purged != 1 || l.MovedOut != 2 || l.Live != 1 {
			t.Errorf("ledger %+v", l)
		}
		req.Destination = b.ARN("work")
		if _, err := b.StartMoveTask(t.Context(), req); err == nil {
			t.Error("a task that deletes had a destination")
		}
	})
}

func TestFilteredTaskResumesAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		deadLetters(t, b, 40)
		_, err := b.StartMoveTask(t.Context(), MoveRequest{Source: b.ARN("dead"), Delete: true, Rate: 10,
			Filter: Filter{Match: "1"}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(550 * time.Millisecond)
		if task := lastMove(t, b, "dead"); task.Status != MoveRunning || task.Moved == 0 || task.Moved >= 13 {
			t.Errorf("task %+v", task)
		}
		b = reopen(t, b)
		time.Sleep(3 * time.Second)
		if task := lastMove(t, b, "dead"); task.Status != MoveCompleted || task.Moved != 13 || task.ToMove != 13 {
			t.Errorf("after the restart: %+v", task)
		}
		if got := bodiesOf(t, b, "dead", BrowseRequest{Filter: Filter{Match: "1"}}); len(got) != 0 {
			t.Errorf("left %q", got)
		}
		if l, _ := b.Ledger("dead"); l.Live != 27 || l.Purged != 13 {
			t.Errorf("ledger %+v", l)
		}
	})
}

func BenchmarkFilteredDeadLetters(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			br := openTest(b, nil)
			dead := create(b, br, "dead", nil)
			create(b, br, "work", map[string]string{
				"RedrivePolicy": policy(br, "dead", 1)})
			attributes := []queue.Attribute{{Name: "tenant", Type: "String", Value: "a"}}
			for range n / queue.MaxBatch {
				send(b, dead, slices.Repeat([]queue.Outgoing{{Body: payload, Attributes: attributes}}, queue.MaxBatch)...)
			}
			measure := func(unit string, do func() error) {
				begun := time.Now()
				if err := do(); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, unit)
			}
			for b.Loop() {
				last := func(f Filter) func() error {
					return func() error {
						_, _, err := br.Browse(context.Background(), "dead", BrowseRequest{Filter: f, Limit: 50})
						return err
					}
				}
				count := func(f Filter) func() error {
					return func() error {
						_, _, err := br.Queue("dead").Count(context.Background(), f, time.Hour)
						return err
					}
				}
				measure("page-ms", last(Filter{}))
				measure("rare-page-ms", last(Filter{Match: "is nowhere"}))
				measure("count-text-ms", count(Filter{Match: "is nowhere"}))
				measure("count-attribute-ms", count(Filter{Attribute: "tenant", Value: "a"}))
				measure("count-time-ms", count(Filter{DeadSince: time.Now()}))
				measure("redrive-ms", func() error {
					_, err := br.StartMoveTask(context.Background(), MoveRequest{Source: br.ARN("dead"), Destination: br.ARN("work")})
					for err == nil {
						tasks, _ := br.MoveTasks(br.ARN("dead"), 1)
						if tasks[0].Status != MoveRunning {
							break
						}
						time.Sleep(time.Millisecond)
					}
					return err
				})
			}
		})
	}
}

func TestMoveAndPurgeThroughLeaveLaterMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openTest(t, nil)
		work, dead := deadLetters(t, b, 3)
		through, err := b.Newest("dead")
		if err != nil || through != 3 {
			t.Fatal(through, err)
		}
		send(t, dead, body("later")...)
		req := MoveRequest{Source: b.ARN("dead"), Destination: b.ARN("work"), Filter: Filter{Through: through}}
		if _, err := b.StartMoveTask(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if task := lastMove(t, b, "dead"); task.Moved != 3 || task.ToMove != 3 {
			t.Errorf("task %+v", task)
		}

		if through, err = b.Newest("work"); err != nil {
			t.Fatal(err)
		}
		send(t, work, body("later work")...)
		one(t, work)
		if n, err := b.PurgeThrough(t.Context(), "work", through); n != 3 || err != nil {
			t.Errorf("purged %d, %v", n, err)
		}
		if got := bodiesOf(t, b, "work", BrowseRequest{}); !slices.Equal(got, []string{"later work"}) {
			t.Errorf("the queue holds %q", got)
		}
		if l, err := b.Ledger("work"); err != nil || l.Live != 1 || l.InFlight != 0 || l.Purged != 3 {
			t.Errorf("ledger %+v, %v", l, err)
		}
		if n, err := b.PurgeThrough(t.Context(), "work", 0); n != 1 || err != nil {
			t.Errorf("purged %d, %v without a place", n, err)
		}
	})
}
