package telemetry

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metricsservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"tendril/internal/testing/testpeer"
	"tendril/internal/worker"
	"tendril/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testpeer.Contained(m)) }

type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*tracepb.Span
	metrics []*metricspb.Metric
	about   map[string]string
	status  int
	hold    chan struct{}
	arrived chan struct{}
}

func newCollector(t *testing.T) *collector {
	c := &collector{about: map[string]string{}, arrived: make(chan struct{}, 100)}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	clearOTEL(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000") // a test exports spans when it expects them
	return c
}

func clearOTEL(t *testing.T) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(r.Body)
	}
	b, _ := io.ReadAll(body)
	select {
	case c.arrived <- struct{}{}:
	default:
	}
	c.mu.Lock()
	status, hold := c.status, c.hold
	c.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	c.take(r.URL.Path, b)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *collector) take(path string, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch path {
	case "/v1/traces":
		var in traceservice.ExportTraceServiceRequest
		if proto.Unmarshal(b, &in) == nil {
			for _, r := range in.ResourceSpans {
				c.describe(r.Resource.Attributes)
				for _, s := range r.ScopeSpans {
					c.spans = append(c.spans, s.Spans...)
				}
			}
		}
	case "/v1/metrics":
		var in metricsservice.ExportMetricsServiceRequest
		if proto.Unmarshal(b, &in) == nil {
			for _, r := range in.ResourceMetrics {
				c.describe(r.Resource.Attributes)
				for _, s := range r.ScopeMetrics {
					c.metrics = append(c.metrics, s.Metrics...)
				}
			}
		}
	}
}

func (c *collector) describe(attrs []*commonpb.KeyValue) {
	for _, a := range attrs {
		c.about[a.Key] = a.Value.GetStringValue()
	}
}

func (c *collector) set(status int, hold chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status, c.hold = status, hold
}

func texts(attrs []*commonpb.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attrs {
		if all[a.Key] = a.Value.GetStringValue(); all[a.Key] == "" {
			all[a.Key] = fmt.Sprint(a.Value.GetIntValue())
		}
	}
	return all
}

func open(t *testing.T, opts *OTLPOptions) *OTLP {
	t.Helper()
	o, err := OpenOTLP(context.Background(), opts)
	if err != nil || o == nil {
		t.Fatalf("OpenOTLP: %v, %v", o, err)
	}
	t.Cleanup(func() { _ = o.Close(context.Background()) })
	return o
}

func (c *collector) span(t *testing.T, name string) *tracepb.Span {
	t.Helper()
	for _, s := range c.spans {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no span %q among %d", name, len(c.spans))
	return nil
}

func expect(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %s is %q, want %q", what, name, got[name], value)
		}
	}
}

const parentOfTest = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestDeliveryHasTwoSpans(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_SERVICE_NAME", "shop")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
	o := open(t, &OTLPOptions{Version: "1.2.3"})
	tracer := o.Tracer(TracerOptions{Queue: "jobs", QueueURL: "http://q/0/jobs", Target: "http://localhost:8080/"})
	around, outer := o.tracer.Start(context.Background(), "around")
	defer outer.End()
	ctx, end := tracer.Begin(around, []*queue.Message{{ID: "m-1", ReceiveCount: 2,
		Attributes: []queue.Attribute{{Name: "traceparent", Type: "String", Value: parentOfTest}}}})
	header := traceparent(ctx)
	end([]queue.Result{{Outcome: queue.Failed, Status: 503, Reason: "HTTP 503"}})
	if err := o.Close(context.Background()); err != nil {
		t.Fatal(err)
	}

	process, call := c.span(t, "process jobs"), c.span(t, "POST")
	if process.Kind != tracepb.Span_SPAN_KIND_CONSUMER || call.Kind != tracepb.Span_SPAN_KIND_CLIENT {
		t.Errorf("the kinds are %v and %v", process.Kind, call.Kind)
	}
	if len(process.ParentSpanId) != 0 || string(call.ParentSpanId) != string(process.SpanId) {
		t.Error("the call must be the child of the process span, which has no parent")
	}
	if len(process.Links) != 1 || fmt.Sprintf("%x", process.Links[0].TraceId) != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the links are %v, want the message's creation", process.Links)
	}
	if want := fmt.Sprintf("00-%x-%x-01", call.TraceId, call.SpanId); header != want {
		t.Errorf("the app gets %s, want %s", header, want)
	}
	expect(t, "process", texts(process.Attributes), map[string]string{"messaging.system": "aws_sqs",
		"messaging.destination.name": "jobs",
		"messaging.operation.name":   "process", "messaging.operation.type": "process", "messaging.message.id": "m-1",
		"aws.sqs.queue.url":             "http://q/0/jobs",
		"tendril.message.receive_count": "2", "error.type": "503", "tendril.outcome": "failed"})
	expect(t, "POST", texts(call.Attributes), map[string]string{"http.request.method": "POST",
		"url.full": "http://localhost:8080/", "http.response.status_code": "503"})
	if process.Status.Code != tracepb.Status_STATUS_CODE_ERROR || process.Status.Message != "HTTP 503" {
		t.Errorf("the status is %v", process.Status)
	}
	expect(t, "resource", c.about, map[string]string{"service.name": "shop", "service.version": "1.2.3",
		"deployment.environment.name": "staging", "telemetry.sdk.language": "go"})
}

