package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"tendril/queue"
)

// maxDeleted is the maximum number of alarms in a DeleteAlarms call.
const maxDeleted = 100

// Alarm is a CloudWatch alarm on one metric. The limits in its comments are PutMetricAlarm's.
type Alarm struct {
	// Name has 1 to 255 characters and is unique in the account and region.
	Name string `json:"name"`
	// Description has at most 1024 characters.
	Description string `json:"description,omitempty"`
	Namespace   string `json:"namespace"`
	Metric      string `json:"metric"`
	// Dimensions are sorted by name. There are at most 30.
	Dimensions []Dimension `json:"dimensions,omitempty"`
	// Statistic is Average, Sum, Minimum, Maximum, SampleCount or an extended statistic such as p99.
	Statistic string `json:"statistic"`
	// Unit is the unit of the samples; "" matches any.
	Unit string `json:"unit,omitempty"`
	// Comparison is GreaterThanThreshold, GreaterThanOrEqualToThreshold, LessThanThreshold or
	// LessThanOrEqualToThreshold.
	Comparison string  `json:"comparison"`
	Threshold  float64 `json:"threshold"`
	// Period is in seconds: 10, 20, 30 or a multiple of 60.
	Period int `json:"period"`
	// At least DatapointsToAlarm of the last EvaluationPeriods must breach the threshold; 0 means all of them.
	EvaluationPeriods int `json:"evaluationPeriods"`
	DatapointsToAlarm int `json:"datapointsToAlarm,omitempty"`
	// MissingData is missing, notBreaching, breaching or ignore; "" means missing.
	MissingData string `json:"treatMissingData,omitempty"`
	// Actions, OKActions and MissingActions are the ARNs to notify when the state becomes ALARM, OK or
	// INSUFFICIENT_DATA, at most five each.
	Actions        []string `json:"actions,omitempty"`
	OKActions      []string `json:"okActions,omitempty"`
	MissingActions []string `json:"insufficientDataActions,omitempty"`
	Muted          bool     `json:"muted,omitempty"`
}

