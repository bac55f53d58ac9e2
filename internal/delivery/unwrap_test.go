package delivery

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/aws"
	"tendril/internal/delivery/envelope"
	"tendril/internal/worker"
	"tendril/queue"
)

type takesAll struct{ bodies []string }

func (d *takesAll) Deliver(_ context.Context, m *queue.Message) queue.Result {
	d.bodies = append(d.bodies, m.Body)
	return queue.Result{Outcome: queue.Done}
}

func (d *takesAll) DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result {
	results := make([]queue.Result, len(msgs))
	for i, m := range msgs {
		results[i] = d.Deliver(ctx, m)
	}
	return results
}

func (d *takesAll) Probe(context.Context) error { return nil }

type fetcherFunc func(ctx context.Context, key string) ([]byte, error)

func (f fetcherFunc) Fetch(ctx context.Context, _, key string, _ int64) ([]byte, error) {
	return f(ctx, key)
}

func fetching(fetcher envelope.Fetcher) (*Options, *takesAll) {
	d := &takesAll{}
	return &Options{Target: d, Payloads: &envelope.Opener{Fetcher: fetcher, Buckets: []string{"payloads"}}}, d
}

func deliverAll(ctx context.Context, opts *Options, msgs ...*queue.Message) []queue.Result {
	return ForWorker(opts).(worker.BatchDeliverer).DeliverBatch(ctx, msgs)
}

// letter parses "body" or "group/body"; a body "->key" is an S3 pointer.
func letter(text string) *queue.Message {
	m := &queue.Message{ID: text, Body: text, ReceiveCount: 1}
	if group, body, grouped := strings.Cut(text, "/"); grouped {
		m.GroupID, m.Body = group, body
	}
	if key, points := strings.CutPrefix(m.Body, "->"); points {
		m.Body = `["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"payloads","s3Key":"` + key + `"}]`
		m.Attributes = []queue.Attribute{{Name: "ExtendedPayloadSize", Type: "Number", Value: "9"}}
	}
	return m
}

func letters(texts ...string) (list []*queue.Message) {
	for _, text := range texts {
		list = append(list, letter(text))
	}
	return list
}

