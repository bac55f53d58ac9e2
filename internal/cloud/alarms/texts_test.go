package alarms

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tendril/internal/testing/testpeer"
)

func awkward() *Set {
	set := Describe(shop(), &File{Notify: Notify{Actions: []string{"arn:aws:sns:eu-west-1:1:on-call"}}})
	set.Alarms = append(set.Alarms, Alarm{
		Name: "tendril/shop/1 \"odd\" ${name}", Description: "a\\b\nc %{if} \t", Namespace: "N", Metric: "M",
		Statistic: "p99.9", Unit: "Seconds",
		Comparison: "LessThanThreshold", Threshold: -0.000001, Period: 60, EvaluationPeriods: 3,
		DatapointsToAlarm: 2, MissingData: "missing", Notify: Notify{OKActions: []string{"arn:aws:sns:eu-west-1:1:ok"},
			MissingActions: []string{"arn:aws:sns:eu-west-1:1:a", "arn:aws:sns:eu-west-1:1:b"}}, Muted: true,
	})
	return &set
}

func cloudFormation(t *testing.T, text string) (alarms map[string]Alarm, dashboard string) {
	t.Helper()
	type resource struct {
		Type       string
		Properties struct {
			Alarm
			AlarmName, AlarmDescription, MetricName, ExtendedStatistic, ComparisonOperator string
			TreatMissingData, DashboardName, DashboardBody                                 string
			AlarmActions, OKActions, InsufficientDataActions                               []string
			ActionsEnabled                                                                 bool
		}
	}
	var template struct{ Resources map[string]resource }
	if err := json.Unmarshal([]byte(text), &template); err != nil {
		t.Fatal(err)
	}
	alarms = map[string]Alarm{}
	for _, r := range template.Resources {
		p := r.Properties
		if r.Type == "AWS::CloudWatch::Dashboard" {
			if p.DashboardName != "tendril-shop" {
				t.Errorf("the dashboard is called %q", p.DashboardName)
			}
			dashboard = p.DashboardBody
			continue
		}
		a := p.Alarm
		a.Name, a.Description, a.Metric, a.Comparison = p.AlarmName, p.AlarmDescription, p.MetricName, p.ComparisonOperator
		if a.Statistic == "" {
			a.Statistic = p.ExtendedStatistic
		}
		a.MissingData, a.Muted = p.TreatMissingData, !p.ActionsEnabled
		a.Actions, a.OKActions, a.MissingActions = p.AlarmActions, p.OKActions, p.InsufficientDataActions
		alarms[a.Name] = a
	}
	return alarms, dashboard
}

func TestCloudFormationHasEveryAlarm(t *testing.T) {
	t.Parallel()
	set := awkward()
	text, err := set.CloudFormation()
	if err != nil {
		t.Fatal(err)
	}
	alarms, dashboard := cloudFormation(t, text)
	if dashboard != set.Dashboard || len(alarms) != len(set.Alarms) {
		t.Errorf("%d alarms, want %d; the dashboard is %s", len(alarms), len(set.Alarms), dashboard)
	}
	for i := range set.Alarms {
		is := alarms[set.Alarms[i].Name]
		if diff := cmp.Diff(set.Alarms[i], is, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", set.Alarms[i].Name, diff)
		}
	}
}

func TestCloudFormationIsAcceptedByItsLinter(t *testing.T) {
	t.Parallel()
	lint := testpeer.PythonProgram(t, "cfn-lint", "cfn-lint")
	text, err := awkward().CloudFormation()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "alarms.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(lint, path).CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestNamesOfResourcesAreUnique(t *testing.T) {
	t.Parallel()
	used := map[string]any{}
	var got []string
	for _, name := range []string{"queue-age/a.b", "queue-age/a-b", "queue-age/a_b", "é", "9 lives"} {
		resource := unusedLogicalID(name, used)
		used[resource] = name
		got = append(got, resource)
	}
	if diff := cmp.Diff([]string{"QueueAgeABAlarm", "QueueAgeAB2Alarm", "QueueAgeAB3Alarm", "Alarm", "9LivesAlarm"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
