package alarms

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/bundle"
	"tendril/internal/config/yamlfile"
)

// Source: AWS Elastic Beanstalk Developer Guide, "Modifying the resources that Elastic Beanstalk creates for your
// environment".
const (
	workerQueue     = "AWSEBWorkerQueue"
	deadLetterQueue = "AWSEBWorkerDeadLetterQueue"
	scalingHigh     = "AWSEBCloudwatchAlarmHigh"
	scalingLow      = "AWSEBCloudwatchAlarmLow"
)

// AddBundle adds the alarms in a bundle's configuration files. It omits those that scale the environment, are invalid,
// or use resources, values or properties that tendril does not support.
func (f *File) AddBundle(b *bundle.Bundle, s *Settings) {
	for i := range b.Resources {
		r := &b.Resources[i]
		if r.Type != bundle.TypeAlarm {
			continue
		}
		c := resourceReader{bundle: b, settings: s, resource: r}
		a := c.readAlarm()
		if c.why == "" {
			f.added = append(f.added, a)
			continue
		}
		place := yamlfile.Place(r.File, cmp.Or(c.line, r.Line), 0)
		f.leftOut = append(f.leftOut, fmt.Sprintf("%s: %s (%s)", yamlfile.Printable(r.Name), c.why, place))
	}
}

type resourceReader struct {
	bundle   *bundle.Bundle
	settings *Settings
	resource *bundle.Resource
	why      string
	line     int
}

func (c *resourceReader) refuse(n *yamlfile.Node, format string, args ...any) {
	if c.why == "" {
		c.why, c.line = fmt.Sprintf(format, args...), n.Line
	}
}

func (c *resourceReader) readAlarm() (a Alarm) {
	a.Name = c.resource.Name
	if a.Name == scalingHigh || a.Name == scalingLow {
		c.why = "this alarm scales the environment, which tendril does without it"
		return a
	}

	if c.resource.Properties == nil {
		c.why = "it has no Properties"
		return a
	}

	for _, p := range c.resource.Properties.Pairs {
		c.readProperty(&a, p)
	}

	for _, required := range []struct{ name, value string }{
		{"Namespace", a.Namespace}, {"MetricName", a.Metric}, {"Statistic", a.Statistic},
		{"ComparisonOperator", a.Comparison},
	} {
		if required.value == "" {
			c.refuse(c.resource.Properties, "it has no %s", required.name)
		}
	}

	if a.Period == 0 || a.EvaluationPeriods == 0 {
		c.refuse(c.resource.Properties, "it has no Period or no EvaluationPeriods")
	}

	slices.SortFunc(a.Dimensions, func(a, b Dimension) int { return strings.Compare(a.Name, b.Name) })
	return a
}

func (c *resourceReader) readProperty(a *Alarm, p yamlfile.Pair) {
	texts := map[string]*string{
		"AlarmName": &a.Name, "AlarmDescription": &a.Description, "Namespace": &a.Namespace, "MetricName": &a.Metric,
		"Statistic": &a.Statistic, "ExtendedStatistic": &a.Statistic, "ComparisonOperator": &a.Comparison,
		"Unit": &a.Unit, "TreatMissingData": &a.MissingData,
	}
	if field := texts[p.Key]; field != nil {
		*field = c.text(p.Value)
		return
	}

	switch p.Key {
	case "Threshold":
		a.Threshold = c.number(p)
	case "Period":
		a.Period = int(c.number(p))
	case "EvaluationPeriods":
		a.EvaluationPeriods = int(c.number(p))
	case "DatapointsToAlarm":
		a.DatapointsToAlarm = int(c.number(p))
	case "ActionsEnabled":
		a.Muted = strings.EqualFold(c.text(p.Value), "false")
	case "AlarmActions":
		a.Actions = c.actions(p.Value)
	case "OKActions":
		a.OKActions = c.actions(p.Value)
	case "InsufficientDataActions":
		a.MissingActions = c.actions(p.Value)
	case "Dimensions":
		a.Dimensions = c.dimensions(p.Value)
	case "Tags": // tendril sets its own tags
	default:
		c.refuse(p.Value, "the property %s is not supported", yamlfile.Printable(p.Key))
	}
}