// Dimension is one name-value pair that identifies a metric.
type Dimension struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// AlarmState is an existing alarm and its state.
type AlarmState struct {
	Alarm
	ARN string `json:"arn"`
	// State is OK, ALARM or INSUFFICIENT_DATA.
	State  string    `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// withRetries turns on retries, which are safe only for idempotent calls.
func withRetries(o *cloudwatch.Options) { o.Retryer = retry.NewStandard() }

// Alarms returns the metric alarms whose names start with prefix, sorted by name.
func (c *CloudWatch) Alarms(ctx context.Context, prefix string) (found []AlarmState, err error) {
	in := &cloudwatch.DescribeAlarmsInput{AlarmNamePrefix: &prefix,
		AlarmTypes: []types.AlarmType{types.AlarmTypeMetricAlarm}}
	for more := true; more; more = sdk.ToString(in.NextToken) != "" {
		page, err := c.api.get().DescribeAlarms(ctx, in, withRetries)
		if err != nil {
			return nil, c.alarmError(ctx, "DescribeAlarms", err)
		}
		for i := range page.MetricAlarms {
			// AWS-compatible servers may ignore the prefix filter.
			if a := alarmState(&page.MetricAlarms[i]); strings.HasPrefix(a.Name, prefix) {
				found = append(found, a)
			}
		}
		in.NextToken = page.NextToken
	}

	slices.SortFunc(found, func(a, b AlarmState) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

func alarmState(m *types.MetricAlarm) AlarmState {
	a := Alarm{
		Name: sdk.ToString(m.AlarmName), Description: sdk.ToString(m.AlarmDescription),
		Namespace: sdk.ToString(m.Namespace), Metric: sdk.ToString(m.MetricName),
		Statistic: cmp.Or(string(m.Statistic), sdk.ToString(m.ExtendedStatistic)), Unit: string(m.Unit),
		Comparison: string(m.ComparisonOperator), Threshold: sdk.ToFloat64(m.Threshold), Period: int(sdk.ToInt32(m.Period)),
		EvaluationPeriods: int(sdk.ToInt32(m.EvaluationPeriods)), DatapointsToAlarm: int(sdk.ToInt32(m.DatapointsToAlarm)),
		MissingData: sdk.ToString(m.TreatMissingData), Actions: m.AlarmActions, OKActions: m.OKActions,
		MissingActions: m.InsufficientDataActions, Muted: m.ActionsEnabled != nil && !*m.ActionsEnabled,
	}
	for _, d := range m.Dimensions {
		a.Dimensions = append(a.Dimensions, Dimension{sdk.ToString(d.Name), sdk.ToString(d.Value)})
	}
	slices.SortFunc(a.Dimensions, func(a, b Dimension) int { return strings.Compare(a.Name, b.Name) })
	return AlarmState{Alarm: a, ARN: sdk.ToString(m.AlarmArn), State: string(m.StateValue),
		Reason: sdk.ToString(m.StateReason), Since: sdk.ToTime(cmp.Or(m.StateTransitionedTimestamp, m.StateUpdatedTimestamp))}
}

// PutAlarm creates or replaces an alarm. The tags are set only when the alarm is created.
func (c *CloudWatch) PutAlarm(ctx context.Context, a *Alarm, tags map[string]string) error {
	in := &cloudwatch.PutMetricAlarmInput{
		AlarmName: &a.Name, AlarmDescription: &a.Description, Namespace: &a.Namespace, MetricName: &a.Metric,
		Unit: types.StandardUnit(a.Unit), ComparisonOperator: types.ComparisonOperator(a.Comparison), Threshold: &a.Threshold,
		Period: sdk.Int32(int32(a.Period)), EvaluationPeriods: sdk.Int32(int32(a.EvaluationPeriods)),
		TreatMissingData: sdk.String(cmp.Or(a.MissingData, "missing")),
		AlarmActions:     a.Actions, OKActions: a.OKActions, InsufficientDataActions: a.MissingActions,
		ActionsEnabled: sdk.Bool(!a.Muted),
	}

	if a.DatapointsToAlarm > 0 {
		in.DatapointsToAlarm = sdk.Int32(int32(a.DatapointsToAlarm))
	}
	if s := types.Statistic(a.Statistic); slices.Contains(s.Values(), s) {
		in.Statistic = s
	} else {
		in.ExtendedStatistic = &a.Statistic
	}

	for _, d := range a.Dimensions {
		in.Dimensions = append(in.Dimensions, types.Dimension{Name: sdk.String(d.Name), Value: sdk.String(d.Value)})
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		in.Tags = append(in.Tags, types.Tag{Key: sdk.String(key), Value: sdk.String(tags[key])})
	}

	_, err := c.api.get().PutMetricAlarm(ctx, in, withRetries)
	return c.alarmError(ctx, "PutMetricAlarm", err)
}

// DeleteAlarms deletes alarms by name and ignores missing ones.
func (c *CloudWatch) DeleteAlarms(ctx context.Context, names []string) error {
	for some := range slices.Chunk(names, maxDeleted) {
		_, err := c.api.get().DeleteAlarms(ctx, &cloudwatch.DeleteAlarmsInput{AlarmNames: some}, withRetries)
		if err = c.alarmError(ctx, "DeleteAlarms", err); err != nil && !isMissing(err) {
			return err
		}
	}
	return nil
}

// AlarmTags returns an alarm's tags.
func (c *CloudWatch) AlarmTags(ctx context.Context, arn string) (map[string]string, error) {
	out, err := c.api.get().ListTagsForResource(ctx, &cloudwatch.ListTagsForResourceInput{ResourceARN: &arn}, withRetries)
	if err != nil {
		return nil, c.alarmError(ctx, "ListTagsForResource", err)
	}
	tags := map[string]string{}
	for _, t := range out.Tags {
		tags[sdk.ToString(t.Key)] = sdk.ToString(t.Value)
	}
	return tags, nil
}

// Dashboard returns a dashboard's JSON body, or "" if it does not exist.
func (c *CloudWatch) Dashboard(ctx context.Context, name string) (string, error) {
	out, err := c.api.get().GetDashboard(ctx, &cloudwatch.GetDashboardInput{DashboardName: &name}, withRetries)
	if err = c.alarmError(ctx, "GetDashboard", err); err != nil {
		if isMissing(err) {
			return "", nil
		}
		return "", err
	}
	return sdk.ToString(out.DashboardBody), nil
}

// PutDashboard creates or replaces a dashboard.
func (c *CloudWatch) PutDashboard(ctx context.Context, name, body string) error {
	in := &cloudwatch.PutDashboardInput{DashboardName: &name, DashboardBody: &body}
	_, err := c.api.get().PutDashboard(ctx, in, withRetries)
	return c.alarmError(ctx, "PutDashboard", err)
}

// DeleteDashboard deletes a dashboard if it exists.
func (c *CloudWatch) DeleteDashboard(ctx context.Context, name string) error {
	_, err := c.api.get().DeleteDashboards(ctx, &cloudwatch.DeleteDashboardsInput{DashboardNames: []string{name}},
		withRetries)
	if err = c.alarmError(ctx, "DeleteDashboards", err); isMissing(err) {
		return nil
	}
	return err
}

// Region returns the client's AWS region.
func (c *CloudWatch) Region() string { return c.api.get().Options().Region }

func (c *CloudWatch) alarmError(ctx context.Context, action string, err error) error {
	return c.service.explain(ctx, action, err, func(refused *refusal) (code, message string) {
		message = fmt.Sprintf("%s refused: %s", c.service.host, refused)
		switch code = refused.queueCode(); {
		case strings.HasPrefix(refused.ErrorCode(), "ResourceNotFound"),
			strings.HasPrefix(refused.ErrorCode(), "DashboardNotFound"):
			code = queue.CodeResourceNotFound
		case code == queue.CodeAccessDenied:
			message += fmt.Sprintf("; allow these credentials cloudwatch:%s, and check that they have not expired", action)
		}
		return code, message
	})
}

func isMissing(err error) bool {
	return errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound})
}
