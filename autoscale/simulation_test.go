package autoscale

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

var update = flag.Bool("update", false, "rewrite docs/scaling.md and testdata")

// contender is a policy that is put to the test.
type policyCase struct {
	name   string
	policy Policy
	// turns is how many more changes of direction than the load's own are
	// allowed, more of them where readings are wrong.
	turns, misled int
}

func policyCases() []policyCase {
	quick := func(m Measure) Policy {
		return Policy{MaxSize: 20, Measure: m, Period: time.Minute, Cooldown: 2 * time.Minute}
	}
	return []policyCase{
		{"tracking (the default)", Policy{MaxSize: 20}, 2, 2},
		{"BusyShare, 1 min", quick(BusyShare), 1, 1},
		{"BacklogPerProcess, 1 min", quick(BacklogPerProcess), 2, 14},
		{"OldestMessageAge, 1 min", quick(OldestMessageAge), 4, 4},
		{"CPUUtilization, 5 min", Policy{MaxSize: 20, Measure: CPUUtilization}, 1, 1},
	}
}

// allowed is the longest that a message may wait with tracking: until the
// first processes that were started are ready, and twice DrainWithin.
func (c curve) allowed() time.Duration { return c.start + 2*time.Minute + 30*time.Second }

// TestSimulation runs every policy against a hundred loads.
func TestSimulation(t *testing.T) {
	t.Parallel()
	all := curves()
	if len(all) != 100 {
		t.Fatalf("there are %d curves", len(all))
	}
	policies := policyCases()
	if raceDetector {
		policies = policies[:1] // a pure function has no races; it is slow with the detector
	}
	results := make([][]outcome, len(policies))
	var runs sync.WaitGroup
	for i, one := range policies {
		runs.Go(func() {
			for _, c := range all {
				results[i] = append(results[i], simulate(one.policy, c))
			}
		})
	}
	runs.Wait()
	for i, one := range policies {
		for _, o := range results[i] {
			check(t, one, o, i == 0)
		}
	}
	if raceDetector {
		return
	}
	compareGolden(t, "testdata/simulation.txt", func(string) string { return lines(results) })
	compareGolden(t, "../docs/scaling.md", func(old string) string { return insert(t, old, tables(results)) })
}

func check(t *testing.T, one policyCase, o outcome, tracking bool) {
	t.Helper()
	say := func(format string, args ...any) {
		t.Errorf("%s, %s of %g s: %s", one.name, o.c.family, o.c.service, fmt.Sprintf(format, args...))
	}
	for _, w := range o.wrong {
		say("a change the wrong way: %s", w)
	}
	more := one.turns
	if o.c.glitches > 0 {
		more = one.misled
	}
	if o.turns > o.c.turns+more {
		say("%d changes of direction, and the load has %d", o.turns, o.c.turns)
	}
	if !tracking {
		return
	}
	if o.waited > o.c.allowed() {
		say("a message waited %v, more than %v", o.waited, o.c.allowed())
	}
	if o.left > float64(o.c.slots)*o.needed*60/o.c.service {
		say("%.0f messages wait at the end", o.left)
	}
}

// lines are all outcomes, for the eyes of who changes a policy.
func lines(results [][]outcome) string {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for i, one := range policyCases() {
		fmt.Fprintf(w, "# %s\n", one.name)
		for _, o := range results[i] {
			fmt.Fprintf(w, "%s\tservice %gs\tneeds %.1f\tpeak %d\tchanges %d\tturns %d (%d)\twrong %d\twaited %v\tleft "+
				"%.0f\tused %.2f\n",
				o.c.family, o.c.service, o.needed, o.peak, o.changes, o.turns, o.c.turns, len(o.wrong), o.waited, o.left, o.used)
		}
	}
	w.Flush()
	return strings.ReplaceAll(out.String(), " \n", "\n")
}

// tables are the two tables of the documentation.
func tables(results [][]outcome) string {
	var out strings.Builder
	out.WriteString("| load | needs at most | peak size | changes | turns (the load's own) | wrong way | longest wait " +
		"(allowed) |\n|---|---|---|---|---|---|---|\n")
	seen := map[string]bool{}
	for _, first := range results[0] {
		if seen[first.c.family] {
			continue
		}
		seen[first.c.family] = true
		var most outcome
		wrong := 0
		var waited, allowed time.Duration
		for _, o := range results[0] {
			if o.c.family != first.c.family {
				continue
			}
			most.needed, most.peak = max(most.needed, o.needed), max(most.peak, o.peak)
			most.changes, most.turns = max(most.changes, o.changes), max(most.turns, o.turns)
			wrong += len(o.wrong)
			if waited == 0 || o.waited > waited {
				waited, allowed = o.waited, o.c.allowed()
			}
		}
		fmt.Fprintf(&out, "| %s | %.1f | %d | %d | %d (%d) | %d | %v (%v) |\n", first.c.family, most.needed, most.peak,
			most.changes, most.turns, first.c.turns, wrong, waited, allowed)
	}
	out.WriteString("\n| policy | changes in all | most turns beyond the load's own | wrong way | longest wait | " +
		"process time per work |\n|---|---|---|---|---|---|\n")
	for i, one := range policyCases() {
		var changes, extra, wrong int
		var waited time.Duration
		var used float64
		for _, o := range results[i] {
			changes, wrong = changes+o.changes, wrong+len(o.wrong)
			extra, waited = max(extra, o.turns-o.c.turns), max(waited, o.waited)
			used += o.used / float64(len(results[i]))
		}
		fmt.Fprintf(&out, "| %s | %d | %d | %d | %v | %.2f |\n", one.name, changes, extra, wrong, waited, used)
	}
	return out.String()
}

const (
	opening = "<!-- simulation: written by go test ./autoscale -update -->\n"
	closing = "<!-- end of simulation -->\n"
)

// insert puts the tables between their marks.
func insert(t *testing.T, page, tables string) string {
	before, rest, ok := strings.Cut(page, opening)
	_, after, ok2 := strings.Cut(rest, closing)
	if !ok || !ok2 {
		t.Fatalf("docs/scaling.md has lost the lines %q and %q around its tables", opening, closing)
	}
	return before + opening + tables + closing + after
}

func compareGolden(t *testing.T, path string, now func(old string) string) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		return // others round products otherwise
	}
	old, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := now(string(old))
	if want == string(old) {
		return
	}
	if !*update {
		t.Errorf("%s is not what the simulation gives: run go test ./autoscale -update, and look at the difference", path)
		return
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
