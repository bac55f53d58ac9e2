package aws

import (
	"cmp"
	"context"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"tendril/queue"
)

// SQS is Amazon SQS, or a server that speaks its protocol, as seen with one
// set of credentials. All methods are safe for concurrent use.
type SQS struct {
	service
	api    *sqs.Client
	caller *caller
}

// OpenSQS reads the AWS configuration: variables, profiles and files as every
// AWS tool reads them. It calls nobody: [SQS.Check] and [SQS.Queue] do. The
// error names the file or the variable at fault.
func OpenSQS(ctx context.Context, opts *Options) (*SQS, error) {
	opts = cmp.Or(opts, &Options{})
	cfg, service, err := connect(ctx, opts, "SQS", "AWS_ENDPOINT_URL_SQS", 64)
	if err != nil {
		return nil, err
	}
	api := sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		if opts.Endpoint != "" {
			o.BaseEndpoint = &opts.Endpoint
		}
	})
	parts := api.Options()
	return &SQS{
		service: service,
		api:     api,
		caller: &caller{
			transport:   service.transport,
			credentials: parts.Credentials,
			signer:      parts.HTTPSignerV4,
			retryer:     retryerV2(parts.Retryer),
			events:      cmp.Or(opts.Events, &Events{}),
		},
	}, nil
}

// retryerV2 gives any retryer the newer interface.
func retryerV2(r sdk.Retryer) sdk.RetryerV2 {
	if v2, ok := r.(sdk.RetryerV2); ok {
		return v2
	}
	return retry.AddWithMaxAttempts(r, r.MaxAttempts()).(sdk.RetryerV2)
}

// Check fetches the credentials, so that missing ones are found before
// anything runs. It returns an error of queue.CodeAccessDenied that says where
// they are looked for. SQS itself is not asked.
func (s *SQS) Check(ctx context.Context) error { return checkCredentials(ctx, s.caller.credentials) }

func (s *SQS) corrupted(c Corruption) {
	if s.caller.events.Corrupted != nil {
		s.caller.events.Corrupted(c)
	}
}

// site finds region and endpoint. The place that a URL or an ARN names comes
// first; an endpoint that the user configured (AWS_ENDPOINT_URL_SQS) replaces
// the address, but not the region.
func (s *SQS) site(ctx context.Context, ref Reference) (site, error) {
	o := s.api.Options()
	base := o.BaseEndpoint
	if base == nil && ref.origin != "" {
		base = &ref.origin
	}
	region := cmp.Or(ref.Region, o.Region)
	if region == "" {
		if base == nil {
			return site{}, queue.Errorf(queue.CodeInvalidParameterValue, "no AWS region for queue %s: "+
				"set AWS_REGION, or a region in the profile, or give the queue by its URL or ARN", ref.Name)
		}
		region = localRegion
	}
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
		return site{}, fmt.Errorf("the SQS endpoint %q is no URL with a host: set AWS_ENDPOINT_URL_SQS to one like "+
			"http://127.0.0.1:9324", endpoint.String())
	}
	if endpoint.Path == "" {
		endpoint.Path = "/"
	}
	return site{queue: ref.Name, endpoint: endpoint, region: region}, nil
}

// at makes an SDK call go to the site.
func (w site) at(o *sqs.Options) {
	base := w.endpoint.String()
	o.Region, o.BaseEndpoint = w.region, &base
}
