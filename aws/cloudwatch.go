package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/schemas"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"tendril/queue"
)

// MaxDatums is the most figures that one PutMetricData takes.
const MaxDatums = 1000

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
	api       *cloudwatch.Client
	transport *http.Transport
	host      string
}

// CloudWatchOptions configure [OpenCloudWatch]. A nil *CloudWatchOptions is
// valid. As with SQS, credentials come from where every AWS tool takes them.
type CloudWatchOptions struct {
	// Region is where the metrics are kept; "" means what the environment or the
	// profile says.
	Region string
	// Profile names a profile of the shared AWS configuration files; "" means
	// AWS_PROFILE, else "default".
	Profile string
	// Endpoint is the URL of a server that speaks the CloudWatch protocol; ""
	// means AWS_ENDPOINT_URL_CLOUDWATCH and AWS_ENDPOINT_URL, else Amazon's own.
	Endpoint string
	// Log takes what the SDK logs; nil drops it.
	Log LogFunc
}

// OpenCloudWatch reads the AWS configuration. It calls nobody. The error names
// the variable or the file at fault.
func OpenCloudWatch(ctx context.Context, opts *CloudWatchOptions) (*CloudWatch, error) {
	if opts == nil {
		opts = &CloudWatchOptions{}
	}
	cfg, err := loadConfig(ctx, opts.Region, opts.Profile, opts.Log)
	if err != nil {
		return nil, err
	}
	transport := newTransport(cfg.HTTPClient, 1)
	api := cloudwatch.NewFromConfig(cfg, func(o *cloudwatch.Options) {
		o.HTTPClient = &http.Client{Transport: transport, CheckRedirect: keepRedirect}
		o.Retryer = sdk.NopRetryer{}
		// CloudWatch speaks three protocols. The SDK's choice, CBOR, and its
		// compressed bodies are not understood by common stand-ins; the JSON one
		// is. A call is far below the 1 MiB that Amazon takes all the same.
		o.Protocol = awsjson.New10(schemas.GraniteServiceVersion20100801)
		o.DisableRequestCompression = true
		chooseEndpoint(opts.Endpoint, &o.BaseEndpoint, &o.Region)
	})
	o := api.Options()
	if o.Region == "" {
		return nil, &queue.Error{Code: queue.CodeInvalidParameterValue,
			Message: "no AWS region for the metrics in CloudWatch: set AWS_REGION, or a region in the profile"}
	}
	c := &CloudWatch{api: api, transport: transport, host: "CloudWatch in " + o.Region}
	if o.BaseEndpoint != nil {
		c.host = *o.BaseEndpoint
	}
	return c, nil
}

// Close drops the idle connections. Calls under way end as they would.
func (c *CloudWatch) Close() { c.transport.CloseIdleConnections() }

// PutMetricData writes up to [MaxDatums] figures into a namespace, in one call
// that is tried once. The error is a [queue.Error] that says what to do, or
// ctx's own when ctx was cancelled.
func (c *CloudWatch) PutMetricData(ctx context.Context, namespace string, data []Datum) error {
	if len(data) == 0 {
		return nil
	}
	if len(data) > MaxDatums {
		return &queue.Error{Code: queue.CodeInvalidParameterValue,
			Message: fmt.Sprintf("%d figures for one call of PutMetricData, which takes %d: split them", len(data), MaxDatums)}
	}
	in := &cloudwatch.PutMetricDataInput{Namespace: &namespace, MetricData: make([]types.MetricDatum, len(data))}
	for i := range data {
		in.MetricData[i] = data[i].metric()
	}
	_, err := c.api.PutMetricData(ctx, in)
	return c.explain(ctx, namespace, err)
}

// metric is the figure in the SDK's words.
func (d *Datum) metric() types.MetricDatum {
	m := types.MetricDatum{MetricName: &d.Name, Unit: types.StandardUnitNone, StatisticValues: &types.StatisticSet{
		SampleCount: &d.Samples, Sum: &d.Sum, Minimum: &d.Minimum, Maximum: &d.Maximum,
	}}
	if d.Unit != "" {
		m.Unit = types.StandardUnit(d.Unit)
	}
	if d.Dimension != "" {
		m.Dimensions = []types.Dimension{{Name: &d.Dimension, Value: &d.DimensionValue}}
	}
	if !d.At.IsZero() {
		m.Timestamp = &d.At
	}
	return m
}

// explain turns any error of a call into a [*queue.Error] that says what to do.
func (c *CloudWatch) explain(ctx context.Context, namespace string, err error) error {
	if err == nil {
		return nil
	}
	refused := answer(err)
	if cause := ctx.Err(); cause != nil && refused == nil {
		if errors.Is(cause, context.Canceled) {
			return cause
		}
		return &queue.Error{Code: queue.CodeUnreachable, Err: cause,
			Message: fmt.Sprintf("writing the metrics of %s: %s did not answer in time; check the network, the region and "+
				"AWS_ENDPOINT_URL_CLOUDWATCH",
				namespace, c.host)}
	}
	if refused == nil {
		return &queue.Error{Code: queue.CodeUnreachable, Err: err, Message: fmt.Sprintf(
			"writing the metrics of %s: %s did not answer: %s; check the network, the region, the credentials and "+
				"AWS_ENDPOINT_URL_CLOUDWATCH",
			namespace, c.host, firstLine(plain(err).Error()))}
	}
	code, message := refused.code(), refused.Error()
	if refused.foreign() {
		return &queue.Error{Code: code, Err: refused, Message: fmt.Sprintf("writing the metrics of %s: %s",
			namespace, refused.foreignAnswer(c.host, "CloudWatch", "AWS_ENDPOINT_URL_CLOUDWATCH"))}
	}
	switch code {
	case queue.CodeAccessDenied:
		message += "; allow these credentials cloudwatch:PutMetricData, and check that they have not expired"
	case queue.CodeRequestThrottled:
		message += "; a longer --metrics-interval means fewer calls"
	}
	return &queue.Error{Code: code,
		Message: fmt.Sprintf("writing the metrics of %s: %s refused: %s", namespace, c.host, message), Err: refused}
}
