package aws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"tendril/queue"
)

// metadataPatience bounds each question to the metadata service: it is on the
// same machine, and elsewhere nobody answers at all.
const metadataPatience = 2 * time.Second

// Instance is the EC2 instance that this process runs on, as its metadata
// service tells of it. All methods are safe for concurrent use. Outside of EC2
// each of them fails within a few seconds.
type Instance struct {
	api *imds.Client
}

// NewInstance returns this instance. endpoint is the URL of the metadata
// service; "" means AWS_EC2_METADATA_SERVICE_ENDPOINT, else the address that it
// has on every instance. AWS_EC2_METADATA_DISABLED=true is honoured.
func NewInstance(endpoint string) (*Instance, error) {
	if endpoint == "" {
		endpoint = os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT")
	}
	if endpoint != "" {
		if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("the metadata service %q is no URL: write one such as http://169.254.169.254 into "+
				"AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint)
		}
	}
	return &Instance{api: imds.New(imds.Options{
		Endpoint: endpoint,
		// Its own transport without kept connections, so that nothing is left open.
		HTTPClient: &http.Client{Timeout: metadataPatience, Transport: &http.Transport{DisableKeepAlives: true}},
		Retryer:    sdk.NopRetryer{},
	})}, nil
}

// ID returns the instance's id: what TENDRIL_INSTANCE_ID says, else what the
// metadata say.
func (i *Instance) ID(ctx context.Context) (string, error) {
	if id := os.Getenv("TENDRIL_INSTANCE_ID"); id != "" {
		return id, nil
	}
	id, err := i.read(ctx, "instance-id")
	if err != nil {
		return "", fmt.Errorf("%w; set TENDRIL_INSTANCE_ID where there are no metadata", err)
	}
	return id, nil
}

// Region returns the region that the instance is in.
func (i *Instance) Region(ctx context.Context) (string, error) {
	return i.read(ctx, "placement/region")
}

// Leaving tells whether the instance's group has chosen it to be terminated. An
// instance without a group never is.
func (i *Instance) Leaving(ctx context.Context) (bool, error) {
	state, err := i.read(ctx, "autoscaling/target-lifecycle-state")
	var refused *smithyhttp.ResponseError
	if errors.As(err, &refused) && refused.HTTPStatusCode() == http.StatusNotFound {
		return false, nil
	}
	return state == "Terminated", err
}

// read asks for one of the metadata.
func (i *Instance) read(ctx context.Context, path string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, 2*metadataPatience)
	defer cancel()
	out, err := i.api.GetMetadata(limited, &imds.GetMetadataInput{Path: path})
	if err != nil {
		return "", i.explain(ctx, path, err)
	}
	defer out.Content.Close()
	text, err := io.ReadAll(io.LimitReader(out.Content, 4096))
	if err != nil {
		return "", i.explain(ctx, path, err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (i *Instance) explain(ctx context.Context, path string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	return &queue.Error{Code: queue.CodeUnreachable, Err: err, Message: fmt.Sprintf(
		"the instance's metadata did not tell %s: %s; this works on an EC2 instance only", path,
		firstLine(plain(err).Error()))}
}
