package telemetry

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Definition string }
	}
	Panels []struct {
		ID          int
		Type, Title string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr, RefID string }
	}
}

func TestDashboardUsesExistingMetrics(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../deploy/grafana/tendril.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 38 || d.SchemaVersion > 39 {
		t.Errorf("uid %q, title %q, schema %d: Grafana 10 loads schema 38 and 39", d.UID, d.Title, d.SchemaVersion)
	}
	known, ids, filled := names(), map[int]bool{}, map[[2]int]string{}
	for _, v := range d.Templating.List {
		if v.Definition != "" {
			checkExpression(t, known, "the variable "+v.Name, v.Definition)
		}
	}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: the id %d is used twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		if (len(p.Targets) == 0) != (p.Type == "row") {
			t.Errorf("%s: a %s with %d queries", p.Title, p.Type, len(p.Targets))
		}
		for _, q := range p.Targets {
			checkExpression(t, known, "the panel "+p.Title, q.Expr)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := filled[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies on %q, or beyond the edge", p.Title, other)
				}
				filled[[2]int{x, y}] = p.Title
			}
		}
	}
}

type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

func TestAlertsUseExistingMetrics(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var r rules
	if err := yaml.UnmarshalWithOptions(data, &r, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	known, seen := names(), map[string]bool{}
	duration := regexp.MustCompile(`^([0-9]+[smhd])?$`)
	for _, rule := range r.Groups[0].Rules {
		if !strings.HasPrefix(rule.Alert, "Tendril") || seen[rule.Alert] {
			t.Errorf("%q is no good name for an alert, or is used twice", rule.Alert)
		}
		seen[rule.Alert] = true
		if !duration.MatchString(rule.For) || !slices.Contains([]string{"warning", "critical"}, rule.Labels["severity"]) ||
			rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s lacks something: %+v", rule.Alert, rule)
		}
		checkExpression(t, known, rule.Alert, rule.Expr)
		checkTemplates(t, rule.Alert, rule.Expr, rule.Annotations)
	}
	if len(seen) < 7 {
		t.Errorf("there are %d alerts only", len(seen))
	}
}

func checkTemplates(t *testing.T, alert, expr string, texts map[string]string) {
	kept := regexp.MustCompile(`by \(([^)]*)\)`).FindStringSubmatch(expr)
	for _, text := range texts {
		for _, label := range regexp.MustCompile(`\$labels\.([a-z_]+)`).FindAllStringSubmatch(text, -1) {
			if kept == nil || !slices.Contains(strings.Split(kept[1], ", "), label[1]) {
				t.Errorf("%s shows the label %s, which its expression drops", alert, label[1])
			}
		}
	}
}

func names() map[string][]string {
	known := map[string][]string{"process_cpu_seconds_total": nil, "process_resident_memory_bytes": nil}
	for _, m := range allMetrics() {
		if m.kind != "histogram" {
			known[m.name] = m.labels
			continue
		}
		known[m.name+"_bucket"] = append([]string{"le"}, m.labels...)
		known[m.name+"_sum"], known[m.name+"_count"] = m.labels, m.labels
	}
	return known
}

var (
	metricName = regexp.MustCompile(`\b(?:tendril|process|go)_[a-z0-9_]+`)
	selector   = regexp.MustCompile(`\b((?:tendril|process|go)_[a-z0-9_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`^([a-z_]+)(?:=~|!=|!~|=)"[^"]*"$`)
	grouping   = regexp.MustCompile(`\bby \(([^)]*)\)\s*\(`)
)

func checkExpression(t *testing.T, known map[string][]string, where, expr string) {
	t.Helper()
	used := metricName.FindAllString(expr, -1)
	if len(used) == 0 {
		t.Errorf("%s asks for nothing of ours: %s", where, expr)
	}
	all := []string{"job", "instance"}
	for _, name := range used {
		labels, ok := known[name]
		if !ok {
			t.Errorf("%s asks for %s, which does not exist", where, name)
		}
		all = append(all, labels...)
	}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		for _, m := range strings.Split(s[2], ",") {
			parts := matcher.FindStringSubmatch(m)
			if parts == nil || !slices.Contains(append([]string{"job", "instance"}, known[s[1]]...), parts[1]) {
				t.Errorf("%s: %s has no label for %s", where, s[1], m)
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.Split(g[1], ", ") {
			if !slices.Contains(all, label) {
				t.Errorf("%s groups by %s, which is not a label of %v", where, label, used)
			}
		}
	}
	if err := balanced(expr); err != nil {
		t.Errorf("%s: %v in %s", where, err, expr)
	}
}

func balanced(expr string) error {
	var open []rune
	quoted := false
	for _, c := range expr {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("({[", c):
			open = append(open, c)
		case strings.ContainsRune(")}]", c):
			if len(open) == 0 || strings.IndexRune("({[", open[len(open)-1]) != strings.IndexRune(")}]", c) {
				return fmt.Errorf("%q closes nothing", c)
			}
			open = open[:len(open)-1]
		}
	}
	if quoted || len(open) > 0 {
		return fmt.Errorf("%d brackets or a quote stay open", len(open))
	}
	return nil
}
