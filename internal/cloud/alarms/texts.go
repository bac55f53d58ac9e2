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
		id := unusedLogicalID(strings.TrimPrefix(a.Name, Prefix(s.Environment)), resources)
		resources[id] = map[string]any{"Type": "AWS::CloudWatch::Alarm", "Properties": propertiesOf(a)}
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

type alarmProperties struct {
	ActionsEnabled          bool
	AlarmActions            []string `json:",omitempty"`
	AlarmDescription        string   `json:",omitempty"`
	AlarmName               string
	ComparisonOperator      string
	DatapointsToAlarm       int         `json:",omitempty"`
	Dimensions              []Dimension `json:",omitempty"`
	EvaluationPeriods       int
	ExtendedStatistic       string   `json:",omitempty"`
	InsufficientDataActions []string `json:",omitempty"`
	MetricName              string
	Namespace               string
	OKActions               []string `json:",omitempty"`
	Period                  int
	Statistic               string `json:",omitempty"`
	Threshold               float64
	TreatMissingData        string `json:",omitempty"`
	Unit                    string `json:",omitempty"`
}

func propertiesOf(a *Alarm) alarmProperties {
	p := alarmProperties{
		ActionsEnabled: !a.Muted, AlarmActions: a.Actions, AlarmDescription: a.Description, AlarmName: a.Name,
		ComparisonOperator: a.Comparison, DatapointsToAlarm: a.DatapointsToAlarm, Dimensions: a.Dimensions,
		EvaluationPeriods: a.EvaluationPeriods, InsufficientDataActions: a.MissingActions, MetricName: a.Metric,
		Namespace: a.Namespace, OKActions: a.OKActions, Period: a.Period, Threshold: a.Threshold,
		TreatMissingData: a.MissingData, Unit: a.Unit,
	}
	switch a.Statistic {
	case "Average", "Sum", "Minimum", "Maximum", "SampleCount":
		p.Statistic = a.Statistic
	default:
		p.ExtendedStatistic = a.Statistic
	}
	return p
}

// CloudFormation allows only ASCII letters and digits. The end keeps the ID apart from the dashboard's.
func unusedLogicalID(alarm string, used map[string]any) string {
	words := strings.FieldsFunc(alarm, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	base := ""
	for _, word := range words {
		base += strings.ToUpper(word[:1]) + word[1:]
	}
	id := base + "Alarm"
	for i := 2; used[id] != nil; i++ {
		id = base + strconv.Itoa(i) + "Alarm"
	}
	return id
}
