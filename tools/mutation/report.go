package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	minEfficacy    = 95
	maxUnexecuted  = 5
	percent        = 100
	tableCellSpace = 2
)

type result struct {
	core     core
	survived []mutant
	unrun    []mutant
	counts   map[outcome]int
	ignored  int
	failing  []string
	took     time.Duration
	unused   []equivalent // entries of equivalents that match no surviving mutant
}

func (c core) result(mutants []mutant, outcomes []outcome) result {
	r := result{core: c, counts: map[outcome]int{}}
	listed := slices.DeleteFunc(slices.Clone(equivalents), func(e equivalent) bool { return e.pkg != c.pkg })
	used := make([]bool, len(listed))
	for i, m := range mutants {
		match := slices.IndexFunc(listed, func(e equivalent) bool { return e.file == m.file && e.place == m.place })
		left := outcomes[i] == survived || outcomes[i] == unexecuted
		if left && match >= 0 {
			used[match] = true
			r.ignored++
			continue
		}
		r.counts[outcomes[i]]++
		switch outcomes[i] {
		case survived:
			r.survived = append(r.survived, m)
		case unexecuted:
			r.unrun = append(r.unrun, m)
		}
	}

	for i, e := range listed {
		if !used[i] {
			r.unused = append(r.unused, e)
		}
	}
	return r
}

func (r result) executed() int { return r.noticed() + r.counts[survived] }

func (r result) noticed() int { return r.counts[killed] + r.counts[timedOut] }

func (r result) efficacy() float64 { return share(r.noticed(), r.executed()) }

func (r result) unexecuted() float64 {
	if r.counts[unexecuted] == 0 {
		return 0
	}
	return share(r.counts[unexecuted], r.executed()+r.counts[unexecuted])
}

func share(part, whole int) float64 {
	if whole == 0 {
		return percent
	}
	return percent * float64(part) / float64(whole)
}

func (r result) failures() []string {
	var lines []string
	if r.efficacy() < minEfficacy {
		lines = append(lines, fmt.Sprintf("efficacy is %.1f %%, at least %d is wanted", r.efficacy(), minEfficacy))
	}

	if r.unexecuted() > maxUnexecuted {
		lines = append(lines,
			fmt.Sprintf("%.1f %% of the mutants are not executed, at most %d is allowed", r.unexecuted(), maxUnexecuted))
	}

	for _, e := range r.unused {
		lines = append(lines, fmt.Sprintf("%s %s: %s of %s did not survive: delete it from equivalent.go",
			e.file, e.function, e.kind, e.source))
	}

	for _, name := range r.failing {
		lines = append(lines, name+" fails without a mutant: it must not depend on how fast or where the code runs, "+
			"or be left out in cores.go")
	}
	return lines
}

func write(w io.Writer, results []result) (failed bool) {
	for _, r := range results {
		for _, m := range r.survived {
			fmt.Fprintf(w, "survived      %s/%s\n", r.core.pkg, m)
		}
		for _, m := range r.unrun {
			fmt.Fprintf(w, "not executed  %s/%s\n", r.core.pkg, m)
		}
	}

	table := tabwriter.NewWriter(w, 0, 0, tableCellSpace, ' ', 0)
	fmt.Fprintln(table, "core\tmutants\tkilled\ttimed out\tsurvived\tequivalent\tefficacy\tnot executed\ttime")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%.1f %%\t%.1f %%\t%s\n", r.core.pkg,
			r.executed()+r.counts[unexecuted]+r.ignored, r.counts[killed], r.counts[timedOut], r.counts[survived],
			r.ignored, r.efficacy(), r.unexecuted(), r.took.Round(time.Second))
	}

	table.Flush()
	for _, r := range results {
		if lines := r.failures(); len(lines) > 0 {
			fmt.Fprintf(w, "%s: %s\n", r.core.pkg, strings.Join(lines, "\n  "))
			failed = true
		}
	}
	return failed
}
