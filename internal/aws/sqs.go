package aws

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"tendril/internal/sqsapi/sqswire"
	"tendril/queue"
)

// SQS is a client for Amazon SQS or a compatible server. It is safe for concurrent use.
type SQS struct {
	service service
	api     *sqs.Client

	roundTripper http.RoundTripper
	credentials  sdk.CredentialsProvider
	signer       sqs.HTTPSignerV4
	retries      retries
	buffers      sync.Pool // of *[]byte
	events       *Events
}

// Close closes idle connections.
func (s *SQS) Close() { s.service.close() }

// OpenSQS creates a client from the AWS configuration. The endpoint can be unix:PATH.
func OpenSQS(ctx context.Context, opts *Options) (*SQS, error) {
	opts = cmp.Or(opts, &Options{})
	cfg, service, err := loadConfig(ctx, opts, "SQS")
	if err != nil {
		return nil, err
	}

	api := sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		if path, found := strings.CutPrefix(sdk.ToString(o.BaseEndpoint), "unix:"); found {
			o.BaseEndpoint = sdk.String(service.useSocket(strings.TrimPrefix(path, "//")))
		}
	})

	parts := api.Options()
	events := cmp.Or(opts.Events, &Events{})
	return &SQS{service: service, api: api, roundTripper: service.exchanger, credentials: parts.Credentials,
		signer: parts.HTTPSignerV4, retries: retries{retryer: retryerV2(parts.Retryer), adjusted: events.ClockAdjusted},
		events: events}, nil
}

// Check verifies that there are credentials, without calling SQS. Without any, the error code is
// queue.CodeAccessDenied.
func (s *SQS) Check(ctx context.Context) error { return checkCredentials(ctx, s.credentials) }

func (s *SQS) corrupted(c Corruption) {
	if s.events.Corrupted != nil {
		s.events.Corrupted(c)
	}
}

type site struct {
	queue    string
	endpoint url.URL
	region   string
}

// site prefers a URL's or ARN's region. A configured endpoint replaces only the address.
func (s *SQS) site(ctx context.Context, ref Reference) (site, error) {
	o := s.api.Options()
	base := o.BaseEndpoint
	if base == nil && ref.origin != "" {
		base = &ref.origin
	}

	region := cmp.Or(ref.Region, o.Region)
	if region == "" && base == nil {
		return site{}, queue.Errorf(queue.CodeInvalidParameterValue, "no AWS region for queue %s: "+
			"set AWS_REGION, or set a region in the profile, or name the queue by its URL or ARN", ref.Name)
	}
	region = cmp.Or(region, localRegion)

	resolved, err := o.EndpointResolverV2.ResolveEndpoint(ctx, sqs.EndpointParameters{
		Region:       &region,
		Endpoint:     base,
		UseDualStack: sdk.Bool(o.EndpointOptions.UseDualStackEndpoint == sdk.DualStackEndpointStateEnabled),
		UseFIPS:      sdk.Bool(o.EndpointOptions.UseFIPSEndpoint == sdk.FIPSEndpointStateEnabled),
	})
	if err != nil {
		return site{}, fmt.Errorf("finding the SQS endpoint of region %s: %w; check AWS_REGION and AWS_ENDPOINT_URL_SQS",
			region, err)
	}

	endpoint := resolved.URI
	if endpoint.Host == "" {
		return site{}, fmt.Errorf("the SQS endpoint %q is not a URL with a host: set AWS_ENDPOINT_URL_SQS to one like "+
			"http://127.0.0.1:9324", endpoint.String())
	}

	if endpoint.Path == "" {
		endpoint.Path = "/"
	}
	return site{queue: ref.Name, endpoint: endpoint, region: region}, nil
}

// Endpoint returns the URL of a queue's server. reference is a name, URL or ARN.
func (s *SQS) Endpoint(ctx context.Context, reference string) (string, error) {
	ref, err := ParseReference(reference)
	if err != nil {
		return "", err
	}
	at, err := s.site(ctx, ref)
	return at.endpoint.String(), err
}

func (w site) setEndpoint(o *sqs.Options) {
	base := w.endpoint.String()
	o.Region, o.BaseEndpoint = w.region, &base
}

// maxAnswer is ten messages of the maximum size with every character escaped.
const maxAnswer = 10 * 6 << 20

type call struct {
	site    *site
	action  string
	body    []byte
	timeout time.Duration
	once    bool
}

// perform calls read with the response's body, which it must not retain.
func (s *SQS) perform(ctx context.Context, call call, read func(body []byte) error) error {
	err := s.retries.do(ctx, call.once, func(offset time.Duration) error { return s.attempt(ctx, call, offset, read) })
	return explainSQS(ctx, call.site.queue, call.site.endpoint.Host, err)
}

