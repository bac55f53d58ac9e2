package aws

import (
	"context"
	"fmt"
	"log/slog"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// localRegion signs the calls to a server that is not Amazon's and for which
// nobody named a region. Such servers do not look at it.
const localRegion = "us-east-1"

// LogFunc takes what the SDK has to say besides the errors that it returns. It is
// called from several goroutines at once.
type LogFunc func(level slog.Level, text string)

// Logf is the method by which the SDK's clients log.
func (f LogFunc) Logf(kind logging.Classification, format string, values ...any) {
	level := slog.LevelDebug
	if kind == logging.Warn {
		level = slog.LevelWarn
	}
	f(level, firstLine(fmt.Sprintf(format, values...)))
}

// loadConfig reads the AWS configuration as every AWS tool does; a region and a
// profile that are not "" count more than what it says. What the SDK logs goes to log,
// which may be nil. The error names the file or the variable at fault.
func loadConfig(ctx context.Context, region, profile string, log LogFunc) (sdk.Config, error) {
	load := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if log != nil {
		load[0] = config.WithLogger(log)
	}
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
