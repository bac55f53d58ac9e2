package aws

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/auth"
	"github.com/aws/smithy-go/encoding/httpbinding"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"tendril/queue"
)

const codeObjectTooLarge = "ObjectTooLarge"

// S3 fetches objects. It is safe for concurrent use. It bypasses the SDK's client, which would add all 112 operations
// to the binary (decision 0066). It still uses the SDK's endpoint rules, credentials, signatures and retry policy.
type S3 struct {
	service     service
	credentials sdk.CredentialsProvider
	signer      *v4.Signer
	retries     retries
	place       s3.EndpointParameters // without the bucket
}

// Close closes idle connections.
func (s *S3) Close() { s.service.close() }

// OpenS3 creates a client from the AWS configuration.
func OpenS3(ctx context.Context, opts *Options) (*S3, error) {
	opts = cmp.Or(opts, &Options{})
	cfg, service, err := connect(ctx, opts, "S3", "AWS_ENDPOINT_URL_S3", 64)
	if err != nil {
		return nil, err
	}

	region, base := cfg.Region, configuredEndpoint(ctx, &cfg, "S3")
	chooseEndpoint(opts.Endpoint, &base, &region)
	service.terse = true
	if err := service.locate(region, base, "the S3 client"); err != nil {
		return nil, err
	}

	common := sqs.NewFromConfig(cfg).Options() // the options that all services share
	fips, dual := common.EndpointOptions.UseFIPSEndpoint, common.EndpointOptions.UseDualStackEndpoint
	return &S3{
		service:     service,
		credentials: common.Credentials,
		signer:      v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }),
		retries:     retries{retryer: retryerV2(common.Retryer)},
		place: s3.EndpointParameters{
			Region: &region, Endpoint: base, ForcePathStyle: sdk.Bool(base != nil),
			UseFIPS:      sdk.Bool(fips == sdk.FIPSEndpointStateEnabled),
			UseDualStack: sdk.Bool(dual == sdk.DualStackEndpointStateEnabled),
			// S3 Express also accepts ordinary signatures; its sessions would require the SDK's client.
			DisableS3ExpressSessionAuth: sdk.Bool(true),
		},
	}, nil
}

// These are interfaces of the SDK's configuration sources that the SDK does not export.
type (
	endpointIgnorer interface {
		GetIgnoreConfiguredEndpoints(context.Context) (ignore, found bool, err error)
	}
	endpointSource interface {
		GetServiceBaseEndpoint(ctx context.Context, service string) (endpoint string, found bool, err error)
	}
)

// configuredEndpoint returns the endpoint configured for a service, or nil.
func configuredEndpoint(ctx context.Context, cfg *sdk.Config, service string) *string {
	if ignoresEndpoints(ctx, cfg) {
		return nil
	}

	for _, source := range cfg.ConfigSources {
		s, ok := source.(endpointSource)
		if !ok {
			continue
		}
		if endpoint, found, err := s.GetServiceBaseEndpoint(ctx, service); err == nil && found && endpoint != "" {
			return &endpoint
		}
	}
	return cfg.BaseEndpoint
}

// ignoresEndpoints reports whether AWS_IGNORE_CONFIGURED_ENDPOINT_URLS or the profile disables configured endpoints.
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

