package simulation

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/internal/testing/faultfs"
	"tendril/internal/testing/testpeer"
)

var (
	firstSeed = flag.Uint64("seed", 0, "first seed of TestSeeds; 0 means 1, and at night one that follows from the date")
	seedCount = flag.Int("seeds", 0, "how many seeds TestSeeds runs; 0 means 50, and 10,000 at night; 1 shows the history")
)

// With GOMAXPROCS(1), goroutines that wake at the same time nearly always run in the same order.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	os.Exit(testpeer.Contained(m).Run())
}

func TestSeeds(t *testing.T) {
	first, n := *firstSeed, *seedCount
	if n == 0 {
		n = testpeer.Size(50, 10000)
		if testing.Short() {
			n = 8
		}
	}
	if first == 0 {
		first = testpeer.Size(1, uint64(time.Now().Unix()/86400)*10000)
	}
	fs, sum := faultfs.NewDefault(t), newSummary()
	t.Logf("seeds %d to %d", first, first+uint64(n)-1)
	for seed := first; seed < first+uint64(n); seed++ {
		p := newPlan(seed)
		out := run(t, fs, p, "")
		sum.add(p, &out)
		if n == 1 {
			t.Logf("%s\n%s", p, strings.Join(out.history, "\n"))
		}
		if len(out.violations) > 0 {
			report(t, fs, p, &out)
		}
		if (seed-first)%500 == 499 {
			fmt.Fprintf(os.Stderr, "%d seeds: %s\n", seed-first+1, sum)
		}
	}
	t.Log(sum)
	if n >= 50 {
		sum.checkEffects(t)
	}
}

func report(t *testing.T, fs *faultfs.FS, p *plan, out *outcome) {
	t.Errorf("seed %d, history %016x:\n%s", p.Seed, digest(out.history), strings.Join(out.violations, "\n"))
	if len(p.Faults) > 30 {
		return
	}
	short, shortOut := shrink(t, fs, p)
	if short == nil {
		t.Errorf("a second run of seed %d broke no promise; its history was\n%s", p.Seed, strings.Join(out.history, "\n"))
		return
	}
	path := filepath.Join("testdata", fmt.Sprintf("seed-%d.json", p.Seed))
	if err := os.WriteFile(path, []byte(short.String()+"\n"), 0o666); err != nil {
		t.Error(err)
	}
	t.Errorf("the shortest plan is in %s:\n%s\nIt breaks:\n%s\nIts history:\n%s", path, short,
		strings.Join(shortOut.violations, "\n"), strings.Join(shortOut.history, "\n"))
}

func TestKnownPlans(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no plans: %v", err)
	}
	fs := faultfs.NewDefault(t)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var p plan
			if err := json.Unmarshal(data, &p); err != nil {
				t.Fatal(err)
			}
			if out := run(t, fs, &p, ""); len(out.violations) > 0 {
				t.Errorf("%s\n%s", strings.Join(out.violations, "\n"), strings.Join(out.history, "\n"))
			}
		})
	}
}

func TestOneSeedIsOneHistory(t *testing.T) {
	fs, seeds, same := faultfs.NewDefault(t), 6, 0
	if testing.Short() {
		seeds = 2
	}
	for seed := range uint64(seeds) {
		if p, q := newPlan(seed), newPlan(seed); p.String() != q.String() {
			t.Errorf("seed %d gives two plans:\n%s\n%s", seed, p, q)
		}
		a, b := run(t, fs, newPlan(seed), ""), run(t, fs, newPlan(seed), "")
		if digest(a.history) == digest(b.history) {
			same++
		}
	}
	t.Logf("%d of %d seeds gave the same history twice", same, seeds)
	if same < seeds/2 {
		t.Errorf("only %d of %d seeds gave the same history twice", same, seeds)
	}
}

type summary struct {
	seeds, quiet int
	virtual      time.Duration
	figures      figures
	planned      int
	faults       map[kind]int
	operations   map[operationKind]int
}

func newSummary() *summary {
	return &summary{faults: map[kind]int{}, operations: map[operationKind]int{}}
}

func (s *summary) add(p *plan, out *outcome) {
	s.seeds++
	s.planned += len(p.Faults)
	if len(p.Faults) == 0 {
		s.quiet++
	}
	s.virtual += out.lasted
	f, g := &s.figures, &out.figures
	f.Accepted += g.Accepted
	f.Posts += g.Posts
	f.Duplicates += g.Duplicates
	f.Excuses += g.Excuses
	f.DeadLettered += g.DeadLettered
	f.Innocent += g.Innocent
	f.Runs += g.Runs
	f.Redelivered += g.Redelivered
	f.Unknown += g.Unknown
	f.Finished += g.Finished
	f.RolledBack += g.RolledBack
	for k, n := range out.operations {
		s.operations[k] += n
	}
	f.Slowest = max(f.Slowest, g.Slowest)
	for k, n := range out.faults {
		s.faults[k] += n
	}
}

func (s *summary) String() string {
	var faults []string
	for _, k := range kinds {
		faults = append(faults, fmt.Sprintf("%s %d", k, s.faults[k]))
	}
	return fmt.Sprintf("%d seeds, %d of them without faults, %.0f virtual hours, %d faults planned; effects: %s; %v; %+v",
		s.seeds, s.quiet, s.virtual.Hours(), s.planned, strings.Join(faults, ", "), s.operations, s.figures)
}

func (s *summary) checkEffects(t *testing.T) {
	for _, k := range kinds {
		if s.faults[k] == 0 {
			t.Errorf("no seed had this fault: %s", k)
		}
	}
	for _, k := range operationKinds {
		if s.operations[k] == 0 {
			t.Errorf("no seed had this operation: %s", k)
		}
	}
	f := s.figures
	for what, n := range map[string]int{"a message delivered twice": f.Duplicates, "a redelivery": f.Redelivered,
		"a dead letter": f.DeadLettered, "a periodic run": f.Runs, "a send without an answer": f.Unknown,
		"a finished rollout": f.Finished, "a rollout that was rolled back": f.RolledBack,
		"a life without faults": s.quiet} {
		if n == 0 {
			t.Errorf("no seed had %s", what)
		}
	}
	if missing := slices.DeleteFunc(slices.Collect(maps.Keys(s.faults)),
		func(k kind) bool { return slices.Contains(kinds, k) }); len(missing) > 0 {
		t.Errorf("not in the list of kinds: %v", missing)
	}
}