func TestBatchIsLinkedToEachMessage(t *testing.T) {
	c := newCollector(t)
	o := open(t, nil)
	_, end := o.Tracer(TracerOptions{Queue: "jobs", Function: "resize"}).Begin(context.Background(), []*queue.Message{
		{ID: "a", Attributes: []queue.Attribute{{Name: "traceparent", Type: "String", Value: parentOfTest}}},
		{ID: "b"},
		{ID: "c", TraceHeader: "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"},
	})
	end([]queue.Result{{Outcome: queue.Done}, {Outcome: queue.Done}})
	if err := o.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	process, call := c.span(t, "process jobs"), c.span(t, "invoke")
	if len(process.Links) != 2 || texts(process.Links[1].Attributes)["messaging.message.id"] != "c" {
		t.Errorf("the links are %v, want those of a and c", process.Links)
	}
	expect(t, "process", texts(process.Attributes), map[string]string{"messaging.batch.message_count": "3",
		"error.type": "failed"})
	expect(t, "invoke", texts(call.Attributes), map[string]string{"faas.invoked_name": "resize"})
}

func TestMetricsAreExported(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	o := open(t, nil)
	if o.Tracer(TracerOptions{}) != nil {
		t.Error("there is a tracer although OTEL_TRACES_EXPORTER is none")
	}
	w := o.Worker("jobs")
	w.Received(worker.Received{Messages: 3, Duration: time.Second})
	w.Received(worker.Received{Duration: 20 * time.Second})
	w.Settled(worker.Settled{Outcome: queue.Done, Status: 200, Duration: 200 * time.Millisecond})
	w.Settled(worker.Settled{Outcome: queue.Failed, Status: 503, Duration: 300 * time.Millisecond})
	w.Settled(worker.Settled{Outcome: queue.Unreached})
	w.Postponed(worker.Postponed{Throttled: true, Status: 429, Duration: 400 * time.Millisecond})
	w.Postponed(worker.Postponed{Duration: time.Second})
	w.Deleted(worker.Deleted{Messages: 1, Duration: time.Millisecond})
	w.Extended(worker.Extended{Messages: 1, Duration: time.Millisecond})
	if err := o.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range c.metrics {
		for _, p := range m.GetHistogram().GetDataPoints() {
			a := texts(p.Attributes)
			key := m.Name + " " + a["messaging.operation.name"] + " " + a["error.type"]
			got[key+" sum"], got[key+" count"] = p.GetSum(), float64(p.Count)
		}
		for _, p := range m.GetSum().GetDataPoints() {
			got[m.Name] = float64(p.GetAsInt())
		}
	}
	for name, want := range map[string]float64{
		"messaging.client.consumed.messages":                           3,
		"messaging.client.operation.duration receive  sum":             21,
		"messaging.client.operation.duration receive  count":           2,
		"messaging.client.operation.duration delete  count":            1,
		"messaging.client.operation.duration change_visibility  count": 1,
		"messaging.process.duration process  sum":                      0.2,
		"messaging.process.duration process 5xx sum":                   0.3,
		"messaging.process.duration process unreached count":           1,
		"messaging.process.duration process throttled count":           1,
		"messaging.process.duration process throttled sum":             0.4,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v; all: %v", name, got[name], want, got)
		}
	}
}