// Fetch returns an object of at most limit bytes, after verifying its checksum if it has one. It retries after
// errors, including an incomplete body. It needs s3:GetObject.
//
// The error code is queue.CodeResourceNotFound, queue.CodeAccessDenied, ObjectTooLarge, queue.CodeRequestThrottled,
// or queue.CodeUnreachable for anything that a retry may fix, including ctx's deadline.
func (s *S3) Fetch(ctx context.Context, bucket, key string, limit int64) ([]byte, error) {
	if bucket == "" || key == "" {
		return nil, queue.Errorf(queue.CodeInvalidParameterValue,
			"the bucket or the key of the object is empty")
	}
	var broken error
	for range 3 { // retries after an incomplete body
		resp, err := s.get(ctx, bucket, key)
		if err != nil {
			return nil, s.explain(ctx, bucket, key, err)
		}

		contents, err := readObject(resp, limit)
		switch {
		case errors.Is(err, errObjectTooLarge):
			return nil, queue.Errorf(codeObjectTooLarge, "object %q in bucket %s is larger than the %d bytes allowed", key,
				bucket, limit)
		case err == nil:
			return contents, nil
		}

		broken = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, s.explain(ctx, bucket, key, broken)
}

var errObjectTooLarge = errors.New("larger than the limit")

// get requests an object, with retries. The caller closes the response's body.
func (s *S3) get(ctx context.Context, bucket, key string) (resp *http.Response, err error) {
	err = s.retries.do(ctx, false, func(offset time.Duration) error {
		req, err := s.request(ctx, bucket, key, time.Now().Add(offset))
		if err != nil {
			return err
		}
		if resp, err = s.service.transport.RoundTrip(req); err != nil {
			return undelivered(ctx, err)
		}
		if resp.StatusCode == http.StatusOK {
			return nil
		}
		defer resp.Body.Close()
		return refusedObject(resp)
	})
	return resp, err
}

// emptyDigest is the SHA-256 digest of an empty body.
const emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func (s *S3) request(ctx context.Context, bucket, key string, at time.Time) (*http.Request, error) {
	credentials, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return nil, noCredentials(err)
	}

	place := s.place
	place.Bucket = &bucket
	resolved, err := s3.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, place)
	if err != nil {
		return nil, queue.Errorf(queue.CodeInvalidParameterValue, "bucket %q: %w", bucket, err)
	}

	where := resolved.URI
	where.RawPath = strings.TrimSuffix(where.EscapedPath(), "/") + "/" + httpbinding.EscapePath(key, false)
	where.Path = strings.TrimSuffix(where.Path, "/") + "/" + key
	req := (&http.Request{
		Method: http.MethodGet, URL: &where, Host: where.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"User-Agent": {"tendril"}, "X-Amz-Content-Sha256": {emptyDigest},
			"X-Amz-Checksum-Mode": {"ENABLED"}},
	}).WithContext(ctx)

	options, _ := auth.GetAuthOptions(&resolved.Properties)
	for _, option := range options {
		if option.SchemeID != "sigv4" { // the name of Signature Version 4 in the SDK's endpoint rules
			continue
		}
		service, _ := smithyhttp.GetSigV4SigningName(&option.SignerProperties)
		region, _ := smithyhttp.GetSigV4SigningRegion(&option.SignerProperties)
		err := s.signer.SignHTTP(ctx, credentials, req, emptyDigest, cmp.Or(service, "s3"),
			cmp.Or(region, sdk.ToString(place.Region)), at)
		if err != nil {
			return nil, fmt.Errorf("signing %s: %w", "GetObject", err)
		}
		return req, nil
	}
	return nil, queue.Errorf(queue.CodeInvalidParameterValue,
		"bucket %q needs signatures for many regions: use a bucket or an access point of one region", bucket)
}

func refusedObject(resp *http.Response) error {
	var words struct{ Code, Message string }
	// Other servers may not respond with XML.
	_ = xml.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&words)
	return refusalOf(resp, words.Code, words.Message)
}

func readObject(resp *http.Response, limit int64) ([]byte, error) {
	defer resp.Body.Close()
	if resp.ContentLength > limit {
		return nil, errObjectTooLarge
	}
	contents, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(contents)) > limit:
		return nil, errObjectTooLarge
	}
	return contents, checkObject(resp.Header, contents)
}

func (s *S3) explain(ctx context.Context, bucket, key string, err error) error {
	doing := fmt.Sprintf("fetching object %q from bucket %s", key, bucket)
	return s.service.explain(ctx, doing, err, func(refused *refusal) (code, message string) {
		code = objectCode(refused)
		switch {
		case refused.shape == "NoSuchBucket":
			message = fmt.Sprintf("bucket %s does not exist at %s", bucket, s.service.host)
		case code == queue.CodeResourceNotFound:
			message = fmt.Sprintf("object %q does not exist in bucket %s", key, bucket)
		case code == queue.CodeAccessDenied:
			message = fmt.Sprintf("S3 denied access: %s; allow these credentials s3:GetObject on the object (without "+
				"s3:ListBucket a missing object looks the same)", refused)
		case refused.status/100 == 3, refused.shape == "AuthorizationHeaderMalformed":
			message = fmt.Sprintf("bucket %s is in another region than %s: set the region of the bucket", bucket, s.service.host)
		case !refused.foreign():
			message = fmt.Sprintf("%s refused s3:GetObject: %s", s.service.host, refused)
		}
		return code, message
	})
}

// objectCode maps S3's error codes to this module's.
func objectCode(refused *refusal) string {
	switch refused.shape {
	case "NoSuchKey", "NoSuchBucket", "NotFound", "NoSuchVersion":
		return queue.CodeResourceNotFound
	case "InvalidObjectState", "AllAccessDisabled", "AccountProblem":
		return queue.CodeAccessDenied
	case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return queue.CodeInvalidParameterValue
	case "InternalError", "OperationAborted", "RequestTimeout":
		return queue.CodeUnreachable
	}
	if refused.status == http.StatusNotFound {
		return queue.CodeResourceNotFound
	}
	return refused.queueCode()
}
