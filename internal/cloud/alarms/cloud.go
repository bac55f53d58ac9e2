package alarms

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"tendril/internal/aws"
)

// Cloud is the part of CloudWatch that this package uses. [aws.CloudWatch] implements it.
type Cloud interface {
	Alarms(ctx context.Context, prefix string) ([]aws.AlarmState, error)
	AlarmTags(ctx context.Context, arn string) (map[string]string, error)
	PutAlarm(ctx context.Context, a *aws.Alarm, tags map[string]string) error
	DeleteAlarms(ctx context.Context, names []string) error
	Dashboard(ctx context.Context, name string) (string, error)
	PutDashboard(ctx context.Context, name, body string) error
	DeleteDashboard(ctx context.Context, name string) error
}

// Found contains an environment's existing alarms and dashboard.
type Found struct {
	Environment string
	// Foreign alarms have the environment's prefix but not its tag.
	Alarms, Foreign []aws.AlarmState
	// ForeignDashboard means that the dashboard lacks the environment's mark.
	Dashboard        string
	ForeignDashboard bool
}

// Find returns an environment's alarms and dashboard.
func Find(ctx context.Context, cloud Cloud, environment string) (*Found, error) {
	f := &Found{Environment: environment}
	all, err := cloud.Alarms(ctx, Prefix(environment))
	if err != nil {
		return nil, err
	}

	for _, a := range all {
		tags, err := cloud.AlarmTags(ctx, a.ARN)
		if err != nil {
			return nil, err
		}
		if aws.OwnerOf(tags) == environment {
			f.Alarms = append(f.Alarms, a)
		} else {
			f.Foreign = append(f.Foreign, a)
		}
	}

	body, err := cloud.Dashboard(ctx, DashboardName(environment))
	switch {
	case err != nil:
		return nil, err
	case body != "" && !ownDashboard(body, environment):
		f.ForeignDashboard = true
	default:
		f.Dashboard = body
	}

	return f, nil
}

func ownDashboard(body, environment string) bool {
	var read struct {
		Widgets []struct {
			Properties struct {
				Markdown string `json:"markdown"`
			} `json:"properties"`
		} `json:"widgets"`
	}
	if json.Unmarshal([]byte(body), &read) != nil {
		return false
	}
	for _, w := range read.Widgets {
		if w.Properties.Markdown == mark(environment) {
			return true
		}
	}
	return false
}

// The actions of a step.
const (
	Create = "create"
	Update = "change"
	Remove = "delete"
	Keep   = "keep"
)

// Step is a step of [Apply].
type Step struct {
	// Action is [Create], [Update], [Remove] or [Keep].
	Action string `json:"action"`
	// Kind is "alarm" or "dashboard".
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Changes lists the changes of an [Update], such as "threshold 600 -> 300". For other actions, it contains the
	// alarm's condition or the reason to keep the resource.
	Changes []string `json:"changes,omitempty"`

	alarm aws.Alarm
	body  string
}

// Compare returns the steps that lead from found to want, the dashboard last. Resources that are not in want are
// deleted only if prune is set. Alarms with nil actions keep their current actions. It returns an error if a name
// belongs to a foreign resource.
func Compare(want *Set, found *Found, prune bool) ([]Step, error) {
	var steps []Step
	if foreign := want.foreign(found); len(foreign) > 0 {
		return nil, fmt.Errorf("%s: not created by 'tendril alarms apply' for this environment: delete them where they "+
			"were created, or give the environment another --name", strings.Join(foreign, ", "))
	}

	have := map[string]*aws.AlarmState{}
	for i := range found.Alarms {
		have[found.Alarms[i].Name] = &found.Alarms[i]
	}

	for _, a := range want.Alarms {
		existing := have[a.Name]
		if existing != nil && a.Actions == nil {
			a.Actions = existing.Actions // set by an earlier 'alarms apply'
		}
		step := Step{Action: Create, Kind: "alarm", Name: a.Name, Changes: []string{Condition(&a)}, alarm: a}
		if existing != nil {
			step.Action, step.Changes = Update, differences(&existing.Alarm, &a)
			if len(step.Changes) == 0 {
				step.Action = Keep
			}
			delete(have, a.Name)
		}
		steps = append(steps, step)
	}

	for name := range have {
		step := Step{Action: Remove, Kind: "alarm", Name: name}
		if !prune {
			step.Action, step.Changes = Keep, []string{"no longer described; --prune deletes it"}
		}
		steps = append(steps, step)
	}

	slices.SortFunc(steps, func(a, b Step) int { return strings.Compare(a.Name, b.Name) })
	board := Step{Action: Create, Kind: "dashboard", Name: DashboardName(want.Environment), body: want.Dashboard}
	switch {
	case want.Dashboard == "" && found.Dashboard == "":
		return steps, nil
	case want.Dashboard == "" && prune:
		board.Action = Remove
	case want.Dashboard == "":
		board.Action, board.Changes = Keep, []string{"no longer described; --prune deletes it"}
	case sameJSON(want.Dashboard, found.Dashboard):
		board.Action = Keep
	case found.Dashboard != "":
		board.Action = Update
	}

	return append(steps, board), nil
}

