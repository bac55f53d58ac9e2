package tendril_test

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sqsRules is the number of rules in each part of docs/sqs.md.
var sqsRules = map[string]int{"A": 8, "B": 12, "C": 10, "D": 7, "E": 11, "F": 6, "G": 14}

// Each rule in docs/sqs.md occurs and names existing tests, whose names contain the rule's number.
func TestSQSPageNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	tests := sqsTests(t)
	page, err := os.ReadFile("docs/sqs.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`^\| ([A-G]\d+) \| .+ \| (.+) \|$`)
	var rows []string
	for line := range strings.Lines(string(page)) {
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		rows = append(rows, m[1])
		named := regexp.MustCompile("`[^`]+`").FindAllString(m[2], -1)
		if len(named) == 0 {
			t.Errorf("%s names no test", m[1])
		}
		for _, name := range named {
			name = strings.Trim(name, "`")
			if !tests[name] {
				t.Errorf("%s: no such test: %s", m[1], name)
			}
			if !regexp.MustCompile(m[1] + `(\D|$)`).MatchString(name) {
				t.Errorf("%s: the name of %s does not have the number", m[1], name)
			}
		}
	}
	for part, n := range sqsRules {
		for i := range n {
			if rule := part + strconv.Itoa(i+1); !slices.Contains(rows, rule) {
				t.Errorf("rule %s is missing", rule)
			}
		}
	}
	for _, m := range regexp.MustCompile("`(broker\\.Test\\w+)`").FindAllStringSubmatch(string(page), -1) {
		if !tests[m[1]] {
			t.Errorf("no such test: %s", m[1])
		}
	}
}

// sqsTests returns the tests of the module by package and name, and the checks of the conformance suite by name.
func sqsTests(t *testing.T) map[string]bool {
	tests := goTests(t)
	for _, s := range sources(t) {
		if s.room != "queuetest" || s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, ": ") {
				name, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Error(err)
				}
				tests[name] = true
			}
			return true
		})
	}
	return tests
}
