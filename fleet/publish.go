package fleet

import (
	"context"
	"time"

	"tendril/autoscale"
	"tendril/aws"
)

// Publisher writes the load of a fleet into a namespace of CloudWatch, for an alarm or a
// target tracking policy to go by.
type Publisher struct {
	// Client and Namespace say where to; both are required.
	Client    *aws.CloudWatch
	Namespace string
}

// Publish sends the values, as of now.
func (p Publisher) Publish(ctx context.Context, metrics []autoscale.Metric) error {
	now := time.Now()
	data := make([]aws.Datum, len(metrics))
	for i, m := range metrics {
		data[i] = aws.Datum{Name: m.Name, Unit: m.Unit, At: now, Samples: 1, Sum: m.Value, Minimum: m.Value, Maximum: m.Value}
	}
	return p.Client.PutMetricData(ctx, p.Namespace, data)
}
