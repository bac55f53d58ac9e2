package aws

import (
	"context"
	"fmt"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"tendril/internal/testing/testpeer"
)

func TestAgainstAForeignCloudWatch(t *testing.T) {
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	endpoint := testpeer.Moto(t, "cloudwatch")
	setAWS(t, nil)
	c, err := OpenCloudWatch(context.Background(), &Options{Region: "eu-west-1", Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx, at := context.Background(), time.Now().UTC().Truncate(time.Minute).Add(-10*time.Minute)

	var data []Datum
	for i := range 150 {
		data = append(data, Datum{Name: "Duration", Dimension: "Queue", DimensionValue: fmt.Sprintf("jobs-%d", i),
			Unit: "Milliseconds",
			At:   at, Samples: 4, Sum: float64(100 + i), Minimum: 5, Maximum: 60})
	}
	if err := c.PutMetricData(ctx, "Workerless-test", data); err != nil {
		t.Fatal(err)
	}
	second := Datum{Name: "Duration", Dimension: "Queue", DimensionValue: "jobs-7", Unit: "Milliseconds",
		At: at.Add(time.Second), Samples: 2, Sum: 13, Minimum: 1, Maximum: 12}
	if err := c.PutMetricData(ctx, "Workerless-test", []Datum{second}); err != nil {
		t.Fatal(err)
	}
	health := Datum{Name: "Health", Dimension: "EnvironmentName", DimensionValue: "shop", At: at, Samples: 1, Sum: 1,
		Minimum: 1, Maximum: 1}
	if err := c.PutMetricData(ctx, "ElasticBeanstalk/SQSD", []Datum{health}); err != nil {
		t.Fatal(err)
	}

	if got, want := statistics(t, c, "Workerless-test", "Duration", "Queue", "jobs-7", at), (types.Datapoint{
		SampleCount: sdk.Float64(6), Sum: sdk.Float64(120), Minimum: sdk.Float64(1),
		Maximum: sdk.Float64(60)}); !sameFigures(got, want) {
		t.Errorf("Duration of jobs-7 is %s, want %s", figures(got), figures(want))
	}
	if got, want := statistics(t, c, "ElasticBeanstalk/SQSD", "Health", "EnvironmentName", "shop", at), (types.Datapoint{
		SampleCount: sdk.Float64(1), Sum: sdk.Float64(1), Minimum: sdk.Float64(1),
		Maximum: sdk.Float64(1)}); !sameFigures(got, want) {
		t.Errorf("Health is %s, want %s", figures(got), figures(want))
	}
}

func statistics(t *testing.T, c *CloudWatch, namespace, name, dimension, value string, at time.Time) types.Datapoint {
	t.Helper()
	out, err := c.api.get().GetMetricStatistics(context.Background(), &cloudwatch.GetMetricStatisticsInput{
		Namespace: &namespace, MetricName: &name, Dimensions: []types.Dimension{{Name: &dimension, Value: &value}},
		StartTime: sdk.Time(at.Add(-30 * time.Minute)), EndTime: sdk.Time(at.Add(30 * time.Minute)), Period: sdk.Int32(3600),
		Statistics: []types.Statistic{types.StatisticSampleCount, types.StatisticSum, types.StatisticMinimum,
			types.StatisticMaximum},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Datapoints) != 1 {
		t.Fatalf("%s has %d points, want 1", name, len(out.Datapoints))
	}
	return out.Datapoints[0]
}

func figures(d types.Datapoint) string {
	return fmt.Sprintf("%v samples, sum %v, %v to %v", sdk.ToFloat64(d.SampleCount), sdk.ToFloat64(d.Sum),
		sdk.ToFloat64(d.Minimum), sdk.ToFloat64(d.Maximum))
}

func sameFigures(a, b types.Datapoint) bool { return figures(a) == figures(b) }
