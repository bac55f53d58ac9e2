package tendril_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

var faultRows = map[string]int{"A": 10, "B": 15, "C": 16, "D": 12, "E": 12, "F": 9, "G": 11, "H": 9}

// Each row of the fault table in docs/reliability.md must occur exactly once.
func TestFaultTableNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	tests := goTests(t)
	page, err := os.ReadFile("docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for part, n := range faultRows {
		for i := range n {
			want[fmt.Sprint(part, i+1)] = 1
		}
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		id := strings.TrimSpace(cells[0])
		if want[id] == 0 {
			continue
		}
		seen[id]++
		if len(cells) != 5 {
			t.Errorf("%s: %d cells, want five: row, fault, what holds, tests, result", id, len(cells))
			continue
		}
		if strings.TrimSpace(cells[4]) == "" {
			t.Errorf("%s: the row has no result", id)
		}
		checkNamedTests(t, tests, id, cells[3])
	}
	for id := range want {
		if seen[id] != 1 {
			t.Errorf("row %s of the fault table is there %d times", id, seen[id])
		}
	}
}
