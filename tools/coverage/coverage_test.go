package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/cover"
)

func TestSharesAreSortedAndBounded(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	low := write(&out, []share{{"leader", 85}, {"none", 84.9}, {"health", 97.1}})
	if !slices.Equal(low, []string{"none"}) {
		t.Errorf("below the bound: %v", low)
	}
	want := "package  statements  \nnone     84.9 %      \nleader   85.0 %      \nhealth   97.1 %      \n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestStatementCountsOnceWhoeverExecutesIt(t *testing.T) {
	t.Parallel()
	first := cover.ProfileBlock{StartLine: 1, EndLine: 4, NumStmt: 3}
	second := cover.ProfileBlock{StartLine: 5, EndLine: 6, NumStmt: 1}
	executed := first
	executed.Count = 7
	c := counter{}
	for _, blocks := range [][]cover.ProfileBlock{{first, second}, {executed, second}, {first, second}} {
		c.add(&cover.Profile{FileName: "tendril/leader/core.go", Blocks: blocks})
	}
	c.add(&cover.Profile{FileName: "tendril/leader/leadertest/suite.go", Blocks: []cover.ProfileBlock{second}})
	c.add(&cover.Profile{FileName: "tendril/leader/other.go", Blocks: []cover.ProfileBlock{first, executed}})
	if p := c.percent("leader"); p != 100*6.0/7 {
		t.Errorf("%.1f %%, want 6 of 7", p)
	}
	if p := c.percent("internal/cron/leader/leadertest"); p != 0 {
		t.Errorf("%.1f %% of a suite that nothing executed", p)
	}
	if p := c.percent("empty"); p != 0 {
		t.Errorf("%.1f %% without tests", p)
	}
}

func TestUsersArePackages(t *testing.T) {
	t.Parallel()
	var names []string
	for pkg, by := range users {
		names = append(append(names, pkg), by...)
		if got := withUsers([]string{pkg}); !slices.Equal(got, append([]string{pkg}, by...)) {
			t.Errorf("the tests of %v are run for %s", got, pkg)
		}
		if !slices.Contains(countedBy(by[0]), pkg) {
			t.Errorf("the tests of %s do not count for %s", by[0], pkg)
		}
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join("..", "..", name)); err != nil {
			t.Error(err)
		}
	}
}
