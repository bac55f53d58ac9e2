package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

// The test counts the cases of each fault in docs/reliability.md; a case is a subtest without subtests.
// TENDRIL_FAULT_TABLE sets the duration per package. By default, the test runs only at night.
func TestFaultTable(t *testing.T) {
	length := testpeer.Size(0, time.Minute)
	if d, err := time.ParseDuration(os.Getenv("TENDRIL_FAULT_TABLE")); err == nil {
		length = d
	}
	if length == 0 {
		t.Skip("takes half an hour: set TENDRIL_NIGHTLY, or TENDRIL_FAULT_TABLE to the time for each package")
	}
	rows, err := readFaultTable("../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]map[string]cases{}
	for _, row := range rows {
		t.Run(row.id, func(t *testing.T) {
			resume(t)
			var sum cases
			for pkg, tests := range row.tests {
				if counted[pkg] == nil {
					counted[pkg] = countCases(t, pkg, length, testsOf(rows, pkg))
				}
				for _, name := range tests {
					sum = sum.plus(counted[pkg][name])
				}
			}
			switch {
			case sum.failed > 0:
				t.Errorf("%d of %d cases failed", sum.failed, sum.passed+sum.failed)
			case sum.passed == 0:
				t.Skip("its tests run at night only, and report figures of their own")
			default:
				report(t, "failed 0 of %d cases (at most %.2g %%)", sum.passed, min(100, 300/float64(sum.passed)))
			}
		})
	}
}

type faultRow struct {
	id    string
	tests map[string][]string
}

var (
	faultID   = regexp.MustCompile(`^\| ([A-H]\d+) \|`)
	faultTest = regexp.MustCompile("`(\\w+)\\.(Test\\w+|txtar)`")
)

func readFaultTable(path string) (rows []faultRow, err error) {
	page, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(page)) {
		id := faultID.FindStringSubmatch(line)
		if id == nil {
			continue
		}
		row := faultRow{id: id[1], tests: map[string][]string{}}
		for _, m := range faultTest.FindAllStringSubmatch(line, -1) {
			pkg, name := m[1], m[2]
			if name == "txtar" {
				pkg, name = "cmd/tendril", "TestScripts/"+m[1]
			}
			row.tests[pkg] = append(row.tests[pkg], name)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no fault table", path)
	}
	return rows, nil
}

func testsOf(rows []faultRow, pkg string) []string {
	names := map[string]bool{}
	for _, row := range rows {
		for _, name := range row.tests[pkg] {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

type cases struct{ passed, failed int }

func (c cases) plus(o cases) cases { return cases{c.passed + o.passed, c.failed + o.failed} }

func countCases(t *testing.T, pkg string, length time.Duration, names []string) map[string]cases {
	counted, took := runCases(t, pkg, 1, names)
	if times := min(100, int(length/max(took, time.Millisecond))) - 1; times > 0 {
		again, _ := runCases(t, pkg, times, names)
		for name, c := range again {
			counted[name] = counted[name].plus(c)
		}
	}
	return counted
}

func runCases(t *testing.T, pkg string, times int, names []string) (counted map[string]cases, took time.Duration) {
	var tests, scripts []string
	for _, name := range names {
		test, script, _ := strings.Cut(name, "/")
		tests, scripts = append(tests, test), append(scripts, script)
	}
	pattern := "^(?:" + strings.Join(tests, "|") + ")$"
	if scripts[0] != "" {
		pattern += "/^(?:" + strings.Join(scripts, "|") + ")$"
	}
	cmd := exec.Command("go", "test", "-json", "-timeout", "2h", "-count", strconv.Itoa(times), "-run", pattern,
		"tendril/"+pkg)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TENDRIL_NIGHTLY") || strings.HasPrefix(v, "TENDRIL_FAULT_TABLE")
	})
	out, err := cmd.Output()
	counted, took = countEvents(out, names)
	for name, c := range counted {
		if c.failed > 0 {
			t.Logf("%s.%s: %d of %d cases failed", pkg, name, c.failed, c.passed+c.failed)
			err = nil
		}
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out[max(0, len(out)-4000):])
	}
	return counted, took
}

func countEvents(out []byte, names []string) (counted map[string]cases, took time.Duration) {
	ended := map[string]cases{}
	for line := range bytes.Lines(out) {
		var event struct {
			Action, Test string
			Elapsed      float64
		}
		if json.Unmarshal(line, &event) != nil {
			continue
		}
		if event.Test == "" {
			took = max(took, time.Duration(event.Elapsed*float64(time.Second)))
		}
		c := ended[event.Test]
		switch event.Action {
		case "pass":
			c.passed++
		case "fail":
			c.failed++
		default:
			continue
		}
		ended[event.Test] = c
	}
	counted = map[string]cases{}
	for test, c := range ended {
		isParent := slices.ContainsFunc(slices.Collect(maps.Keys(ended)), func(other string) bool {
			return strings.HasPrefix(other, test+"/")
		})
		for _, name := range names {
			if !isParent && (test == name || strings.HasPrefix(test, name+"/")) {
				counted[name] = counted[name].plus(c)
			}
		}
	}
	return counted, took
}

func TestCasesAreCounted(t *testing.T) {
	t.Parallel()
	var out []byte
	events := "pass:A pass:B/x pass:B/x fail:B/y fail:B skip:C pass:D/a/1 pass:D/a pass:D"
	for event := range strings.FieldsSeq(events) {
		action, test, _ := strings.Cut(event, ":")
		out = fmt.Appendf(out, "{\"Action\":%q,\"Package\":\"p\",\"Test\":%q}\n", action, test)
	}
	out = append(out, "# not an event\n{\"Action\":\"fail\",\"Package\":\"p\",\"Elapsed\":1.5}\n"...)
	want := map[string]cases{"A": {passed: 1}, "B": {passed: 2, failed: 1}, "D/a": {passed: 1}}
	got, took := countEvents(out, []string{"A", "B", "C", "D/a"})
	if !maps.Equal(got, want) || took != 1500*time.Millisecond {
		t.Errorf("counted %v in %v, want %v", got, took, want)
	}
}
