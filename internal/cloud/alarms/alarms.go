package alarms

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tendril/internal/observe/telemetry"
)

// Settings determine an environment's alarms.
type Settings struct {
	// Environment consists of 1 to 64 letters, digits, "_" and "-".
	Environment string
	// HealthName is the dimension EnvironmentName of the environment's metrics; "" if they are not published.
	HealthName string
	Publishes  bool
	Interval   time.Duration
	Periodic   bool
	Region     string
	Queues     []Queue
	Actions    []string
}

// Queue is one of the environment's queues.
type Queue struct {
	// URL and ARN are "" if unknown.
	Name, URL, ARN string
	// OnSQS means that AWS publishes the queue's metrics, in Region or, if that is "", in the environment's region.
	OnSQS      bool
	Region     string
	DeadLetter string
	Limit      time.Duration
}

// Alarm is a CloudWatch alarm on one metric, with the limits of PutMetricAlarm.
type Alarm struct {
	// Name has 1 to 255 characters and is unique in the account and region.
	Name string
	// Description has at most 1024 characters.
	Description string
	Namespace   string
	Metric      string
	// Dimensions are sorted by name, at most 30.
	Dimensions []Dimension
	// Statistic is Average, Sum, Minimum, Maximum, SampleCount or an extended statistic such as p99.
	Statistic string
	// Unit "" matches any.
	Unit string
	// Comparison is GreaterThanThreshold, GreaterThanOrEqualToThreshold, LessThanThreshold or
	// LessThanOrEqualToThreshold.
	Comparison string
	Threshold  float64
	// Period is in seconds: 10, 20, 30 or a multiple of 60.
	Period int
	// At least DatapointsToAlarm of the last EvaluationPeriods must breach the threshold; 0 means all of them.
	EvaluationPeriods int
	DatapointsToAlarm int
	// MissingData is missing, notBreaching, breaching or ignore; "" means missing.
	MissingData string
	Notify
	Muted bool
}

// Notify has the ARNs to notify when the state of an alarm becomes ALARM, OK or INSUFFICIENT_DATA, at most five each.
// Nil is unset; an empty list removes the default.
type Notify struct {
	Actions        []string
	OKActions      []string
	MissingActions []string
}

func (n Notify) or(fallback Notify) Notify {
	if n.Actions == nil {
		n.Actions = fallback.Actions
	}
	if n.OKActions == nil {
		n.OKActions = fallback.OKActions
	}
	if n.MissingActions == nil {
		n.MissingActions = fallback.MissingActions
	}
	return n
}

// Dimension is a name-value pair that identifies a metric.
type Dimension struct {
	Name  string
	Value string
}

// Set contains an environment's alarms and its dashboard.
type Set struct {
	Environment string
	Alarms      []Alarm
	// Dashboard is a JSON body, or "".
	Dashboard string
	// LeftOut lists omitted alarms, with reasons.
	LeftOut []string
}

const (
	queueAge    = "queue-age"
	deadLetters = "dead-letters"
	failures    = "failures"
	latency     = "latency"
	healthKind  = "health"
	leaderKind  = "leader"
)

func kinds() []string {
	return []string{queueAge, deadLetters, failures, latency, healthKind, leaderKind}
}

const (
	atLeast      = "GreaterThanOrEqualToThreshold"
	below        = "LessThanThreshold"
	notBreaching = "notBreaching"
	breaching    = "breaching"
	sqsNamespace = "AWS/SQS"
)

// Describe returns an environment's alarms and dashboard. By default, all alarms except dead-letters and latency have
// the thresholds at which the health status becomes Degraded. f may be nil.
func Describe(s *Settings, f *File) Set {
	f = cmp.Or(f, &File{})
	d := describer{Settings: s, file: f, set: Set{Environment: s.Environment}}
	for i := range s.Queues {
		d.describeMessages(&s.Queues[i])
		d.describeDeliveries(&s.Queues[i])
	}
	d.describeEnvironment()

	for i := range f.added {
		a := f.added[i]
		a.Name = Prefix(s.Environment) + a.Name
		d.add(a, change{})
	}

	slices.SortFunc(d.set.Alarms, func(a, b Alarm) int { return strings.Compare(a.Name, b.Name) })
	d.set.LeftOut = append(d.set.LeftOut, f.leftOut...)
	if !f.NoDashboard {
		d.set.Dashboard = dashboardBody(s)
	}

	return d.set
}

// Prefix returns the prefix of an environment's alarm names.
func Prefix(environment string) string { return "tendril/" + environment + "/" }

// DashboardName returns the name of an environment's dashboard.
func DashboardName(environment string) string { return "tendril-" + environment }

type describer struct {
	*Settings
	file *File
	set  Set
}

