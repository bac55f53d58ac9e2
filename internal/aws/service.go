package aws

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"tendril/queue"
)

// localRegion signs the calls to a server that is not Amazon's and for which
// nobody named a region. Such servers do not look at it.
const localRegion = "us-east-1"

// chooseEndpoint puts an endpoint that is not "" in force, and gives calls to a
// server that is not Amazon's a region to be signed with.
func chooseEndpoint(endpoint string, base **string, region *string) {
	if endpoint != "" {
		*base = &endpoint
	}
	if *region == "" && *base != nil {
		*region = localRegion
	}
}

// service is what the clients of all services have in common.
type service struct {
	name      string // as people know it: "S3"
	variable  string // of the environment, with its endpoint
	host      string // for people: the endpoint, or the service with its region
	transport *http.Transport
	terse     bool // refuses with a status alone, too
}

// close drops the idle connections. Calls under way end as they would.
func (s *service) close() { s.transport.CloseIdleConnections() }

// connect reads the AWS configuration for a service. connections is how many idle
// ones are kept for the next call.
//
// It reads as every AWS tool does; a region and a profile that are not "" count more than what
// the files and variables say. The error names the file or the variable at fault.
func connect(ctx context.Context, opts *Options, name, variable string, connections int) (sdk.Config, service, error) {
	load := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{}), config.WithRegion(opts.Region),
		config.WithSharedConfigProfile(opts.Profile)}
	if opts.Log != nil {
		load[0] = config.WithLogger(opts.Log)
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return cfg, service{}, fmt.Errorf("reading the AWS configuration: %w; check AWS_PROFILE and the files in ~/.aws", err)
	}
	s := service{name: name, variable: variable,
		transport: newTransport(cfg.HTTPClient, connections)}
	cfg.HTTPClient = &http.Client{Transport: wholeBodies{s.transport}, CheckRedirect: keepRedirect}
	return cfg, s, nil
}

// locate notes where the calls go. It returns an error when no region is known for what
// the service is used for.
func (s *service) locate(region string, base *string, use string) error {
	s.host = s.name + " in " + region
	if base != nil {
		s.host = *base
	}
	if region == "" {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"no AWS region for %s: set AWS_REGION, or set a region in the profile", use)
	}
	return nil
}

// checkCredentials fetches the credentials, so that missing ones are told from a network's
// failure. The error has queue.CodeAccessDenied and says where they are looked for.
func checkCredentials(ctx context.Context, provider sdk.CredentialsProvider) error {
	if provider == nil {
		return noCredentials(errors.New("none are configured"))
	}
	if _, err := provider.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return noCredentials(err)
	}
	return nil
}

func noCredentials(cause error) error {
	return &queue.Error{Code: queue.CodeAccessDenied, Err: cause, Message: fmt.Sprintf("no AWS credentials: %s. "+
		"Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of ~/.aws in AWS_PROFILE (after \"aws "+
		"configure\" or \"aws sso login\"), or run where a role is attached (EC2, ECS, EKS, Lambda)",
		firstLine(cause.Error()))}
}

// explain turns any error of a call into a [*queue.Error] that says what was done and what
// to do. The cancelling of the caller's own context stays what it is. advise names the
// class of a refusal, and says what to do about it.
func (s *service) explain(ctx context.Context, doing string, err error,
	advise func(refused *refusal) (code, message string)) error {
	if err == nil {
		return nil
	}
	refused := refusalIn(err)
	if refused == nil || refused.status/100 == 2 {
		return s.unanswered(ctx, doing, err)
	}
	code, message := advise(refused)
	if refused.foreign() && !(s.terse && message != "") {
		message = refused.foreignAnswer(s.host, s.name, s.variable)
	}
	return &queue.Error{Code: code, Message: doing + ": " + message, Err: refused}
}

// unanswered is the error of a call without a whole answer.
func (s *service) unanswered(ctx context.Context, doing string, err error) error {
	var known *queue.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.As(err, &known):
		return known
	case ctx.Err() != nil:
		return &queue.Error{Code: queue.CodeUnreachable, Err: err, Message: fmt.Sprintf(
			"%s: %s did not answer in time; check the network, the region and %s", doing, s.host, s.variable)}
	}
	return &queue.Error{Code: queue.CodeUnreachable, Err: err, Message: fmt.Sprintf(
		"%s: %s did not answer: %s; check the network, the region, the credentials and %s", doing, s.host,
		firstLine(plain(err).Error()), s.variable)}
}

// newTransport takes the SDK's transport, with its dialling, proxy and
// certificate settings, and fits it to the hot calls: HTTP/1.1 connections,
// enough of them kept for the calls in parallel.
func newTransport(client sdk.HTTPClient, connections int) *http.Transport {
	buildable, ok := client.(*awshttp.BuildableClient)
	if !ok {
		buildable = awshttp.NewBuildableClient()
	}
	t := buildable.GetTransport()
	t.MaxIdleConns = 0
	t.MaxIdleConnsPerHost = connections
	// Long enough for the pause between two calls, short enough to be the one
	// who closes first.
	t.IdleConnTimeout = 15 * time.Second
	t.DisableCompression = true
	// Ten messages of a kilobyte are read, and ten receipts are written, by one system call.
	t.ReadBufferSize, t.WriteBufferSize = 16<<10, 8<<10
	t.ForceAttemptHTTP2 = false
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	return t
}

// wholeBodies sends copies of the bodies of requests, which are small. The SDK closes its own as soon as an answer
// begins, and net/http, which may just be looking for its end, then closes the connection over the answer.
type wholeBodies struct{ next http.RoundTripper }

// RoundTrip makes one exchange.
func (w wholeBodies) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return w.next.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err := cmp.Or(err, req.Body.Close()); err != nil {
		return nil, fmt.Errorf("reading the request's body: %w", err)
	}
	whole := *req
	whole.Body = io.NopCloser(bytes.NewReader(body))
	return w.next.RoundTrip(&whole)
}

// dialSocket has all connections go to a unix socket, and returns the endpoint by which the client calls its server.
func (s *service) dialSocket(path string) (endpoint string) {
	s.transport.Proxy = nil
	s.transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return "http://localhost"
}

// keepRedirect hands a redirect to whoever asked: a signed request is for one
// host.
func keepRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
