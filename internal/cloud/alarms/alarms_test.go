package alarms

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/bundle"
)

func shop() *Settings {
	return &Settings{Environment: "shop", HealthName: "shop-prod", Publishes: true, Interval: time.Minute, Periodic: true,
		Region: "eu-west-1", Queues: []Queue{
			{Name: "orders", URL: "https://sqs.eu-west-1.amazonaws.com/123456789012/orders",
				ARN: "arn:aws:sqs:eu-west-1:123456789012:orders", OnSQS: true, DeadLetter: "orders-dead", Limit: 3 * time.Minute},
			{Name: "mails", Limit: 10 * time.Second},
		}}
}

func condition(a *Alarm) string {
	signs := map[string]string{atLeast: ">=", "GreaterThanThreshold": ">", below: "<", "LessThanOrEqualToThreshold": "<="}
	text := fmt.Sprintf("%s of %s %s %v", a.Statistic, a.Metric, signs[a.Comparison], a.Threshold)
	if a.DatapointsToAlarm == 0 || a.DatapointsToAlarm == a.EvaluationPeriods {
		return text + fmt.Sprintf(" for %d s", a.EvaluationPeriods*a.Period)
	}
	return text + fmt.Sprintf(" in %d of %d periods of %d s", a.DatapointsToAlarm, a.EvaluationPeriods, a.Period)
}

func lines(alarms []Alarm) (text []string) {
	for i := range alarms {
		a := &alarms[i]
		line := fmt.Sprintf("%s: %s: %s", strings.TrimPrefix(a.Name, "tendril/shop/"), a.Namespace, condition(a))
		for _, d := range a.Dimensions {
			line += ", " + d.Name + " " + d.Value
		}
		line += ", missing " + a.MissingData
		for _, list := range [][]string{a.Actions, a.OKActions, a.MissingActions} {
			if len(list) > 0 {
				line += fmt.Sprint(" ", list)
			}
		}
		if a.Muted {
			line += " muted"
		}
		text = append(text, line)
	}
	return text
}