func TestLaterMessagesOfAGroupAreHeldBack(t *testing.T) {
	t.Parallel()
	const behind = "an earlier message of its group is not done"
	gone := "its payload in S3 is not available"
	for _, tt := range []struct {
		name          string
		fifo          bool
		given         []string
		bodies, wants []string // wants are reasons of the results; "" means done
	}{
		{"in a group", true, []string{"g/->none", "g/2", "h/3", "g/4"}, []string{"3"}, []string{gone, behind, "", behind}},
		{"in the middle", true, []string{"g/1", "h/->have", "g/->none", "g/4", "h/5"}, []string{"1", "had", "5"},
			[]string{"", "", gone, behind, ""}},
		{"nothing is left", true, []string{"g/->none", "g/->have"}, nil, []string{gone, behind}},
		{"names of tenants", false, []string{"g/->none", "g/2"}, []string{"2"}, []string{gone, ""}},
		{"no groups", false, []string{"->none", "2"}, []string{"2"}, []string{gone, ""}},
	} {
		opts, d := fetching(fetcherFunc(func(_ context.Context, key string) ([]byte, error) {
			if key == "none" {
				return nil, &queue.Error{Code: queue.CodeResourceNotFound}
			}
			return []byte("had"), nil
		}))
		opts.FIFO = tt.fifo
		var reasons []string
		for i, r := range deliverAll(t.Context(), opts, letters(tt.given...)...) {
			reasons = append(reasons, r.Reason)
			if want := r.Reason == ""; (r.Outcome == queue.Done) != want || r.Outcome != queue.Done &&
				r.Outcome != queue.Failed {
				t.Errorf("%s: %s ended %v: %s", tt.name, tt.given[i], r.Outcome, r.Reason)
			}
		}
		if diff := cmp.Diff(tt.wants, reasons) + cmp.Diff(tt.bodies, d.bodies); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

func TestNotificationsAreTakenOutOfTheirEnvelopes(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:sns:eu-west-1:123456789012:orders"
	notification := `{"Type":"Notification","MessageId":"n-1","TopicArn":"` + arn + `","Message":"new order",` +
		`"Timestamp":"2026-11-26T15:04:05.000Z","SignatureVersion":"1","Signature":"x","SigningCertURL":"https://example"}`
	confirmation := `{"Type":"SubscriptionConfirmation","MessageId":"n-2","TopicArn":"` + arn + `","Token":"t",` +
		`"Message":"You have chosen to subscribe","SubscribeURL":"https://example","Timestamp":"2026-11-26T15:04:05.000Z",` +
		`"SignatureVersion":"1","Signature":"x","SigningCertURL":"https://example"}`
	run := []queue.Attribute{{Name: queue.AttributePath, Type: "String", Value: "/report"},
		{Name: queue.AttributeTask, Type: "String", Value: "report"},
		{Name: queue.AttributeTime, Type: "String", Value: "2026-11-26 15:04:05 UTC"}}
	for _, tt := range []struct {
		name, body string
		attributes []queue.Attribute
		want, log  string
	}{
		{"notification", notification, nil, "new order", ""},
		{"ordinary message", "plain", nil, "plain", ""},
		{"confirmation", confirmation, nil, confirmation, "SNS subscription not confirmed"},
		{"scheduled run", notification, run, notification, ""},
	} {
		var log bytes.Buffer
		var tracker Tracker
		d := &takesAll{}
		opts := &Options{Target: d, SNS: true, Tracker: &tracker, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		r := ForWorker(opts).Deliver(t.Context(), &queue.Message{ID: "m-1", Body: tt.body, Attributes: tt.attributes})
		if r.Outcome != queue.Done || len(d.bodies) != 1 || d.bodies[0] != tt.want {
			t.Errorf("%s: %+v, delivered %q", tt.name, r, d.bodies)
		}
		if got := log.String(); (got != "") != (tt.log != "") || !strings.Contains(got, tt.log) {
			t.Errorf("%s: logged %q, want %q", tt.name, got, tt.log)
		}
		if w := tracker.Work(); w.InWork != 0 {
			t.Errorf("%s: %d deliveries are still counted", tt.name, w.InWork)
		}
	}
}

func TestPayloadsAreGivenUpWhenS3Hangs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		deadline    time.Duration
		given       []string
		want, again time.Duration
	}{
		{0, []string{"->hangs"}, fetchTimeout, 2 * fetchTimeout},
		{10 * time.Second, []string{"->hangs"}, 10 * time.Second, 20 * time.Second},
		{time.Second, []string{"->hangs"}, time.Second, fetchPause},
		{10 * time.Minute, []string{"->hangs"}, fetchTimeout, 2 * fetchTimeout},
		{0, []string{"->hangs", "->hangs", "2", "->hangs"}, fetchTimeout, 2 * fetchTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			opts, d := fetching(
				fetcherFunc(func(ctx context.Context, _ string) ([]byte, error) {
					<-ctx.Done()
					return nil, &queue.Error{Code: queue.CodeUnreachable, Err: ctx.Err()}
				}))
			opts.Deadline = func() time.Duration { return tt.deadline }
			begin := time.Now()
			results := deliverAll(t.Context(), opts, letters(tt.given...)...)
			if took := time.Since(begin); took != tt.want || results[0].RetryAfter != tt.again {
				t.Errorf("with a deadline of %s it took %s, and is tried again after %s; want %s and %s", tt.deadline, took,
					results[0].RetryAfter, tt.want, tt.again)
			}
			for i, r := range results {
				want := queue.Postponed
				if tt.given[i] == "2" {
					want = queue.Done
				}
				if r.Outcome != want || want == queue.Postponed && r.RetryAfter < fetchPause {
					t.Errorf("message %d of %v: %+v", i, tt.given, r)
				}
			}
			if n := len(tt.given) / 4; len(d.bodies) != n {
				t.Errorf("handed over: %v", d.bodies)
			}
		})
	}
}

func TestSlowPayloadIsDelivered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opts, d := fetching(fetcherFunc(func(ctx context.Context, _ string) ([]byte, error) {
			select {
			case <-time.After(fetchTimeout - time.Second):
				return []byte("had"), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}))
		if r := ForWorker(opts).Deliver(t.Context(), letter("->slow")); r.Outcome != queue.Done || len(d.bodies) != 1 {
			t.Errorf("%+v, handed over %v", r, d.bodies)
		}
	})
}