func (d *describer) describeMessages(q *Queue) {
	if why := d.whyNoSQSMetrics(q); why != "" {
		d.omit(queueAge, q, why)
		d.omit(deadLetters, q, why)
		return
	}

	d.addKind(queueAge, q, Alarm{
		Description: "The oldest message of the queue " + q.Name + " has waited too long.",
		Namespace:   sqsNamespace, Metric: "ApproximateAgeOfOldestMessage",
		Dimensions: dimension("QueueName", q.Name), Statistic: "Maximum", Comparison: atLeast, Threshold: 1800,
		Period: 300, EvaluationPeriods: 1, MissingData: notBreaching,
	})

	if q.DeadLetter == "" {
		d.omit(deadLetters, q, "the queue has no dead-letter queue")
		return
	}
	d.addKind(deadLetters, q, Alarm{
		Description: fmt.Sprintf("Messages of the queue %s failed too often and are in %s.", q.Name, q.DeadLetter),
		Namespace:   sqsNamespace, Metric: "ApproximateNumberOfMessagesVisible",
		Dimensions: dimension("QueueName", q.DeadLetter), Statistic: "Maximum", Comparison: atLeast, Threshold: 1,
		Period: 300, EvaluationPeriods: 1, MissingData: notBreaching,
	})
}

func (d *describer) whyNoSQSMetrics(q *Queue) string {
	switch {
	case !q.OnSQS:
		return "CloudWatch has no metrics for embedded queues"
	case cmp.Or(q.Region, d.Region) != d.Region:
		return fmt.Sprintf("the queue is in %s and the alarms are in %s: set --region %[1]s", q.Region, d.Region)
	}
	return ""
}

func (d *describer) describeDeliveries(q *Queue) {
	if !d.Publishes {
		d.omit(failures, q, notPublished)
		d.omit(latency, q, notPublished)
		return
	}

	namespace := telemetry.NamespacePrefix + d.Environment
	d.addKind(failures, q, Alarm{
		Description: "Many deliveries from the queue " + q.Name + " fail. The value is the share of failures, 0 to 1.",
		Namespace:   namespace, Metric: "MessagesFailed", Dimensions: dimension("Queue", q.Name), Statistic: "Average",
		Comparison: atLeast, Threshold: 0.15, Period: d.period(300), EvaluationPeriods: 3, DatapointsToAlarm: 2,
		MissingData: notBreaching,
	})

	d.addKind(latency, q, Alarm{
		Description: fmt.Sprintf("Deliveries from the queue %s take almost as long as their limit of %s.", q.Name,
			q.Limit),
		Namespace: namespace, Metric: "Duration", Dimensions: dimension("Queue", q.Name), Statistic: "Maximum",
		Comparison: atLeast, Threshold: math.Round(0.8 * float64(q.Limit.Milliseconds())), Period: d.period(300),
		EvaluationPeriods: 3, MissingData: notBreaching,
	})
}

const notPublished = "no metrics are sent to CloudWatch: set --cloudwatch on"

func (d *describer) describeEnvironment() {
	if why := d.whyNoHealthMetrics(); why != "" {
		d.omit(healthKind, nil, why)
		if d.Periodic {
			d.omit(leaderKind, nil, why)
		}
		return
	}

	period := d.period(60)
	d.addKind(healthKind, nil, Alarm{
		Description: "The environment is Degraded (20) or Severe (25), or not running.",
		Namespace:   telemetry.HealthNamespace, Metric: "EnvironmentHealth",
		Dimensions: dimension("EnvironmentName", d.HealthName), Statistic: "Maximum", Comparison: atLeast, Threshold: 20,
		Period: period, EvaluationPeriods: max(1, 300/period), MissingData: breaching,
	})

	if !d.Periodic {
		return
	}

	d.addKind(leaderKind, nil, Alarm{
		Description: "No instance is the leader: periodic tasks are not enqueued.",
		Namespace:   telemetry.HealthNamespace, Metric: "Leader",
		Dimensions: dimension("EnvironmentName", d.HealthName), Statistic: "Maximum", Comparison: below, Threshold: 1,
		Period: period, EvaluationPeriods: max(1, 600/period), MissingData: breaching,
	})
}

func (d *describer) whyNoHealthMetrics() string {
	switch {
	case !d.Publishes:
		return notPublished
	case d.HealthName == "":
		return "the status of the environment is not sent to CloudWatch: set --environment-name"
	}
	return ""
}

// period returns a multiple of 60 seconds that covers at least one sample.
func (d *describer) period(least int) int {
	return max(least, int((d.Interval+time.Minute-1)/time.Minute)*60)
}

func dimension(name, value string) []Dimension {
	return []Dimension{{Name: name, Value: value}}
}

// addKind adds an alarm for a queue, or for the environment if q is nil, unless the file turns it off.
func (d *describer) addKind(kind string, q *Queue, a Alarm) {
	name, c := d.change(kind, q)
	if !c.Off {
		a.Name = Prefix(d.Environment) + name
		d.add(a, c)
	}
}

// change prefers an entry for the alarm's name to one for its kind.
func (d *describer) change(kind string, q *Queue) (name string, c change) {
	name = kind
	if q != nil {
		name += "/" + q.Name
	}
	if c, found := d.file.changes[name]; found {
		return name, c
	}
	return name, d.file.changes[kind]
}

func (d *describer) add(a Alarm, c change) {
	c.apply(&a)
	a.Notify = a.Notify.or(d.file.Notify).or(Notify{Actions: d.Settings.Actions})
	d.set.Alarms = append(d.set.Alarms, a)
}

func (d *describer) omit(kind string, q *Queue, why string) {
	if name, c := d.change(kind, q); !c.Off {
		d.set.LeftOut = append(d.set.LeftOut, name+": "+why)
	}
}
