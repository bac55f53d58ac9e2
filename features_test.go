package tendril_test

import (
	"os"
	"strings"
	"testing"
)

// Each row of docs/features.md has a feature, its use, and its tests.
func TestFeaturesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	tests := goTests(t)
	page, err := os.ReadFile("docs/features.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	seen := map[string]bool{}
	section := ""
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		switch {
		case !strings.HasPrefix(line, "| "):
			if section != "" {
				for _, m := range namedTest.FindAllString(line, -1) {
					checkNamedTests(t, tests, section, m)
				}
			}
			continue
		case cells[0] == " feature":
			continue
		case len(cells) != 3:
			t.Errorf("%s: want three cells: feature, how, test", line)
			continue
		}
		feature := section + ": " + strings.TrimSpace(cells[0])
		if seen[feature] || strings.TrimSpace(cells[1]) == "" {
			t.Errorf("%s: the row is there twice, or does not say how", feature)
		}
		seen[feature] = true
		rows[section]++
		checkNamedTests(t, tests, feature, cells[2])
	}
	if len(rows) != 17 || len(seen) < 150 {
		t.Errorf("%d sections and %d rows: %v", len(rows), len(seen), rows)
	}
}
