package alarms

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"

	"tendril/internal/aws"
)

// CloudFormation returns a template in JSON.
func (s *Set) CloudFormation() (string, error) {
	resources := map[string]any{}
	names := identifiers{taken: map[string]bool{}}
	for i := range s.Alarms {
		a := &s.Alarms[i]
		resources[names.camel(s.shortName(a.Name))+"Alarm"] = map[string]any{
			"Type": "AWS::CloudWatch::Alarm", "Properties": templateProperties(a)}
	}
	if s.Dashboard != "" {
		resources["Dashboard"] = map[string]any{"Type": "AWS::CloudWatch::Dashboard",
			"Properties": map[string]any{"DashboardName": DashboardName(s.Environment), "DashboardBody": s.Dashboard}}
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(map[string]any{
		"AWSTemplateFormatVersion": "2010-09-09",
		"Description":              "Alarms and dashboard of the tendril environment " + s.Environment,
		"Resources":                resources,
	})
	return text.String(), err
}

func (s *Set) shortName(name string) string { return strings.TrimPrefix(name, Prefix(s.Environment)) }

func templateProperties(a *aws.Alarm) map[string]any {
	p := map[string]any{
		"AlarmName": a.Name, "Namespace": a.Namespace, "MetricName": a.Metric, "ComparisonOperator": a.Comparison,
		"Threshold": a.Threshold, "Period": a.Period, "EvaluationPeriods": a.EvaluationPeriods,
		"ActionsEnabled": !a.Muted,
	}
	if simple(a.Statistic) {
		p["Statistic"] = a.Statistic
	} else {
		p["ExtendedStatistic"] = a.Statistic
	}
	for name, text := range map[string]string{"AlarmDescription": a.Description, "Unit": a.Unit,
		"TreatMissingData": a.MissingData} {
		if text != "" {
			p[name] = text
		}
	}
	for name, list := range map[string][]string{"AlarmActions": a.Actions, "OKActions": a.OKActions,
		"InsufficientDataActions": a.MissingActions} {
		if len(list) > 0 {
			p[name] = list
		}
	}
	if a.DatapointsToAlarm > 0 {
		p["DatapointsToAlarm"] = a.DatapointsToAlarm
	}
	var dimensions []map[string]string
	for _, d := range a.Dimensions {
		dimensions = append(dimensions, map[string]string{"Name": d.Name, "Value": d.Value})
	}
	if dimensions != nil {
		p["Dimensions"] = dimensions
	}
	return p
}

func simple(statistic string) bool {
	switch statistic {
	case "Average", "Sum", "Minimum", "Maximum", "SampleCount":
		return true
	}
	return false
}

// identifiers generates unique resource names.
type identifiers struct{ taken map[string]bool }

func (n *identifiers) once(name string) string {
	found := name
	for i := 2; n.taken[found]; i++ {
		found = name + strconv.Itoa(i)
	}
	n.taken[found] = true
	return found
}

func (n *identifiers) camel(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	name := ""
	for _, word := range words {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return n.once(name)
}
