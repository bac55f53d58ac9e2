package main

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at it with -update:\n%s", name, got)
	}
}

func readFile(t *testing.T, path string) *results {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := read(bytes.NewReader(data), path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTablesOfResults(t *testing.T) {
	all := readFile(t, "testdata/results.txt")
	var text strings.Builder
	text.WriteString(conditions(all) + "\n")
	for _, tab := range tables {
		if slices.Contains([]string{"daemon", "daemons-cpu", "parts"}, tab.name) {
			text.WriteString("\n" + tab.markdown(all))
		}
	}
	golden(t, "tables.md", text.String())
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.19876: "0.199", 0.00004: "0.00004", 1.5: "1.5", 57.04: "57",
		98.26: "98.3", 431: "431", 999.4: "999", 999.6: "1,000", 15913.4: "15,913", 1234567: "1,234,567", -2000: "-2,000",
		-123456: "-123,456"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestWideRangesAreShown(t *testing.T) {
	c := cell{"p.B", "ms", "%s ms", 0}
	for want, s := range map[string]sample{"10 ms": {9, 10, 11}, "10 ms (8.9 to 11)": {8.9, 10, 11}, "0 ms": {0, 0, 0}} {
		if got := c.text(&results{samples: map[figure]sample{{"p.B", "ms"}: s}}); got != want {
			t.Errorf("%v: %s, want %s", s, got, want)
		}
	}
}

func TestMedianOfAnEvenNumberIsBetweenTheMiddleTwo(t *testing.T) {
	if got := (sample{1, 2, 4, 9}).median(); got != 3 {
		t.Error(got)
	}
	if got := (sample{1, 2, 9}).median(); got != 2 {
		t.Error(got)
	}
}

func TestConditionsSayWhetherTheMachineWasQuiet(t *testing.T) {
	for _, test := range []struct {
		others []float64
		want   string
	}{
		{[]float64{0.2, 2.9}, "The machine was quiet: other programs used at most 2.9 %"},
		{[]float64{0.2, 3.1, 40, 9}, "**The figures are provisional**: during 3 of 4 steps"},
		{[]float64{-1}, "Whether the machine was quiet is not known."},
	} {
		all := &results{runs: map[run]float64{}, facts: map[string]string{}}
		for i, share := range test.others {
			all.runs[run{"s", i}] = share
		}
		if got := strings.ReplaceAll(conditions(all), "\n", " "); !strings.Contains(got, test.want) {
			t.Errorf("%v: %s", test.others, got)
		}
	}
}

func TestOtherProgramsAreWhatIsNotOurs(t *testing.T) {
	before := processors{total: 1000, busy: 100, known: true}
	after := processors{total: 1400, busy: 400, known: true} // 2 s on two processors, of which 3 s are busy
	if got := after.othersSince(before, time.Second); got != 50 {
		t.Error(got)
	}
	if got := after.othersSince(before, 4*time.Second); got != 0 {
		t.Error("less than nothing: ", got)
	}
	if got := after.othersSince(processors{}, time.Second); got != -1 {
		t.Error("what is not known: ", got)
	}
}

func TestMarkersAreFilled(t *testing.T) {
	all := readFile(t, "testdata/results.txt")
	page := "# Title\n\n<!-- report: parts -->\n| old |\n<!-- end of report -->\n\nText.\n\n" +
		"<!-- report: conditions -->\n<!-- end of report -->\n"
	filled, err := fill(page, all)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Title\n", "| 2.41 µs |", "\n\nText.\n", "commit 0123abc"} {
		if !strings.Contains(filled, want) {
			t.Errorf("no %q in\n%s", want, filled)
		}
	}
	if strings.Contains(filled, "| old |") {
		t.Error("the old table is still there")
	}
	if again, err := fill(filled, all); err != nil || again != filled {
		t.Errorf("filled twice it differs: %v\n%s", err, again)
	}
	page = "<!-- report: worker.Overhead -->\n<!-- end of report -->"
	want := "| worker.Overhead | B/op | allocs/op | calls/op | cpu-ns/op |\n|---|---|---|---|---|\n" +
		"| 50_slots | 803 | 4 | 0.2 | 2,405 |\n"
	if filled, err := fill(page, all); err != nil || !strings.Contains(filled, want) {
		t.Errorf("all of a benchmark: %v\n%s", err, filled)
	}
	page = "<!-- report: console -->\n<!-- end of report -->"
	if filled, err := fill(page, readFile(t, "../results.txt")); err != nil ||
		!strings.Contains(filled, "| measure | target | result |") {
		t.Errorf("a table that is called like a folder: %v\n%s", err, filled)
	}
	if _, err := fill("<!-- report: nothing -->\n<!-- end of report -->", all); err == nil {
		t.Error("an unknown table is not refused")
	}
}

func TestRunsGoOnWhereTheyEnded(t *testing.T) {
	o := &options{results: filepath.Join(t.TempDir(), "results.txt"), resume: true}
	if done, err := started(o, "0123abc"); err != nil || done != nil {
		t.Fatal(done, err)
	}
	r := runner{o: o, facts: map[string]string{"commit": "0123abc", "date": "2026-11-26"}}
	output := "goos: linux\npkg: tendril/worker\nBenchmarkOverhead/50_slots-2 10 5 ns/op\n" +
		"--- FAIL: BenchmarkOverhead/other\nBenchmarkOverhead/other-2\nFAIL\n"
	for round := 1; round <= 2; round++ {
		if err := r.record(step{name: "worker"}, round, 1.5, []byte(output)); err != nil {
			t.Fatal(err)
		}
	}
	done, err := started(o, "0123abc")
	slices.SortFunc(done, func(a, b run) int { return a.round - b.round })
	if want := []run{{"worker", 1}, {"worker", 2}}; err != nil || !slices.Equal(done, want) {
		t.Errorf("%v, %v", done, err)
	}
	if err := r.record(step{name: "deep", depth: 500}, 1, 1.5, []byte(output)); err != nil {
		t.Fatal(err)
	}
	if _, err := started(o, "4567def"); err == nil || !strings.Contains(err.Error(), "-new") {
		t.Errorf("results of another commit are not refused: %v", err)
	}
	all := readFile(t, o.results)
	if got := all.samples[figure{"worker.Overhead/50_slots", "ns/op"}]; !slices.Equal(got, sample{5, 5}) {
		t.Error(got)
	}
	if got := all.samples[figure{"worker.Overhead/50_slots@500", "ns/op"}]; !slices.Equal(got, sample{5}) {
		t.Error("of another depth: ", got)
	}
	o.resume = false
	if done, err := started(o, "4567def"); err != nil || done != nil {
		t.Error("a new file: ", done, err)
	}
}

func TestSyntaxErrorsOfResultsAreReported(t *testing.T) {
	if _, err := read(strings.NewReader("BenchmarkX 1 nonsense ns/op\n"), "results.txt"); err == nil ||
		!strings.Contains(err.Error(), "results.txt:1") {
		t.Error(err)
	}
}

func TestDocumentsShowTheResults(t *testing.T) {
	all := readFile(t, "../results.txt")
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		filled, err := fill(string(data), all)
		if err != nil || filled != string(data) {
			t.Errorf("%s does not show bench/results.txt (%v): run `go run ./bench/report -draw -write`", page, err)
		}
		for _, m := range markers.FindAllStringSubmatch(string(data), -1) {
			shown[m[1]] = true
		}
	}
	for _, tab := range tables {
		if !shown[tab.name] {
			t.Errorf("no document shows the table %s", tab.name)
		}
		for _, r := range tab.rows {
			for _, c := range r.cells {
				if strings.Contains(c.text(all), "not measured") && complete(all) && hasRun(all, c.benchmark) {
					t.Errorf("table %s: %s in %s was not measured: is that its name? there are %v", tab.name, c.benchmark, c.unit,
						slices.Sorted(maps.Keys(unitsOf(all, c.benchmark))))
				}
			}
		}
	}
}

func complete(all *results) bool {
	ran := map[string]bool{}
	for r := range all.runs {
		ran[r.step] = true
	}
	return !slices.ContainsFunc(suite, func(s step) bool { return !s.scale && !ran[s.name] })
}

func hasRun(all *results, benchmark string) bool {
	function, _, _ := strings.Cut(benchmark[strings.LastIndexByte(benchmark, '.'):], "/")
	function = benchmark[:strings.LastIndexByte(benchmark, '.')] + function
	for f := range all.samples {
		if f.benchmark == function || strings.HasPrefix(f.benchmark, function+"/") {
			return true
		}
	}
	return false
}

func unitsOf(all *results, benchmark string) map[string]bool {
	units := map[string]bool{}
	for f := range all.samples {
		if f.benchmark == benchmark {
			units[f.unit] = true
		}
	}
	return units
}
