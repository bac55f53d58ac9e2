package aws

import (
	"cmp"
	"context"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/schemas"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"tendril/queue"
)

// maxDatums is the most figures that one PutMetricData takes.
const maxDatums = 1000

// Datum is one figure for CloudWatch: a statistic set, or a single value, which
// is a set of one sample.
type Datum struct {
	// Name is the metric's name.
	Name string
	// Dimension and DimensionValue are its one dimension; both "" for none.
	Dimension, DimensionValue string
	// Unit is one of CloudWatch's ("Count", "Milliseconds", "None"); "" means
	// "None".
	Unit string
	// At is the time that the figure is about; CloudWatch takes up to two weeks
	// ago. The zero value means when it arrives.
	At time.Time
	// Samples is how many values the set stands for, 1 or more; Sum, Minimum and
	// Maximum are theirs.
	Samples, Sum, Minimum, Maximum float64
}

// CloudWatch writes metrics. Its methods are safe for concurrent use.
//
// Nothing here repeats a call: a call whose answer was lost may have been
// counted, and it is for the caller to say whether figures are better counted
// twice or not at all.
type CloudWatch struct {
	service service
	api     client[cloudwatch.Client]
}

// Close drops the idle connections. Calls under way end as they would.
func (c *CloudWatch) Close() { c.service.close() }

// OpenCloudWatch reads the AWS configuration. It calls nobody. The error names
// the variable or the file at fault.
func OpenCloudWatch(ctx context.Context, opts *Options) (*CloudWatch, error) {
	opts = cmp.Or(opts, &Options{})
	cfg, service, err := connect(ctx, opts, "CloudWatch", "AWS_ENDPOINT_URL_CLOUDWATCH", 1)
	if err != nil {
		return nil, err
	}
	api := cloudwatch.NewFromConfig(cfg, func(o *cloudwatch.Options) {
		o.Retryer = sdk.NopRetryer{}
		// CloudWatch speaks three protocols. The SDK's choice, CBOR, and its
		// compressed bodies are not understood by common stand-ins; the JSON one
		// is. A call is far below the 1 MiB that Amazon takes all the same.
		o.Protocol = awsjson.New10(schemas.GraniteServiceVersion20100801)
		o.DisableRequestCompression = true
		chooseEndpoint(opts.Endpoint, &o.BaseEndpoint, &o.Region)
	})
	o := api.Options()
	if err := service.locate(o.Region, o.BaseEndpoint, "the CloudWatch client"); err != nil {
		return nil, err
	}
	return &CloudWatch{service, hold(api)}, nil
}

// PutMetricData writes up to 1000 figures into a namespace, in one call
// that is tried once. The error is a [queue.Error] that says what to do, or
// ctx's own when ctx was cancelled.
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
	return c.service.explain(ctx, "writing the metrics of "+namespace, err, func(refused *refusal) (code, message string) {
		message = fmt.Sprintf("%s refused: %s", c.service.host, refused)
		switch code = refused.queueCode(); code {
		case queue.CodeAccessDenied:
			message += "; allow these credentials cloudwatch:PutMetricData, and check that they have not expired"
		case queue.CodeRequestThrottled:
			message += "; a longer --metrics-interval means fewer calls"
		}
		return code, message
	})
}

// metric is the figure in the SDK's words.
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