// foreign returns the foreign resources whose names are in the set.
func (s *Set) foreign(found *Found) (names []string) {
	for _, a := range found.Foreign {
		if slices.ContainsFunc(s.Alarms, func(w aws.Alarm) bool { return w.Name == a.Name }) {
			names = append(names, "alarm "+a.Name)
		}
	}
	if s.Dashboard != "" && found.ForeignDashboard {
		names = append(names, "dashboard "+DashboardName(s.Environment))
	}
	return names
}

// Apply executes the steps. It stops at the first error and can be repeated.
func Apply(ctx context.Context, cloud Cloud, environment string, steps []Step) error {
	for i := range steps {
		s := &steps[i]
		var err error
		switch put := s.Action == Create || s.Action == Update; {
		case put && s.Kind == "alarm":
			err = cloud.PutAlarm(ctx, &s.alarm, aws.Tags(environment))
		case put:
			err = cloud.PutDashboard(ctx, s.Name, s.body)
		case s.Action == Remove && s.Kind == "alarm":
			err = cloud.DeleteAlarms(ctx, []string{s.Name})
		case s.Action == Remove:
			err = cloud.DeleteDashboard(ctx, s.Name)
		}
		if err != nil {
			return fmt.Errorf("%s %s %s: %w", s.Action, s.Kind, s.Name, err)
		}
	}
	return nil
}

// Delete deletes the environment's own resources in found, unless they no longer exist.
func Delete(ctx context.Context, cloud Cloud, found *Found) error {
	now, err := Find(ctx, cloud, found.Environment)
	if err != nil {
		return err
	}

	var names []string
	for i := range now.Alarms {
		name := now.Alarms[i].Name
		if slices.ContainsFunc(found.Alarms, func(a aws.AlarmState) bool { return a.Name == name }) {
			names = append(names, name)
		}
	}

	if err := cloud.DeleteAlarms(ctx, names); err != nil {
		return err
	}
	if found.Dashboard == "" || now.Dashboard == "" {
		return nil
	}

	return cloud.DeleteDashboard(ctx, DashboardName(found.Environment))
}

// Condition returns a description of when an alarm goes off.
func Condition(a *aws.Alarm) string {
	signs := map[string]string{atLeast: ">=", "GreaterThanThreshold": ">", below: "<", "LessThanOrEqualToThreshold": "<="}
	text := fmt.Sprintf("%s of %s %s %v", a.Statistic, a.Metric, cmp.Or(signs[a.Comparison], a.Comparison), a.Threshold)
	if n := cmp.Or(a.DatapointsToAlarm, a.EvaluationPeriods); n == a.EvaluationPeriods {
		return text + fmt.Sprintf(" for %d s", n*a.Period)
	}
	return text + fmt.Sprintf(" in %d of %d periods of %d s", a.DatapointsToAlarm, a.EvaluationPeriods, a.Period)
}

// normal returns the alarm with CloudWatch's default values filled in.
func normal(a *aws.Alarm) aws.Alarm {
	n := *a
	n.DatapointsToAlarm = cmp.Or(n.DatapointsToAlarm, n.EvaluationPeriods)
	n.MissingData = cmp.Or(n.MissingData, "missing")
	return n
}

func differences(current, want *aws.Alarm) (changes []string) {
	a, b := normal(current), normal(want)
	from, to := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range from.NumField() {
		name, _, _ := strings.Cut(from.Type().Field(i).Tag.Get("json"), ",")
		old, now := from.Field(i), to.Field(i)
		same := reflect.DeepEqual(old.Interface(), now.Interface())
		if old.Kind() == reflect.Slice && old.Len() == 0 && now.Len() == 0 {
			same = true
		}
		if !same {
			changes = append(changes, fmt.Sprintf("%s %v -> %v", name, old.Interface(), now.Interface()))
		}
	}
	return changes
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}