func TestFailingCollectorIsLoggedOnce(t *testing.T) {
	c := newCollector(t)
	c.set(http.StatusBadRequest, nil)
	var lines syncBuffer
	o := open(t, &OTLPOptions{Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	tracer := o.Tracer(TracerOptions{Queue: "jobs"})
	deliver := func() {
		_, end := tracer.Begin(context.Background(), []*queue.Message{{ID: "m"}})
		end([]queue.Result{{Outcome: queue.Done}})
		if err := o.tracerProvider.ForceFlush(context.Background()); err != nil {
			t.Error(err)
		}
	}
	deliver()
	deliver()
	if got := o.stats()[0]; got.sink != "otlp_traces" || got.errors != 2 || got.dropped != 4 {
		t.Errorf("stats are %+v, want 2 errors and 4 spans dropped", got)
	}
	c.set(0, nil)
	deliver()
	text := lines.String()
	if strings.Count(text, "sending telemetry failed") != 1 || strings.Count(text, "sending telemetry resumed") != 1 {
		t.Errorf("want one log line for the failure and one for its end:\n%s", text)
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *syncBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *syncBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestHangingCollectorDoesNotBlockDeliveries(t *testing.T) {
	c := newCollector(t)
	hold := make(chan struct{})
	defer close(hold)
	c.set(0, hold)
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	o := open(t, nil)
	tracer := o.Tracer(TracerOptions{Queue: "jobs"})
	for range 100 { // a blocking processor would hang here
		_, end := tracer.Begin(context.Background(), []*queue.Message{{ID: "m"}})
		end([]queue.Result{{Outcome: queue.Done}})
	}
	<-c.arrived
	if got := o.stats()[0].dropped; got < 180 || got > 190 {
		t.Errorf("%d of 200 spans were dropped, with room for 10", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := o.Close(ctx); err == nil {
		t.Error("Close returned no error although spans were lost")
	}
}

func TestExportedSpansMakeRoomForNewOnes(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "2")
	o := open(t, nil)
	tracer := o.Tracer(TracerOptions{Queue: "jobs"})
	for i := range 10 {
		c.set(map[bool]int{true: http.StatusBadRequest}[i%2 == 0], nil)
		_, end := tracer.Begin(context.Background(), []*queue.Message{{ID: "m"}})
		end([]queue.Result{{Outcome: queue.Done}})
		if err := o.tracerProvider.ForceFlush(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.spans) != 10 || o.stats()[0].dropped != 10 {
		t.Errorf("%d spans arrived and %d were dropped, want 10 of each", len(c.spans), o.stats()[0].dropped)
	}
}

func TestNothingIsExportedWithoutAnEndpoint(t *testing.T) {
	clearOTEL(t)
	o, err := OpenOTLP(context.Background(), nil)
	if o != nil || err != nil {
		t.Fatalf("OpenOTLP: %v, %v, want nothing", o, err)
	}
	tracer := o.Tracer(TracerOptions{Queue: "jobs"})
	ctx, end := tracer.Begin(context.Background(), []*queue.Message{{}})
	end([]queue.Result{{}})
	if traceparent(ctx) != "" || o.Worker("jobs") != nil || o.stats() != nil || o.Close(ctx) != nil {
		t.Error("what is off must do nothing")
	}
	if n := testing.AllocsPerRun(100, func() {
		_, end := tracer.Begin(ctx, nil)
		end(nil)
	}); n != 0 {
		t.Errorf("tracing that is off allocates %v times for each delivery", n)
	}
}

func TestUnsampledTraceIsStillPropagatedToTheApp(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	o := open(t, nil)
	ctx, end := o.Tracer(TracerOptions{Queue: "jobs"}).Begin(context.Background(), []*queue.Message{{ID: "m"}})
	if h := traceparent(ctx); !strings.HasSuffix(h, "-00") {
		t.Errorf("the app gets %q, want a trace that is not sampled", h)
	}
	end([]queue.Result{{}})
	if err := o.Close(context.Background()); err != nil || len(c.spans) != 0 {
		t.Errorf("%d spans arrived, %v", len(c.spans), err)
	}
}

func TestReadOTLPSettings(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, env string
		want      otlpSettings
		refused   string
	}{
		{"nothing", "", otlpSettings{}, ""},
		{"both", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", otlpSettings{true, true}, ""},
		{"traces only", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c", otlpSettings{traces: true}, ""},
		{"metrics only", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://c", otlpSettings{metrics: true}, ""},
		{"disabled", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_SDK_DISABLED=TRUE", otlpSettings{}, ""},
		{"no traces", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_TRACES_EXPORTER=none", otlpSettings{metrics: true}, ""},
		{"no metrics", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_METRICS_EXPORTER=none", otlpSettings{traces: true}, ""},
		{"another exporter", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_TRACES_EXPORTER=zipkin", otlpSettings{},
			"OTEL_TRACES_EXPORTER"},
		{"grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_EXPORTER_OTLP_PROTOCOL=grpc", otlpSettings{}, "4318"},
		{"grpc but not here",
			"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_EXPORTER_OTLP_PROTOCOL=grpc " +
				"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/protobuf",
			otlpSettings{true, true}, ""},
		{"grpc and off", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", otlpSettings{}, ""},
		{"a sampler", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=0.1",
			otlpSettings{true, true}, ""},
		{"an unknown sampler", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_TRACES_SAMPLER=jaeger_remote", otlpSettings{},
			"parentbased_traceidratio"},
		{"a bad share", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=NaN",
			otlpSettings{}, "0 to 1"},
	} {
		env := map[string]string{}
		for _, v := range strings.Fields(tc.env) {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		got, err := readOTLPSettings(func(name string) string { return env[name] })
		if (err != nil) != (tc.refused != "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%s: the error is %v, want it to say %q", tc.name, err, tc.refused)
		}
		if err == nil && got != tc.want {
			t.Errorf("%s: the plan is %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

func TestErrorNamesTheInvalidVariable(t *testing.T) {
	newCollector(t)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "novalue")
	if o, err := OpenOTLP(context.Background(), nil); err == nil ||
		!strings.Contains(err.Error(), "OTEL_RESOURCE_ATTRIBUTES") {
		t.Errorf("OpenOTLP: %v, %v", o, err)
	}
}