func TestDefaultsAreWhereHealthBecomesDegraded(t *testing.T) {
	t.Parallel()
	set := Describe(shop(), nil)
	want := []string{
		"dead-letters/orders: AWS/SQS: Maximum of ApproximateNumberOfMessagesVisible >= 1 for 300 s, " +
			"QueueName orders-dead, missing notBreaching",
		"failures/mails: Workerless-shop: Average of MessagesFailed >= 0.15 in 2 of 3 periods of 300 s, Queue mails, " +
			"missing notBreaching",
		"failures/orders: Workerless-shop: Average of MessagesFailed >= 0.15 in 2 of 3 periods of 300 s, Queue orders, " +
			"missing notBreaching",
		"health: ElasticBeanstalk/SQSD: Maximum of EnvironmentHealth >= 20 for 300 s, EnvironmentName shop-prod, " +
			"missing breaching",
		"latency/mails: Workerless-shop: Maximum of Duration >= 8000 for 900 s, Queue mails, missing notBreaching",
		"latency/orders: Workerless-shop: Maximum of Duration >= 144000 for 900 s, Queue orders, missing notBreaching",
		"leader: ElasticBeanstalk/SQSD: Maximum of Leader < 1 for 600 s, EnvironmentName shop-prod, missing breaching",
		"queue-age/orders: AWS/SQS: Maximum of ApproximateAgeOfOldestMessage >= 1800 for 300 s, QueueName orders, " +
			"missing notBreaching",
	}
	if diff := cmp.Diff(want, lines(set.Alarms)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	left := []string{"queue-age/mails: CloudWatch has no metrics for embedded queues",
		"dead-letters/mails: CloudWatch has no metrics for embedded queues"}
	if diff := cmp.Diff(left, set.LeftOut); diff != "" {
		t.Errorf("what is left out (-want +got):\n%s", diff)
	}
}

func TestAlarmsWithoutMetricAreNamed(t *testing.T) {
	t.Parallel()
	orders := func(edit func(*Settings)) *Settings {
		s := shop()
		s.Queues = s.Queues[:1]
		edit(s)
		return s
	}
	for name, test := range map[string]struct {
		settings *Settings
		left     []string
	}{
		"no metrics": {orders(func(s *Settings) { s.Publishes = false }), []string{"failures/orders: " + notPublished,
			"latency/orders: " + notPublished, "health: " + notPublished, "leader: " + notPublished}},
		"no environment name": {orders(func(s *Settings) { s.HealthName = "" }), []string{
			"health: the status of the environment is not sent to CloudWatch: set --environment-name",
			"leader: the status of the environment is not sent to CloudWatch: set --environment-name"}},
		"no dead-letter queue": {orders(func(s *Settings) { s.Queues[0].DeadLetter = "" }), []string{
			"dead-letters/orders: the queue has no dead-letter queue"}},
		"another region": {orders(func(s *Settings) { s.Queues[0].Region = "us-east-1" }), []string{
			"queue-age/orders: the queue is in us-east-1 and the alarms are in eu-west-1: set --region us-east-1",
			"dead-letters/orders: the queue is in us-east-1 and the alarms are in eu-west-1: set --region us-east-1"}},
		"no tasks": {orders(func(s *Settings) { s.Periodic = false }), nil},
	} {
		if diff := cmp.Diff(test.left, Describe(test.settings, nil).LeftOut); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Without a sample, a period has no data, which two alarms treat as breaching.
func TestPeriodsHoldAtLeastOneSample(t *testing.T) {
	t.Parallel()
	for interval, want := range map[time.Duration]string{
		time.Second: "60x5 60x10 300x3", time.Minute: "60x5 60x10 300x3", 61 * time.Second: "120x2 120x5 300x3",
		time.Hour: "3600x1 3600x1 3600x3",
	} {
		s := shop()
		s.Interval = interval
		got := map[string]string{}
		for _, a := range Describe(s, nil).Alarms {
			got[strings.TrimPrefix(a.Name, "tendril/shop/")] = fmt.Sprintf("%dx%d", a.Period, a.EvaluationPeriods)
		}
		if is := got["health"] + " " + got["leader"] + " " + got["latency/orders"]; is != want {
			t.Errorf("%v: %s, want %s", interval, is, want)
		}
	}
}

func TestTheFileChangesAlarms(t *testing.T) {
	t.Parallel()
	f, err := parse("alarms.yaml", []byte(`
actions: arn:aws:sns:eu-west-1:1:all
ok_actions: [arn:aws:sns:eu-west-1:1:ok]
alarms:
  queue-age:
    threshold: 600
    period: 60
    evaluation_periods: 5
    datapoints_to_alarm: 3
    treat_missing_data: ignore
  failures: {evaluation_periods: 1}
  failures/mails: off
  latency/mails:
    actions: [arn:aws:sns:eu-west-1:1:mails, arn:aws:sns:eu-west-1:1:more]
    ok_actions: []
  latency/orders: off
  dead-letters: {actions_enabled: off}
  health: no
  leader: off
dashboard: off
`), []string{"orders", "mails"})
	if err != nil {
		t.Fatal(err)
	}
	s := shop()
	s.Actions = []string{"arn:aws:sns:eu-west-1:1:other"} // the file takes precedence
	set := Describe(s, f)
	want := []string{
		"dead-letters/orders: AWS/SQS: Maximum of ApproximateNumberOfMessagesVisible >= 1 for 300 s, " +
			"QueueName orders-dead, missing notBreaching [arn:aws:sns:eu-west-1:1:all] [arn:aws:sns:eu-west-1:1:ok] muted",
		"failures/orders: Workerless-shop: Average of MessagesFailed >= 0.15 for 300 s, Queue orders, " +
			"missing notBreaching [arn:aws:sns:eu-west-1:1:all] [arn:aws:sns:eu-west-1:1:ok]",
		"latency/mails: Workerless-shop: Maximum of Duration >= 8000 for 900 s, Queue mails, missing notBreaching " +
			"[arn:aws:sns:eu-west-1:1:mails arn:aws:sns:eu-west-1:1:more]",
		"queue-age/orders: AWS/SQS: Maximum of ApproximateAgeOfOldestMessage >= 600 in 3 of 5 periods of 60 s, " +
			"QueueName orders, missing ignore [arn:aws:sns:eu-west-1:1:all] [arn:aws:sns:eu-west-1:1:ok]",
	}
	if diff := cmp.Diff(want, lines(set.Alarms)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if set.Dashboard != "" {
		t.Error("there is a dashboard, though it is off")
	}
}

func TestMistakesInTheFileAreNamedWithTheirLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"alarm:\n  queue-age: off":                                    "alarms.yaml:1: unknown key alarm",
		"alarms:\n  age: off":                                         "alarms.yaml:2: unknown alarm age",
		"alarms:\n  health/orders: off":                               "alarms.yaml:2: the alarm health does not belong to a queue",
		"alarms:\n  queue-age/order: off":                             "alarms.yaml:2: the environment has no queue order",
		"alarms:\n  queue-age: maybe":                                 "alarms.yaml:2: queue-age is neither on nor off",
		"alarms:\n  queue-age: [1]":                                   "alarms.yaml:2: queue-age is neither a map nor off",
		"alarms:\n  queue-age:\n    treshold: 1":                      "alarms.yaml:3: unknown property treshold",
		"alarms:\n  queue-age:\n    threshold: NaN":                   "alarms.yaml:3: threshold is not a number",
		"alarms:\n  queue-age:\n    threshold: ten":                   "alarms.yaml:3: threshold is not a number",
		"alarms:\n  queue-age:\n    period: 45":                       "alarms.yaml:3: period is out of range",
		"alarms:\n  queue-age:\n    evaluation_periods: 0":            "alarms.yaml:3: evaluation_periods is out of range",
		"alarms:\n  queue-age: {datapoints_to_alarm: 2}":              "alarms.yaml:2: datapoints_to_alarm is more than",
		"alarms:\n  queue-age:\n    treat_missing_data: never":        "alarms.yaml:3: invalid treat_missing_data",
		"alarms:\n  queue-age: off\n  queue-age: on":                  "alarms.yaml:3: queue-age is in the file twice",
		"actions:\n  - topic":                                         "alarms.yaml:2: this action is not an ARN",
		"actions: [" + strings.Repeat("arn:aws:sns:r:1:t, ", 6) + "]": "alarms.yaml:1: actions has more than 5 actions",
		"- 1": "alarms.yaml:1: not a list of alarms",
	} {
		_, err := parse("alarms.yaml", []byte(text), []string{"orders"})
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "\n  ") {
			t.Errorf("%q: %v, want %s and a hint", text, err, want)
		}
	}
}

func TestAMissingFileIsAnErrorUnlessItIsOptional(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), FileName)
	if f, err := Read(path, true, nil); err != nil || f == nil {
		t.Errorf("%v, %v", f, err)
	}
	if _, err := Read(path, false, nil); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v does not name the file", err)
	}
}

