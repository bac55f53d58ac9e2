package aws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tendril/queue"
)

func TestCloudWatchNeedsARegion(t *testing.T) {
	setAWS(t, map[string]string{"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL_CLOUDWATCH": ""})
	if _, err := OpenCloudWatch(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("without a region: %v, want advice to set AWS_REGION", err)
	}
}

func TestCloudWatchTakesTheEndpointVariable(t *testing.T) {
	called := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called <- r
		acceptMetrics(w)
	}))
	defer server.Close()
	setAWS(t, map[string]string{"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_CLOUDWATCH": server.URL})
	c, err := OpenCloudWatch(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.PutMetricData(context.Background(), "Workerless-x", []Datum{{Name: "Duration", Samples: 1}}); err != nil {
		t.Fatal(err)
	}
	if r := <-called; !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".PutMetricData") ||
		!strings.Contains(r.Header.Get("Authorization"), "/eu-west-1/monitoring/") {
		t.Errorf("the call was %s, signed as %q", r.Header.Get("X-Amz-Target"), r.Header.Get("Authorization"))
	}
}

func setAWS(t *testing.T, vars map[string]string) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_ENDPOINT_URL": "",
	} {
		t.Setenv(name, value)
	}
	for name, value := range vars {
		t.Setenv(name, value)
	}
}

func acceptMetrics(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_, _ = io.WriteString(w, "{}")
}

func metricsServer(t *testing.T, answer http.HandlerFunc) (*CloudWatch, *atomic.Int32) {
	t.Helper()
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	c, err := OpenCloudWatch(context.Background(), &Options{Region: "eu-west-1", Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, &calls
}

func refuseMetrics(status int, shape string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"__type":"com.amazonaws.cloudwatch.v2010_08_01#%s","message":"no"}`, shape)
	}
}

func TestCloudWatchRefusals(t *testing.T) {
	setAWS(t, nil)
	for _, tc := range []struct {
		name, code, says string
		answer           http.HandlerFunc
	}{
		{"denied", queue.CodeAccessDenied, "cloudwatch:PutMetricData", refuseMetrics(403, "AccessDenied")},
		{"throttled", queue.CodeRequestThrottled, "--metrics-interval", refuseMetrics(400, "Throttling")},
		{"failing", queue.CodeUnreachable, "Workerless-x", refuseMetrics(500, "InternalServiceFault")},
		{"a proxy's page", queue.CodeUnreachable, "HTTP status 502", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>", http.StatusBadGateway)
		}},
		{"cut off", queue.CodeUnreachable, "AWS_ENDPOINT_URL_CLOUDWATCH", func(w http.ResponseWriter, _ *http.Request) {
			panic(http.ErrAbortHandler)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, calls := metricsServer(t, tc.answer)
			err := c.PutMetricData(context.Background(), "Workerless-x", []Datum{{Name: "Duration", Samples: 1}})
			if !isCode(err, tc.code) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("the error is %v, want %s and %q", err, tc.code, tc.says)
			}
			if n := calls.Load(); n != 1 {
				t.Errorf("the call was made %d times, want once: figures must not be counted twice behind the caller's back", n)
			}
		})
	}
}

func TestGroupCPU(t *testing.T) {
	setAWS(t, nil)
	end := time.Unix(1_800_000_000, 0)
	var asked string
	answer := fmt.Sprintf(`{"Datapoints":[{"Timestamp":%d,"SampleCount":2,"Sum":9,"Minimum":4,"Maximum":5,"Unit":"Percent"},
		{"Timestamp":%d,"SampleCount":3,"Sum":60,"Minimum":10,"Maximum":30,"Unit":"Percent"},
		{"Timestamp":%d,"SampleCount":1,"Sum":7,"Minimum":7,"Maximum":7,"Unit":"Percent"}]}`,
		end.Unix()-600, end.Unix()-300, end.Unix()-900)
	c, _ := metricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = r.Header.Get("X-Amz-Target") + string(body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, answer)
	})
	got, err := c.GroupCPU(t.Context(), "workers", end, 5*time.Minute)
	want := Datum{At: end.Add(-5 * time.Minute).UTC(), Samples: 3, Sum: 60, Minimum: 10, Maximum: 30}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, part := range []string{".GetMetricStatistics", `"AWS/EC2"`, `"AutoScalingGroupName"`, `"workers"`, `"Period":300`,
		fmt.Sprintf(`"StartTime":%d`, end.Unix()-900), fmt.Sprintf(`"EndTime":%d`, end.Unix())} {
		if !strings.Contains(asked, part) {
			t.Errorf("asked %s, without %s", asked, part)
		}
	}
	answer = "{}"
	if got, err := c.GroupCPU(t.Context(), "workers", end, time.Minute); err != nil || got.Samples != 0 {
		t.Errorf("without datapoints: %+v, %v", got, err)
	}
	denied, _ := metricsServer(t, refuseMetrics(403, "AccessDenied"))
	if _, err := denied.GroupCPU(t.Context(), "workers", end, time.Minute); !isCode(err, queue.CodeAccessDenied) ||
		!strings.Contains(err.Error(), "cloudwatch:GetMetricStatistics") {
		t.Errorf("refused: %v", err)
	}
}

func TestCloudWatchBounds(t *testing.T) {
	setAWS(t, nil)
	c, calls := metricsServer(t, func(w http.ResponseWriter, _ *http.Request) { acceptMetrics(w) })
	if err := c.PutMetricData(context.Background(), "n", nil); err != nil || calls.Load() != 0 {
		t.Errorf("no figures: %v after %d calls, want nothing done", err, calls.Load())
	}
	if err := c.PutMetricData(context.Background(), "n", make([]Datum, maxDatums+1)); !isCode(err,
		queue.CodeInvalidParameterValue) {
		t.Errorf("too many figures: %v", err)
	}
}

func TestCloudWatchEndsWithItsContext(t *testing.T) {
	setAWS(t, nil)
	hold := make(chan struct{})
	c, _ := metricsServer(t, func(http.ResponseWriter, *http.Request) { <-hold })
	defer close(hold)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.PutMetricData(ctx, "n", []Datum{{Name: "a", Samples: 1}}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := c.PutMetricData(ctx, "n", []Datum{{Name: "a", Samples: 1}}); !isCode(err, queue.CodeUnreachable) {
		t.Errorf("after its time: %v", err)
	}
}

func TestCloudWatchLargeBodiesAreWhole(t *testing.T) {
	setAWS(t, nil)
	sizes := make(chan int, 1)
	c, _ := metricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if encoding := r.Header.Get("Content-Encoding"); encoding != "" {
			t.Errorf("the body is compressed (%s), which stand-ins for CloudWatch cannot read", encoding)
		}
		sizes <- len(b)
		acceptMetrics(w)
	})
	data := make([]Datum, maxDatums)
	for i := range data {
		data[i] = Datum{Name: "Duration", Dimension: "Queue", DimensionValue: strings.Repeat("q", 80), Unit: "Milliseconds",
			Samples: 1, At: time.Unix(1, 0)}
	}
	if err := c.PutMetricData(context.Background(), "n", data); err != nil {
		t.Fatal(err)
	}
	if n := <-sizes; n < 100*maxDatums || n > 1<<20 {
		t.Errorf("%d figures are %d bytes; CloudWatch takes up to 1 MiB", maxDatums, n)
	}
}
