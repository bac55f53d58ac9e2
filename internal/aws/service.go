package aws

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"tendril/queue"
)

// localRegion signs requests to servers outside AWS, which usually ignore the region.
const localRegion = "us-east-1"

type service struct {
	name      string
	id        string // the name without "Amazon"
	variable  string
	host      string // in errors: the endpoint, or the service and region
	exchanger *exchanger
	terse     bool // error responses may have only a status
}

func (s *service) close() { s.exchanger.close() }

// loadWithRegion names use in the error for a missing region.
func loadWithRegion(ctx context.Context, opts *Options, name, use string) (sdk.Config, service, error) {
	cfg, s, err := loadConfig(ctx, opts, name)
	if err != nil {
		return cfg, s, err
	}
	return cfg, s, s.locate(ctx, &cfg, use)
}

func loadConfig(ctx context.Context, opts *Options, name string) (sdk.Config, service, error) {
	opts = cmp.Or(opts, &Options{})
	var logger logging.Logger = logging.Nop{}
	if opts.Log != nil {
		logger = opts.Log
	}

	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logger), config.WithRegion(opts.Region),
		config.WithSharedConfigProfile(opts.Profile))
	if err != nil {
		return cfg, service{}, fmt.Errorf("reading the AWS configuration: %w; check AWS_PROFILE and the files in ~/.aws", err)
	}
	if opts.Endpoint != "" { // takes precedence over configured endpoints
		cfg.BaseEndpoint = &opts.Endpoint
		cfg.ConfigSources = append([]any{config.LoadOptions{BaseEndpoint: opts.Endpoint}}, cfg.ConfigSources...)
	}

	s := service{exchanger: newExchanger(newTransport(cfg.HTTPClient))}
	s.rename(name)
	cfg.HTTPClient = &http.Client{Transport: s.exchanger, CheckRedirect: keepRedirect}
	return cfg, s, nil
}

func (s *service) rename(name string) {
	s.name, s.id = name, strings.TrimPrefix(name, "Amazon ")
	s.variable = "AWS_ENDPOINT_URL_" + strings.ReplaceAll(strings.ToUpper(s.id), " ", "_")
}

func (s *service) locate(ctx context.Context, cfg *sdk.Config, use string) error {
	s.host = s.name + " in " + cfg.Region
	if base := endpointOf(ctx, cfg, s.id); base != nil {
		s.host, cfg.Region = *base, cmp.Or(cfg.Region, localRegion)
	}
	if cfg.Region == "" {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"no AWS region for %s: set AWS_REGION, or set a region in the profile", use)
	}
	return nil
}

// The SDK implements these interfaces, but does not export them.
type (
	endpointIgnorer interface {
		GetIgnoreConfiguredEndpoints(context.Context) (ignore, found bool, err error)
	}
	endpointSource interface {
		GetServiceBaseEndpoint(ctx context.Context, service string) (endpoint string, found bool, err error)
	}
)

func endpointOf(ctx context.Context, cfg *sdk.Config, id string) *string {
	if ignoresEndpoints(ctx, cfg) {
		return cfg.BaseEndpoint
	}

	for _, source := range cfg.ConfigSources {
		s, ok := source.(endpointSource)
		if !ok {
			continue
		}
		if endpoint, found, err := s.GetServiceBaseEndpoint(ctx, id); err == nil && found && endpoint != "" {
			return &endpoint
		}
	}
	return cfg.BaseEndpoint
}

func ignoresEndpoints(ctx context.Context, cfg *sdk.Config) bool {
	for _, source := range cfg.ConfigSources {
		s, ok := source.(endpointIgnorer)
		if !ok {
			continue
		}
		if ignore, found, err := s.GetIgnoreConfiguredEndpoints(ctx); err == nil && found && ignore {
			return true
		}
	}
	return false
}

func checkCredentials(ctx context.Context, provider sdk.CredentialsProvider) error {
	if provider == nil {
		return noCredentials(errors.New("none are configured"))
	}
	_, err := retrieve(ctx, provider)
	return err
}

func retrieve(ctx context.Context, provider sdk.CredentialsProvider) (sdk.Credentials, error) {
	credentials, err := provider.Retrieve(ctx)
	switch {
	case err == nil:
		return credentials, nil
	case ctx.Err() != nil:
		return credentials, undelivered(ctx, err)
	}
	return credentials, noCredentials(err)
}

func noCredentials(cause error) error {
	return &queue.Error{Code: queue.CodeAccessDenied, Err: cause, Message: fmt.Sprintf("no AWS credentials: %s. "+
		"Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of ~/.aws in AWS_PROFILE (after \"aws "+
		"configure\" or \"aws sso login\"), or run where a role is attached (EC2, ECS, EKS, Lambda). 'tendril serve' without "+
		"--credentials accepts any two keys",
		firstLine(cause.Error()))}
}

// explain calls advise for the code and message of an error response. A terse service's message replaces the one for
// foreign responses.
func (s *service) explain(ctx context.Context, doing string, err error,
	advise func(refused *refusal) (code, message string)) error {
	if err == nil {
		return nil
	}

	refused := refusalIn(err)
	if refused == nil || refused.status/100 == 2 || errors.As(err, new(*queue.Error)) {
		return s.unanswered(ctx, doing, err)
	}

	code, message := advise(refused)
	if refused.isForeign() && (!s.terse || message == "") {
		message = refused.foreignMessage(s.host, s.name, s.variable)
	}
	return &queue.Error{Code: code, Message: doing + ": " + message, Err: refused}
}

func (s *service) unanswered(ctx context.Context, doing string, err error) error {
	var known *queue.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.As(err, &known):
		return known
	}

	how := ": " + firstLine(unwrapSDK(err).Error())
	toCheck := "the network, the region, the credentials and "
	if ctx.Err() != nil {
		how = " in time"
		toCheck = "the network, the region and "
	}
	return &queue.Error{Code: queue.CodeUnreachable, Err: err, Message: fmt.Sprintf("%s: %s did not respond%s; check %s%s",
		doing, s.host, how, toCheck, s.variable)}
}

func newTransport(client sdk.HTTPClient) *http.Transport {
	buildable, ok := client.(*awshttp.BuildableClient)
	if !ok {
		buildable = awshttp.NewBuildableClient()
	}

	t := buildable.GetTransport()
	t.MaxIdleConns = 0
	t.MaxIdleConnsPerHost = math.MaxInt
	// Idle connections must last until the next call, but close before the server closes them.
	t.IdleConnTimeout = 15 * time.Second
	t.DisableCompression = true
	// Ten messages of 1 KB, or ten receipt handles, fit into one read or write.
	t.ReadBufferSize, t.WriteBufferSize = 16<<10, 8<<10
	t.ForceAttemptHTTP2 = false
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	return t
}

// wholeBodies sends copies of request bodies. The SDK closes its body when a response starts; if net/http is still
// reading it, net/http closes the connection.
type wholeBodies struct{ next http.RoundTripper }

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

func (s *service) useSocket(path string) (endpoint string) {
	transport := s.exchanger.transport
	transport.Proxy = nil
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return "http://localhost"
}

// keepRedirect returns redirects to the caller, because a signature is valid for one host only.
func keepRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
