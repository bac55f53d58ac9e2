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

var sqsRules = map[string]int{"A": 8, "B": 12, "C": 10, "D": 7, "E": 11, "F": 6, "G": 14}

// Each rule of docs/sqs.md must have a test whose name contains its number, and each such number must be a rule.
func TestSQSPageNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	tested := map[string]bool{}
	for name := range sqsTests(t) {
		for _, rule := range rulesIn(name) {
			tested[rule] = true
		}
	}

	page, err := os.ReadFile("docs/sqs.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| ([A-G]\d+) \| .+ \|$`)
	var rows []string
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		rows = append(rows, m[1])
		if !tested[m[1]] {
			t.Errorf("rule %s has no test", m[1])
		}
	}

	for part, n := range sqsRules {
		for i := range n {
			if rule := part + strconv.Itoa(i+1); !slices.Contains(rows, rule) {
				t.Errorf("rule %s is missing", rule)
			}
		}
	}
	for rule := range tested {
		if !slices.Contains(rows, rule) {
			t.Errorf("a test has the number %s, which is not a rule", rule)
		}
	}
}

// rulesIn returns the rules at the start of the name of a Go test, such as sqsapi.TestA1A5A8Envelope, or of a check,
// such as "C1 C3 dead letters: ...".
func rulesIn(name string) []string {
	numbers := regexp.MustCompile(`^(?:(?:sqsapi|sqswire|broker)\.Test)?((?:[A-G]\d+ ?)+)`).FindStringSubmatch(name)
	if numbers == nil {
		return nil
	}
	return regexp.MustCompile(`[A-G]\d+`).FindAllString(numbers[1], -1)
}

// sqsTests returns the names of all Go tests and of the checks in the conformance suite.
func sqsTests(t *testing.T) map[string]bool {
	tests := goTests(t)
	for _, s := range sources(t) {
		if s.pkg != "queuetest" || s.test {
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