func TestUnavailablePayloadIsNoAttempt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want queue.Outcome
	}{
		{&queue.Error{Code: queue.CodeUnreachable, Message: "S3 gave no whole answer"}, queue.Postponed},
		{&queue.Error{Code: queue.CodeRequestThrottled, Message: "reduce your request rate"}, queue.Postponed},
		{context.DeadlineExceeded, queue.Postponed},
		{&queue.Error{Code: queue.CodeResourceNotFound}, queue.Failed},
		{&queue.Error{Code: queue.CodeAccessDenied}, queue.Failed},
		{&queue.Error{Code: queue.CodeInvalidParameterValue}, queue.Failed},
		{envelope.ErrTooLarge, queue.Failed},
	} {
		opts, d := fetching(fetcherFunc(func(context.Context, string) ([]byte, error) { return nil, tt.err }))
		var postponed error
		opts.Postponed = func(_ *queue.Message, _ time.Duration, err error) { postponed = err }
		r := ForWorker(opts).Deliver(t.Context(), letter("->k"))
		if r.Outcome != tt.want || !errors.Is(r.Err, tt.err) || r.Reason == "" || len(d.bodies) > 0 {
			t.Errorf("%v: %+v, handed over %v", tt.err, r, d.bodies)
		}
		if reported := errors.Is(postponed, tt.err); reported != (tt.want == queue.Postponed) {
			t.Errorf("%v: postponed for %v", tt.err, postponed)
		}
	}
	opts, _ := fetching(fetcherFunc(func(context.Context, string) ([]byte, error) {
		t.Error("asked")
		return nil, nil
	}))
	broken := letter("->k")
	broken.Body = "no pointer"
	r := ForWorker(opts).Deliver(t.Context(), broken)
	if r.Outcome != queue.Failed || !errors.Is(r.Err, envelope.ErrNoPointer) {
		t.Errorf("no pointer: %+v", r)
	}
}

func TestNothingIsSentIfTheQueueWasPausedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]*queue.Message{"fetched payload": letter("->k"), "scheduled run": runMessage("m", "/audit")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paused := false
			opts, d := fetching(fetcherFunc(func(context.Context, string) ([]byte, error) {
				paused = true
				return []byte("had"), nil
			}))
			opts.Known = func(context.Context, string, string) (bool, error) {
				paused = true
				return true, nil
			}
			opts.Paused = func() bool { return paused }
			if r := ForWorker(opts).Deliver(t.Context(), m); r.Outcome != queue.Postponed || len(d.bodies) > 0 {
				t.Errorf("%+v, sent %v", r, d.bodies)
			}
		})
	}
}

func TestFetchIsPostponedAtTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cut := context.WithCancel(t.Context())
	opts, _ := fetching(fetcherFunc(func(ctx context.Context, _ string) ([]byte, error) {
		cut()
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	if r := ForWorker(opts).Deliver(ctx, letter("->k")); r.Outcome != queue.Postponed {
		t.Errorf("%+v", r)
	}
}

func TestPayloadIsPostponedWhenS3Fails(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-west-1",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	for _, tt := range []struct {
		name     string
		deadline time.Duration
		answer   http.HandlerFunc
		says     string
	}{
		{"no answer", 50 * time.Millisecond, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}, "did not respond in time"},
		{"half an answer", 50 * time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "did not respond in time"},
		{"unavailable", 0, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}, "Service Unavailable"},
	} {
		server := httptest.NewServer(tt.answer)
		t.Setenv("AWS_ENDPOINT_URL_S3", server.URL)
		s3, err := aws.OpenS3(t.Context(), &aws.Options{})
		if err != nil {
			t.Fatal(err)
		}
		opts, d := fetching(s3)
		opts.Deadline = func() time.Duration { return tt.deadline }
		r := ForWorker(opts).Deliver(t.Context(), letter("->k"))
		if r.Outcome != queue.Postponed || r.Err == nil || !strings.Contains(r.Err.Error(), tt.says) || len(d.bodies) > 0 {
			t.Errorf("%s: %+v, handed over %v", tt.name, r, d.bodies)
		}
		s3.Close()
		server.Close()
	}
}