const extensions = `
option_settings:
  aws:elasticbeanstalk:customoption:
    Depth: 25
Resources:
  AWSEBCloudwatchAlarmHigh:
    Type: AWS::CloudWatch::Alarm
    Properties:
      AlarmActions: []
  Topic:
    Type: AWS::SNS::Topic
  QueueDepthAlarm:
    Type: AWS::CloudWatch::Alarm
    Properties:
      AlarmDescription: too many messages
      Namespace: AWS/SQS
      MetricName: ApproximateNumberOfMessagesVisible
      Dimensions:
        - Name: QueueName
          Value: {"Fn::GetAtt": [AWSEBWorkerQueue, QueueName]}
      Statistic: Sum
      Period: 60
      EvaluationPeriods: 2
      Threshold:
        Fn::GetOptionSetting: {OptionName: Depth, DefaultValue: 10}
      ComparisonOperator: GreaterThanThreshold
      AlarmActions:
        - Ref: Topic
      OKActions:
        - arn:aws:sns:eu-west-1:1:own
  Dead:
    Type: AWS::CloudWatch::Alarm
    Properties:
      AlarmName: dead
      Namespace: AWS/SQS
      MetricName: ApproximateNumberOfMessagesVisible
      Dimensions: [{Name: QueueName, Value: !GetAtt AWSEBWorkerDeadLetterQueue.QueueName}]
      ExtendedStatistic: p90
      Period: 300
      EvaluationPeriods: 3
      DatapointsToAlarm: 2
      Threshold: 5
      ComparisonOperator: GreaterThanOrEqualToThreshold
      TreatMissingData: ignore
      ActionsEnabled: false
  ScaleUp:
    Type: AWS::CloudWatch::Alarm
    Properties: {Namespace: N, MetricName: M, Statistic: Sum, Period: 60, EvaluationPeriods: 1, Threshold: 1,
      ComparisonOperator: GreaterThanThreshold, AlarmActions: [{Ref: ScaleUpPolicy}]}
  Math:
    Type: AWS::CloudWatch::Alarm
    Properties:
      Metrics: []
  Text:
    Type: AWS::CloudWatch::Alarm
    Properties:
      Threshold: !Sub "${A}"
  Empty:
    Type: AWS::CloudWatch::Alarm
`

