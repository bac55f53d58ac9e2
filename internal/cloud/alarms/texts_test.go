package alarms

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/aws"
	"tendril/internal/testing/testpeer"
)

// awkward is a set with everything that an alarm can have, and texts that templates could take for their own.
func awkward() *Set {
	set := Describe(shop(), &File{Actions: []string{"arn:aws:sns:eu-west-1:1:on-call"}})
	set.Alarms = append(set.Alarms, aws.Alarm{
		Name: "tendril/shop/1 \"odd\" ${name}", Description: "a\\b\nc %{if} \t", Namespace: "N", Metric: "M",
		Statistic: "p99.9", Unit: "Seconds",
		Comparison: "LessThanThreshold", Threshold: -0.000001, Period: 60, EvaluationPeriods: 3,
		DatapointsToAlarm: 2, MissingData: "missing", OKActions: []string{"arn:aws:sns:eu-west-1:1:ok"},
		MissingActions: []string{"arn:aws:sns:eu-west-1:1:a", "arn:aws:sns:eu-west-1:1:b"}, Muted: true,
	})
	return &set
}

// cloudFormation reads a template back as alarms by name, and the dashboard.
func cloudFormation(t *testing.T, text string) (alarms map[string]aws.Alarm, dashboard string) {
	t.Helper()
	type resource struct {
		Type       string
		Properties struct {
			aws.Alarm
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
	alarms = map[string]aws.Alarm{}
	for _, r := range template.Resources {
		p := r.Properties
		if r.Type == "AWS::CloudWatch::Dashboard" {
			if p.DashboardName != "tendril-shop" {
				t.Errorf("the dashboard is called %q", p.DashboardName)
			}
			dashboard = p.DashboardBody
			continue
		}
		a := p.Alarm // properties that have the same name there
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
		if changes := differences(&is, &set.Alarms[i]); changes != nil {
			t.Errorf("%s: %v", set.Alarms[i].Name, changes)
		}
	}
}

// TestCloudFormationIsAcceptedByItsLinter runs cfn-lint, which knows the schema of every resource.
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

// readHCL prints the resources of a file as JSON. hcl2 leaves texts as they are written, whose
// escapes are those of JSON but for templates.
const readHCL = `
import hcl2, json, sys
def plain(v):
    if isinstance(v, dict):
        return {plain(k): plain(x) for k, x in v.items() if not k.startswith("__")}
    if isinstance(v, list):
        return [plain(x) for x in v]
    if isinstance(v, str) and v.startswith('"'):
        return json.loads(v).replace("$${", "${").replace("%%{", "%{")
    return v
with open(sys.argv[1]) as f:
    print(json.dumps([plain(r) for r in hcl2.load(f)["resource"]]))
`

func TestTerraformIsReadByAParserOfHCL(t *testing.T) {
	t.Parallel()
	python := testpeer.Python(t, "python-hcl2", "hcl2")
	set := awkward()
	path := filepath.Join(t.TempDir(), "alarms.tf")
	if err := os.WriteFile(path, []byte(set.Terraform()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "-c", readHCL, path).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, set.Terraform())
	}
	type resource struct {
		Name         string            `json:"alarm_name"`
		Description  string            `json:"alarm_description"`
		Namespace    string            `json:"namespace"`
		Metric       string            `json:"metric_name"`
		Dimensions   map[string]string `json:"dimensions"`
		Statistic    string            `json:"statistic"`
		Extended     string            `json:"extended_statistic"`
		Unit         string            `json:"unit"`
		Comparison   string            `json:"comparison_operator"`
		Threshold    json.Number       `json:"threshold"`
		Period       int               `json:"period"`
		Periods      int               `json:"evaluation_periods"`
		Datapoints   int               `json:"datapoints_to_alarm"`
		MissingData  string            `json:"treat_missing_data"`
		Enabled      bool              `json:"actions_enabled"`
		Actions      []string          `json:"alarm_actions"`
		OK           []string          `json:"ok_actions"`
		Insufficient []string          `json:"insufficient_data_actions"`
		Dashboard    string            `json:"dashboard_name"`
		Body         string            `json:"dashboard_body"`
	}
	var read []map[string]map[string]resource
	if err := json.Unmarshal(out, &read); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var names []string
	found := map[string]aws.Alarm{}
	for _, entry := range read {
		for kind, named := range entry {
			for name, r := range named {
				names = append(names, kind+"."+name)
				if kind == "aws_cloudwatch_dashboard" {
					if r.Dashboard != "tendril-shop" || r.Body != set.Dashboard {
						t.Errorf("the dashboard %s is %s", r.Dashboard, r.Body)
					}
					continue
				}
				a := aws.Alarm{Name: r.Name, Description: r.Description, Namespace: r.Namespace, Metric: r.Metric,
					Statistic: r.Statistic + r.Extended, Unit: r.Unit, Comparison: r.Comparison, Period: r.Period,
					EvaluationPeriods: r.Periods, DatapointsToAlarm: r.Datapoints, MissingData: r.MissingData, Muted: !r.Enabled,
					Actions: r.Actions, OKActions: r.OK, MissingActions: r.Insufficient}
				for name, value := range r.Dimensions {
					a.Dimensions = append(a.Dimensions, aws.Dimension{Name: name, Value: value})
				}
				if a.Threshold, err = r.Threshold.Float64(); err != nil {
					t.Error(err)
				}
				found[a.Name] = a
			}
		}
	}
	for i := range set.Alarms {
		is := found[set.Alarms[i].Name]
		if changes := differences(&is, &set.Alarms[i]); changes != nil {
			t.Errorf("%s: %v", set.Alarms[i].Name, changes)
		}
	}
	const alarm = "aws_cloudwatch_metric_alarm."
	if diff := cmp.Diff([]string{alarm + "dead_letters_orders", alarm + "failures_mails", alarm + "failures_orders",
		alarm + "health", alarm + "latency_mails", alarm + "latency_orders", alarm + "leader", alarm + "queue_age_orders",
		alarm + "alarm_1_odd_name", "aws_cloudwatch_dashboard.dashboard"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNamesOfResourcesAreUnique(t *testing.T) {
	t.Parallel()
	names := identifiers{taken: map[string]bool{}}
	var got []string
	for _, name := range []string{"queue-age/a.b", "queue-age/a-b", "é", "9 lives"} {
		got = append(got, names.snake(name))
	}
	for _, name := range []string{"queue-age/a.b", "queue-age/a_b"} {
		got = append(got, names.camel(name))
	}
	if diff := cmp.Diff([]string{"queue_age_a_b", "queue_age_a_b2", "alarm_", "alarm_9_lives", "QueueAgeAB",
		"QueueAgeAB2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
