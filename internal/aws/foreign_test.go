package aws

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"tendril/internal/registry"
)

func TestForeignAnswersNameTheIntendedService(t *testing.T) {
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(k, v)
	}
	status, body := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	calls := foreignCalls(t, server.URL)
	for _, answer := range []struct {
		status int
		body   string
	}{
		{404, "<html>not found</html>"}, {503, "<html>away</html>"}, {502, ""}, {400, "{}"},
		{400, `{"__type":"com.amazonaws.sqs#UnknownOperationException","message":"The operation is not known."}`},
		{400, `<?xml version="1.0"?><ErrorResponse><Error><Type>Sender</Type><Code>InvalidAction</Code><Message>no</Message></Error></ErrorResponse>`},
	} {
		status, body = answer.status, answer.body
		for service, c := range calls {
			err := c.call(t.Context())
			if status == 404 && service == "S3" {
				continue
			}
			if err == nil {
				t.Errorf("%s answered %d %s: no error", service, status, body)
				continue
			}
			if got := err.Error(); !strings.Contains(got, "does not respond like "+service) ||
				!strings.Contains(got, c.variable) ||
				!strings.Contains(got, c.subject) || !strings.Contains(got, server.URL) || strings.Contains(got, "SQS") {
				t.Errorf("%s answered %d %s:\n  %s", service, status, body, got)
			}
		}
	}
}

type foreignCall struct {
	variable, subject string
	call              func(context.Context) error
}

func foreignCalls(t *testing.T, endpoint string) map[string]foreignCall {
	t.Helper()
	ctx := t.Context()
	table, err := OpenTable(ctx, "registry", &Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	buckets, err := OpenS3(ctx, &Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	once := retry.AddWithMaxAttempts(sdk.NopRetryer{}, 1)
	buckets.retries.retryer = retryerV2(once)
	metrics, err := OpenCloudWatch(ctx, &Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	figures := metrics.api.get().Options()
	figures.Retryer = once
	metrics.api = newClient(cloudwatch.New(figures))
	scaling, err := OpenAutoScaling(ctx, &Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	groups := scaling.api.get().Options()
	groups.Retryer = once
	scaling.api = newClient(autoscaling.New(groups))
	function, err := OpenLambda(ctx, &LambdaOptions{Function: "resize", Client: Options{Endpoint: endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close(); buckets.Close(); metrics.Close(); scaling.Close(); function.Close() })
	return map[string]foreignCall{
		"DynamoDB": {"AWS_ENDPOINT_URL_DYNAMODB", "dynamodb:GetItem on registry table registry",
			func(ctx context.Context) error {
				_, err := table.Read(ctx, registry.KindLease, "l")
				return err
			}},
		"S3": {"AWS_ENDPOINT_URL_S3", `object "k" from bucket b`, func(ctx context.Context) error {
			_, err := buckets.Fetch(ctx, "b", "k", 1)
			return err
		}},
		"CloudWatch": {"AWS_ENDPOINT_URL_CLOUDWATCH", "metrics of n", func(ctx context.Context) error {
			return metrics.PutMetricData(ctx, "n", []Datum{{Name: "x"}})
		}},
		"Auto Scaling": {"AWS_ENDPOINT_URL_AUTO_SCALING", "instance i-1", func(ctx context.Context) error {
			_, err := scaling.GroupOf(ctx, "i-1")
			return err
		}},
		"Lambda": {"AWS_ENDPOINT_URL_LAMBDA", "Lambda function resize", function.Check},
	}
}
