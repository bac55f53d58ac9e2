package aws

import (
	"context"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

// localRegion signs the calls to a server that is not Amazon's and for which
// nobody named a region. Such servers do not look at it.
const localRegion = "us-east-1"

// loadConfig reads the AWS configuration as every AWS tool does; a region and a
// profile that are not "" count more than what it says. The error names the file or
// the variable at fault.
func loadConfig(ctx context.Context, region, profile string) (sdk.Config, error) {
	var load []func(*config.LoadOptions) error
	if region != "" {
		load = append(load, config.WithRegion(region))
	}
	if profile != "" {
		load = append(load, config.WithSharedConfigProfile(profile))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return cfg, fmt.Errorf("reading the AWS configuration: %w; check AWS_PROFILE and the files in ~/.aws", err)
	}
	return cfg, nil
}

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