func (s *SQS) attempt(ctx context.Context, call call, offset time.Duration, read func([]byte) error) error {
	limited, cancel := context.WithTimeout(ctx, call.timeout)
	defer cancel()
	req, err := s.request(limited, call, time.Now().Add(offset))
	if err != nil {
		if limited.Err() != nil {
			return undelivered(ctx, err)
		}
		return err
	}

	resp, err := s.roundTripper.RoundTrip(req)
	if err != nil {
		return undelivered(ctx, cmp.Or(limited.Err(), err))
	}
	defer resp.Body.Close()

	buffer, _ := s.buffers.Get().(*[]byte)
	if buffer == nil {
		buffer = new([]byte)
	}
	defer s.keepBuffer(buffer)
	if *buffer, err = readAll((*buffer)[:0], resp); err != nil {
		return undelivered(ctx, cmp.Or(limited.Err(), err))
	}

	if resp.StatusCode/100 != 2 {
		return newRefusal(resp, *buffer)
	}
	if err := read(*buffer); err != nil {
		return queue.Errorf(queue.CodeUnreachable,
			"%s returned an invalid SQS response to %s: %w; check AWS_ENDPOINT_URL_SQS",
			call.site.endpoint.Host, call.action, err)
	}
	return nil
}

func (s *SQS) keepBuffer(buffer *[]byte) {
	if cap(*buffer) <= 1<<20 {
		s.buffers.Put(buffer)
	}
}

// request sets no GetBody, so that lower layers cannot resend the request.
func (s *SQS) request(ctx context.Context, call call, at time.Time) (*http.Request, error) {
	credentials, err := retrieve(ctx, s.credentials)
	if err != nil {
		return nil, err
	}

	where := call.site.endpoint // the signer changes it
	req := &http.Request{
		Method: http.MethodPost, URL: &where, Host: where.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type":      {"application/x-amz-json-1.0"},
			"User-Agent":        {"tendril"},
			"X-Amz-Target":      {"AmazonSQS." + call.action},
			"X-Amzn-Query-Mode": {"true"},
		},
		Body: io.NopCloser(bytes.NewReader(call.body)), ContentLength: int64(len(call.body)),
	}
	err = s.signer.SignHTTP(ctx, credentials, req, payloadHash(call.body), "sqs", call.site.region, at)
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", call.action, err)
	}
	return req.WithContext(ctx), nil
}

// Sign signs a request to SQS in the client's region.
func (s *SQS) Sign(r *http.Request, body []byte) error {
	credentials, err := retrieve(r.Context(), s.credentials)
	if err != nil {
		return err
	}
	return s.signer.SignHTTP(r.Context(), credentials, r, payloadHash(body), "sqs", s.api.Options().Region, time.Now())
}

func payloadHash(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func readAll(buf []byte, resp *http.Response) ([]byte, error) {
	if resp.ContentLength > maxAnswer {
		return buf, fmt.Errorf("the response is larger than %d bytes", maxAnswer)
	}
	if need := int(resp.ContentLength) + 1; cap(buf) < need { // -1 if unknown
		buf = make([]byte, 0, need)
	}

	for {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), 2*cap(buf)+4096)
			copy(grown, buf)
			buf = grown
		}
		n, err := resp.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return buf, err
		case len(buf) > maxAnswer:
			return buf, fmt.Errorf("the response is larger than %d bytes", maxAnswer)
		}
	}
}

func newRefusal(resp *http.Response, body []byte) *refusal {
	shape, message := readRefusal(body)
	r := refusalOf(resp, shape, message)
	query, _, _ := strings.Cut(resp.Header.Get("X-Amzn-Query-Error"), ";")
	r.query = withoutNamespace(query)
	return r
}

func readRefusal(buf []byte) (shape, message string) {
	r := sqswire.NewReader(string(buf), answerLimits)
	r.Object(func(name string) {
		switch name {
		case "__type":
			shape = r.Text()
		case "message", "Message":
			message = r.Text()
		default:
			r.Skip()
		}
	})
	if r.Finish() != nil {
		return "", ""
	}
	return withoutNamespace(shape), message
}

func explainSQS(ctx context.Context, queueName, host string, err error) error {
	if err == nil {
		return nil
	}

	refused := refusalIn(err)
	if refused == nil && ctx.Err() != nil {
		return ctx.Err()
	}
	var known *queue.Error
	if errors.As(err, &known) {
		return known
	}

	if refused == nil {
		return &queue.Error{Code: queue.CodeUnreachable, Err: err, Message: fmt.Sprintf(
			"%s did not respond: %v; %s", host, unwrapSDK(err), adviceFor(host))}
	}

	return &queue.Error{Code: refused.queueCode(), Message: refusalMessage(refused, queueName, host), Err: refused}
}

func adviceFor(host string) string {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	if name == "localhost" || net.ParseIP(name).IsLoopback() {
		return "start the server on this machine, such as 'tendril serve', or correct its address"
	}
	return "check the network, the region and AWS_ENDPOINT_URL_SQS"
}

func refusalMessage(refused *refusal, queueName, host string) string {
	message := refused.Error()
	if refused.message == "" && refused.ErrorCode() == "" {
		message = fmt.Sprintf("queue %s: %s", queueName, refused.foreignMessage(host, "SQS", "AWS_ENDPOINT_URL_SQS"))
	}

	switch refused.queueCode() {
	case queue.CodeQueueDoesNotExist:
		return fmt.Sprintf("queue %s does not exist at %s: check its name, the account and the region", queueName, host)
	case queue.CodeAccessDenied:
		return fmt.Sprintf("%s denied access to queue %s: %s; check the policy of these credentials, and that they "+
			"have not expired", host, queueName, message)
	}
	return message
}