func TestAlarmsOfABundleAreAdded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".ebextensions"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".ebextensions", "a.config"), []byte(extensions), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &Settings{Environment: "shop", Region: "eu-west-1", Queues: shop().Queues[:1],
		Actions: []string{"arn:aws:sns:eu-west-1:1:all"}}
	f := &File{changes: map[string]change{}}
	for _, kind := range kinds() {
		f.changes[kind] = change{Off: true}
	}
	f.AddBundle(b, s)
	set := Describe(s, f)
	want := []string{
		"QueueDepthAlarm: AWS/SQS: Sum of ApproximateNumberOfMessagesVisible > 25 for 120 s, QueueName orders, missing  " +
			"[arn:aws:sns:eu-west-1:1:all] [arn:aws:sns:eu-west-1:1:own]",
		"dead: AWS/SQS: p90 of ApproximateNumberOfMessagesVisible >= 5 in 2 of 3 periods of 300 s, QueueName orders-dead, " +
			"missing ignore [arn:aws:sns:eu-west-1:1:all] muted",
	}
	if diff := cmp.Diff(want, lines(set.Alarms)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	file := filepath.Join(dir, ".ebextensions", "a.config")
	left := []string{
		"AWSEBCloudwatchAlarmHigh: this alarm scales the environment, which tendril does without it (" + file + ":6)",
		"ScaleUp: it refers to ScaleUpPolicy, which tendril does not create (" + file + ":49)",
		"Math: the property Metrics is not supported (" + file + ":53)",
		"Text: a value is computed by CloudFormation and unknown here (" + file + ":57)",
		"Empty: it has no Properties (" + file + ":58)",
	}
	if diff := cmp.Diff(left, set.LeftOut); diff != "" {
		t.Errorf("what is left out (-want +got):\n%s", diff)
	}
	unused := fmt.Sprint(b.Unsupported)
	for _, want := range []string{"'tendril generate alarms' prints (Resources: AWSEBCloudwatchAlarmHigh, QueueDepthAlarm",
		"(Resources: Topic)"} {
		if !strings.Contains(unused, want) {
			t.Errorf("%s is not in what the bundle does not use: %s", want, unused)
		}
	}
}

func TestDashboardShowsWhatIsPublished(t *testing.T) {
	t.Parallel()
	var body struct {
		Widgets []struct {
			X, Y, Width, Height int
			Properties          struct {
				Title   string
				Region  string
				Metrics [][]any
			}
		}
	}
	s := shop()
	if err := json.Unmarshal([]byte(Describe(s, nil).Dashboard), &body); err != nil {
		t.Fatal(err)
	}
	used := map[[2]int]string{}
	var shown []string
	for _, w := range body.Widgets {
		for x := w.X; x < w.X+w.Width; x++ {
			for y := w.Y; y < w.Y+w.Height; y++ {
				if other, taken := used[[2]int{x, y}]; taken || x >= 24 {
					t.Errorf("%q overlaps %q or is too far right", w.Properties.Title, other)
				}
				used[[2]int{x, y}] = w.Properties.Title
			}
		}
		for _, m := range w.Properties.Metrics {
			if w.Properties.Region != "eu-west-1" {
				t.Errorf("%q is in region %q", w.Properties.Title, w.Properties.Region)
			}
			shown = append(shown, fmt.Sprint(m[:4]))
		}
	}
	want := []string{
		"[ElasticBeanstalk/SQSD EnvironmentHealth EnvironmentName shop-prod]",
		"[ElasticBeanstalk/SQSD Leader EnvironmentName shop-prod]",
		"[AWS/SQS ApproximateAgeOfOldestMessage QueueName orders]",
		"[AWS/SQS ApproximateNumberOfMessagesVisible QueueName orders]",
		"[AWS/SQS ApproximateNumberOfMessagesNotVisible QueueName orders]",
		"[AWS/SQS ApproximateNumberOfMessagesVisible QueueName orders-dead]",
		"[Workerless-shop MessagesProcessed Queue orders]", "[Workerless-shop MessagesFailed Queue orders]",
		"[Workerless-shop Duration Queue orders]", "[Workerless-shop Duration Queue orders]",
		"[Workerless-shop MessagesProcessed Queue mails]", "[Workerless-shop MessagesFailed Queue mails]",
		"[Workerless-shop Duration Queue mails]", "[Workerless-shop Duration Queue mails]",
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
