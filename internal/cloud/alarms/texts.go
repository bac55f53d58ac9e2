package alarms

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"tendril/internal/aws"
)

// CloudFormation returns a template, as JSON, that creates the set.
func (s *Set) CloudFormation() (string, error) {
	resources := map[string]any{}
	names := identifiers{taken: map[string]bool{}}
	for i := range s.Alarms {
		a := &s.Alarms[i]
		resources[names.camel(s.short(a.Name))+"Alarm"] = map[string]any{
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

// short is an alarm's name without what all names of the environment begin with.
func (s *Set) short(name string) string { return strings.TrimPrefix(name, Prefix(s.Environment)) }

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

// Terraform returns resources of the provider hashicorp/aws that create the set.
func (s *Set) Terraform() string {
	var w terraform
	w.line("# Alarms and dashboard of the tendril environment %s", s.Environment)
	names := identifiers{taken: map[string]bool{}}
	for i := range s.Alarms {
		a := &s.Alarms[i]
		w.line("\nresource \"aws_cloudwatch_metric_alarm\" %s {", quoted(names.snake(s.short(a.Name))))
		w.alarm(a)
		w.line("}")
	}
	if s.Dashboard != "" {
		w.line("\nresource \"aws_cloudwatch_dashboard\" \"dashboard\" {")
		w.text("dashboard_name", DashboardName(s.Environment))
		w.text("dashboard_body", s.Dashboard)
		w.line("}")
	}
	return w.String()
}

// terraform writes HCL.
type terraform struct{ strings.Builder }

func (w *terraform) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *terraform) alarm(a *aws.Alarm) {
	w.text("alarm_name", a.Name)
	w.text("alarm_description", a.Description)
	w.text("namespace", a.Namespace)
	w.text("metric_name", a.Metric)
	if len(a.Dimensions) > 0 {
		w.line("  dimensions = {")
		for _, d := range a.Dimensions {
			w.line("    %s = %s", quoted(d.Name), quoted(d.Value))
		}
		w.line("  }")
	}
	statistic := "extended_statistic"
	if simple(a.Statistic) {
		statistic = "statistic"
	}
	w.text(statistic, a.Statistic)
	w.text("unit", a.Unit)
	w.text("comparison_operator", a.Comparison)
	w.line("  threshold = %s", strconv.FormatFloat(a.Threshold, 'f', -1, 64))
	w.line("  period = %d", a.Period)
	w.line("  evaluation_periods = %d", a.EvaluationPeriods)
	if a.DatapointsToAlarm > 0 {
		w.line("  datapoints_to_alarm = %d", a.DatapointsToAlarm)
	}
	w.text("treat_missing_data", a.MissingData)
	w.line("  actions_enabled = %t", !a.Muted)
	w.list("alarm_actions", a.Actions)
	w.list("ok_actions", a.OKActions)
	w.list("insufficient_data_actions", a.MissingActions)
}

func (w *terraform) text(name, value string) {
	if value != "" {
		w.line("  %s = %s", name, quoted(value))
	}
}

func (w *terraform) list(name string, values []string) {
	if len(values) == 0 {
		return
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = quoted(v)
	}
	w.line("  %s = [%s]", name, strings.Join(texts, ", "))
}

// quoted is a text of HCL in which nothing is a template.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case unicode.IsControl(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(b.String())
}

// identifiers makes names of resources, each once.
type identifiers struct{ taken map[string]bool }

func (n *identifiers) once(name string) string {
	found := name
	for i := 2; n.taken[found]; i++ {
		found = name + strconv.Itoa(i)
	}
	n.taken[found] = true
	return found
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

func (n *identifiers) camel(text string) string {
	name := ""
	for _, word := range words(text) {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return n.once(name)
}

// snake begins with a letter, as names in Terraform must.
func (n *identifiers) snake(text string) string {
	name := strings.ToLower(strings.Join(words(text), "_"))
	if name == "" || unicode.IsDigit(rune(name[0])) {
		name = "alarm_" + name
	}
	return n.once(name)
}
