package alarms

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
)

// CloudFormation returns a JSON template with the alarms and the dashboard.
func (s *Set) CloudFormation() (string, error) {
	resources := map[string]any{}
	for i := range s.Alarms {
		a := &s.Alarms[i]
		name := unusedName(strings.TrimPrefix(a.Name, Prefix(s.Environment)), resources)
		resources[name] = map[string]any{"Type": "AWS::CloudWatch::Alarm", "Properties": templateProperties(a)}
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

func templateProperties(a *Alarm) map[string]any {
	p := map[string]any{
		"AlarmName": a.Name, "Namespace": a.Namespace, "MetricName": a.Metric, "ComparisonOperator": a.Comparison,
		"Threshold": a.Threshold, "Period": a.Period, "EvaluationPeriods": a.EvaluationPeriods,
		"ActionsEnabled": !a.Muted,
	}
	if isSimple(a.Statistic) {
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

func isSimple(statistic string) bool {
	switch statistic {
	case "Average", "Sum", "Minimum", "Maximum", "SampleCount":
		return true
	}
	return false
}

func unusedName(alarm string, used map[string]any) string {
	words := strings.FieldsFunc(alarm, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	base := ""
	for _, word := range words {
		base += strings.ToUpper(word[:1]) + word[1:]
	}
	name := base + "Alarm"
	for i := 2; used[name] != nil; i++ {
		name = base + strconv.Itoa(i) + "Alarm"
	}
	return name
}