func (c *resourceReader) dimensions(n *yamlfile.Node) (all []Dimension) {
	for _, item := range n.Items {
		name, value := item.Get("Name"), item.Get("Value")
		if name == nil || value == nil {
			c.refuse(item, "a dimension has no Name or no Value")
			continue
		}
		all = append(all, Dimension{Name: c.text(name), Value: c.text(value)})
	}
	return all
}

func (c *resourceReader) number(p yamlfile.Pair) float64 {
	text := c.text(p.Value)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		c.refuse(p.Value, "%s is not a number", p.Key)
	}
	return v
}

// The bundle's topics are omitted, because tendril does not create them. A nil result means the default actions.
func (c *resourceReader) actions(n *yamlfile.Node) (found []string) {
	if len(n.Items) == 0 {
		return []string{}
	}
	for _, item := range n.Items {
		if name, _ := reference(item); c.typeOf(name) == "AWS::SNS::Topic" {
			continue
		}
		found = append(found, c.text(item))
	}
	return found
}

func (c *resourceReader) typeOf(name string) string {
	for _, r := range c.bundle.Resources {
		if name != "" && r.Name == name {
			return r.Type
		}
	}
	return ""
}

func (c *resourceReader) text(n *yamlfile.Node) string {
	if name, attribute := reference(n); name != "" {
		value, known := c.resolve(name, attribute)
		if !known {
			c.refuse(n, "it refers to %s, which tendril does not create", yamlfile.Printable(name))
		}
		return value
	}
	if option := n.Get("Fn::GetOptionSetting"); option != nil {
		return c.option(option)
	}
	if n.Kind != yamlfile.Scalar || strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		c.refuse(n, "a value is computed by CloudFormation and unknown here")
		return ""
	}
	return n.Text
}

func (c *resourceReader) option(n *yamlfile.Node) string {
	namespace, name := "aws:elasticbeanstalk:customoption", ""
	if given := n.Get("Namespace"); given != nil {
		namespace = given.Text
	}
	if given := n.Get("OptionName"); given != nil {
		name = given.Text
	}
	if s, found := c.bundle.Setting(namespace, name); found {
		return s.Value
	}
	if standard := n.Get("DefaultValue"); standard != nil {
		return c.text(standard)
	}
	c.refuse(n, "the option %s has no value", yamlfile.Printable(name))
	return ""
}

func reference(n *yamlfile.Node) (name, attribute string) {
	if n.Tag == "!Ref" {
		return n.Text, ""
	}
	if n.Tag == "!GetAtt" {
		return attributeReference(n)
	}

	if n.Kind != yamlfile.Mapping || len(n.Pairs) != 1 {
		return "", ""
	}
	if ref := n.Get("Ref"); ref != nil {
		return ref.Text, ""
	}
	if of := n.Get("Fn::GetAtt"); of != nil {
		return attributeReference(of)
	}
	return "", ""
}

func attributeReference(n *yamlfile.Node) (name, attribute string) {
	if n.Kind == yamlfile.Scalar {
		name, attribute, _ = strings.Cut(n.Text, ".")
		return name, attribute
	}
	if len(n.Items) == 2 {
		return n.Items[0].Text, n.Items[1].Text
	}
	return "", ""
}

// resolve treats the environment's first queue on Amazon SQS as the worker queue.
func (c *resourceReader) resolve(name, attribute string) (string, bool) {
	var own Queue
	if i := slices.IndexFunc(c.settings.Queues, func(q Queue) bool { return q.OnSQS }); i >= 0 {
		own = c.settings.Queues[i]
	}
	values := map[[2]string]string{
		{workerQueue, ""}:              own.URL,
		{workerQueue, "QueueName"}:     own.Name,
		{workerQueue, "Arn"}:           own.ARN,
		{deadLetterQueue, "QueueName"}: own.DeadLetter,
		{"AWS::Region", ""}:            c.settings.Region,
		{"AWSEBEnvironmentName", ""}:   cmp.Or(c.settings.HealthName, c.settings.Environment),
	}
	value := values[[2]string{name, attribute}]
	return value, value != ""
}
