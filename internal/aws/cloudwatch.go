package aws

import (
	"cmp"
	"context"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/schemas"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"tendril/queue"
)

const maxDatums = 1000

// Datum is a statistic set. A single value has one sample.
type Datum struct {
	Name string
	// Dimension is "" if the metric has none.
	Dimension, DimensionValue string
	// Unit is a CloudWatch unit such as "Milliseconds"; "" means "None".
	Unit string
	// At is at most two weeks ago. Zero means the time at which CloudWatch receives the value.
	At time.Time
	// Samples is at least 1 when publishing.
	Samples, Sum, Minimum, Maximum float64
}

// CloudWatch publishes and reads metrics. It is safe for concurrent use.
//
// PutMetricData is not retried, because a call without a response may have been counted.
type CloudWatch struct {
	service service
	api     client[cloudwatch.Client]
}

// Close closes idle connections.
func (c *CloudWatch) Close() { c.service.close() }

// Region returns the client's AWS region.
func (c *CloudWatch) Region() string { return c.api.get().Options().Region }

// OpenCloudWatch creates a client from the AWS configuration.
func OpenCloudWatch(ctx context.Context, opts *Options) (*CloudWatch, error) {
	cfg, service, err := loadWithRegion(ctx, opts, "CloudWatch", "the CloudWatch client")
	if err != nil {
		return nil, err
	}

	api := cloudwatch.NewFromConfig(cfg, func(o *cloudwatch.Options) {
		o.Retryer = sdk.NopRetryer{}
		// Many compatible servers support neither CBOR, the default protocol, nor compression. Without them, requests
		// stay far below the limit of 1 MiB.
		o.Protocol = awsjson.New10(schemas.GraniteServiceVersion20100801)
		o.DisableRequestCompression = true
	})
	return &CloudWatch{service, newClient(api)}, nil
}

// PutMetricData publishes up to 1000 values in one call.
func (c *CloudWatch) PutMetricData(ctx context.Context, namespace string, data []Datum) error {
	if len(data) == 0 {
		return nil
	}
	if len(data) > maxDatums {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"%d values in one PutMetricData call, the maximum is %d: split them", len(data), maxDatums)
	}

	in := &cloudwatch.PutMetricDataInput{Namespace: &namespace}
	for _, d := range data {
		in.MetricData = append(in.MetricData, d.metric())
	}

	_, err := c.api.get().PutMetricData(ctx, in)
	return c.explain(ctx, "writing the metrics of "+namespace, err, map[string]string{
		queue.CodeAccessDenied:     "; allow these credentials cloudwatch:PutMetricData, and check that they have not expired",
		queue.CodeRequestThrottled: "; a longer --metrics-interval means fewer calls",
	})
}

func (c *CloudWatch) explain(ctx context.Context, doing string, err error, adviceByCode map[string]string) error {
	return c.service.explain(ctx, doing, err, func(refused *refusal) (code, message string) {
		code = refused.queueCode()
		return code, fmt.Sprintf("%s rejected the call: %s%s", c.service.host, refused, adviceByCode[code])
	})
}

// Amazon EC2 publishes some values late.
const metricPeriods = 3

// GroupCPU returns the CPU utilization of a group's instances, in percent, in the newest of the last three periods
// before end that has values. If none has, Samples is 0. period must be a multiple of a minute.
func (c *CloudWatch) GroupCPU(ctx context.Context, group string, end time.Time, period time.Duration) (newest Datum, err error) {
	out, err := c.api.get().GetMetricStatistics(ctx, &cloudwatch.GetMetricStatisticsInput{
		Namespace: sdk.String("AWS/EC2"), MetricName: sdk.String("CPUUtilization"),
		Dimensions: []types.Dimension{{Name: sdk.String("AutoScalingGroupName"), Value: &group}},
		StartTime:  sdk.Time(end.Add(-metricPeriods * period)), EndTime: &end, Period: sdk.Int32(int32(period / time.Second)),
		Statistics: []types.Statistic{types.StatisticSampleCount, types.StatisticSum, types.StatisticMinimum, types.StatisticMaximum},
	}, func(o *cloudwatch.Options) { o.Retryer = retry.NewStandard() })
	if err != nil {
		return Datum{}, c.explain(ctx, "reading the CPU utilization of "+group, err, map[string]string{
			queue.CodeAccessDenied: "; allow these credentials cloudwatch:GetMetricStatistics"})
	}

	for _, d := range out.Datapoints {
		if at := sdk.ToTime(d.Timestamp); at.After(newest.At) {
			newest = Datum{At: at, Samples: sdk.ToFloat64(d.SampleCount), Sum: sdk.ToFloat64(d.Sum),
				Minimum: sdk.ToFloat64(d.Minimum), Maximum: sdk.ToFloat64(d.Maximum)}
		}
	}

	return newest, nil
}

func (d *Datum) metric() types.MetricDatum {
	m := types.MetricDatum{MetricName: &d.Name, Unit: types.StandardUnit(cmp.Or(d.Unit, "None")),
		StatisticValues: &types.StatisticSet{
			SampleCount: &d.Samples, Sum: &d.Sum, Minimum: &d.Minimum, Maximum: &d.Maximum}}
	if d.Dimension != "" {
		m.Dimensions = []types.Dimension{{Name: &d.Dimension, Value: &d.DimensionValue}}
	}
	if !d.At.IsZero() {
		m.Timestamp = &d.At
	}
	return m
}
