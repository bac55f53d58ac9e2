package autoscale

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

var update = flag.Bool("update", false, "rewrite docs/scale.md and testdata")

type policyCase struct {
	name   string
	policy Policy
	// turns is the number of changes of direction allowed beyond the load's own; misled is that number with wrong
	// readings.
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

// The longest acceptable wait is the start of a process, plus twice DrainWithin and half a minute for readings.
func (c curve) allowed() time.Duration { return c.start + 2*time.Minute + 30*time.Second }

func TestSimulation(t *testing.T) {
	t.Parallel()
	all := curves()
	if len(all) != 100 {
		t.Fatalf("there are %d curves", len(all))
	}
	policies := policyCases()
	if raceDetector {
		policies = policies[:1] // the race detector is slow
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

func TestSimulationOfInstancesWithDifferentLoads(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("a pure function has no races; it is slow with the detector")
	}
	var runs sync.WaitGroup
	for i, one := range policyCases() {
		one.policy.Instances = true
		runs.Go(func() {
			for _, c := range curves() {
				if c.family == "a noisy load" {
					c.turns = int(2.5 * c.length.Hours())
				}
				check(t, one, simulate(one.policy, c), i == 0)
			}
		})
	}
	runs.Wait()
}

// The longest acceptable wait covers two minutes for counting, two readings, the start of the first instances, and half
// a minute for each doubling of the group. Readings may be missing for 12 minutes, and a spike is 10.5 minutes of work
// for the largest group.
func (c curve) allowedInFleet() time.Duration {
	d := c.start + 3*time.Minute + time.Duration(math.Ceil(math.Log2(float64(c.fleet.most)))*30)*time.Second
	if c.missing != nil {
		d += 12*time.Minute + 30*time.Second
	}
	if c.burst != nil {
		d += 10*time.Minute + 30*time.Second
	}
	return d
}

func TestFleetSimulation(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("a pure function has no races; it is slow with the detector")
	}
	all := fleetCurves()
	if len(all) != 100 {
		t.Fatalf("there are %d curves", len(all))
	}
	var results []outcome
	for _, c := range all {
		o := simulate(Policy{MaxSize: c.fleet.most}, c)
		results = append(results, o)
		say := func(format string, args ...any) {
			t.Errorf("%s, %d instances, %g s: %s", c.family, c.fleet.most, c.service, fmt.Sprintf(format, args...))
		}
		for _, w := range o.wrong {
			say("a change the wrong way: %s", w)
		}
		if extra := o.turns - c.turns; float64(extra) > 1.5*c.length.Hours() {
			say("%d changes of direction in %v, and the load has %d", o.turns, c.length, c.turns)
		}
		if o.waited > c.allowedInFleet() {
			say("a message waited %v, more than %v", o.waited, c.allowedInFleet())
		}
		if o.hours > 2.6*o.ideal {
			say("%.0f instance hours, %.1f times the least possible", o.hours, o.hours/o.ideal)
		}
		if o.blind > 0 {
			say("%d changes to a smaller size without all readings", o.blind)
		}
		if (o.held > 0) != (c.missing != nil) {
			say("%d decisions without all readings", o.held)
		}
	}
	compareGolden(t, "../../docs/scale.md", func(old string) string {
		return insert(t, "docs/scale.md", old, fleetTable(results))
	})
}

func fleetTable(results []outcome) string {
	var out strings.Builder
	out.WriteString("| load | instances | longest wait (allowed) | instance hours | changes an hour " +
		"| turns (the load's own) |\n" +
		"|---|---|---|---|---|---|\n")
	for _, first := range results[:5] {
		for _, size := range fleetSizes()[1:] {
			turns := 0
			var wait, allowed time.Duration
			var share, rate float64
			for _, o := range results {
				if o.c.family != first.c.family || o.c.fleet.most != size {
					continue
				}
				if wait == 0 || o.waited > wait {
					wait, allowed = o.waited, o.c.allowedInFleet()
				}
				turns = max(turns, o.turns)
				share, rate = max(share, o.hours/o.ideal), max(rate, float64(o.changes)/o.c.length.Hours())
			}
			fmt.Fprintf(&out, "| %s | %d | %v (%v) | %.2f | %.1f | %d (%d) |\n", first.c.family, size, wait, allowed, share,
				rate, turns, first.c.turns)
		}
	}
	return out.String()
}

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

const (
	opening = "<!-- simulation: written by go test ./internal/autoscale -update -->\n"
	closing = "<!-- end of simulation -->\n"
)

func insert(t *testing.T, path, page, tables string) string {
	before, rest, ok := strings.Cut(page, opening)
	_, after, ok2 := strings.Cut(rest, closing)
	if !ok || !ok2 {
		t.Fatalf("%s has lost the lines %q and %q around its tables", path, opening, closing)
	}
	return before + opening + tables + closing + after
}

func compareGolden(t *testing.T, path string, now func(old string) string) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		return // other architectures round products differently
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
		t.Errorf("%s is not what the simulation gives: run go test ./internal/autoscale -update, and look at the difference", path)
		return
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
