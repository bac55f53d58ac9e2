package aws

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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

// metadataTimeout is short, because the metadata service is local, and there may be none outside EC2.
const metadataTimeout = 2 * time.Second

// Instance is the EC2 instance that runs this process. It is safe for concurrent use. Outside EC2, reading the metadata
// fails within four seconds.
type Instance struct {
	api *imds.Client
}

// NewInstance returns this process's instance. endpoint is the metadata service's URL; "" means
// AWS_EC2_METADATA_SERVICE_ENDPOINT or the standard address.
func NewInstance(endpoint string) (*Instance, error) {
	endpoint = cmp.Or(endpoint, os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"))
	if endpoint != "" && !isWebURL(endpoint) {
		return nil, fmt.Errorf("the metadata service %q is not a URL: use one such as http://169.254.169.254 in "+
			"AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint)
	}
	return &Instance{api: imds.New(imds.Options{
		Endpoint: endpoint,
		// Requests are rare, so idle connections are not kept.
		HTTPClient: &http.Client{Timeout: metadataTimeout, Transport: &http.Transport{DisableKeepAlives: true}},
		Retryer:    sdk.NopRetryer{},
	})}, nil
}

// InstanceID returns TENDRIL_INSTANCE_ID or, if unset, the ID from the instance metadata.
func (i *Instance) InstanceID(ctx context.Context) (string, error) {
	if id := os.Getenv("TENDRIL_INSTANCE_ID"); id != "" {
		return id, nil
	}
	id, err := i.read(ctx, "instance-id")
	if err != nil {
		return "", fmt.Errorf("%w; set TENDRIL_INSTANCE_ID if there is no metadata service", err)
	}
	return id, nil
}

func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// Region returns the instance's region.
func (i *Instance) Region(ctx context.Context) (string, error) {
	return i.read(ctx, "placement/region")
}

// InGroup reports whether the instance is in an Auto Scaling group: only then, its metadata has a target lifecycle
// state.
//
// Source: Amazon EC2 Auto Scaling User Guide, "Retrieve the target lifecycle state through instance metadata".
func (i *Instance) InGroup(ctx context.Context) (bool, error) {
	state, err := i.targetState(ctx)
	return state != "", err
}

// Leaving reports whether the instance's group is terminating it.
func (i *Instance) Leaving(ctx context.Context) (bool, error) {
	state, err := i.targetState(ctx)
	return state == "Terminated", err
}

func (i *Instance) targetState(ctx context.Context) (string, error) {
	state, err := i.read(ctx, "autoscaling/target-lifecycle-state")
	var refused *smithyhttp.ResponseError
	if errors.As(err, &refused) && refused.HTTPStatusCode() == http.StatusNotFound {
		return "", nil
	}
	return state, err
}

// MayBeInstance reports whether this may be an EC2 instance, without waiting for the metadata service.
//
// Source: Amazon EC2 User Guide, "Detect whether a host is an EC2 instance".
func MayBeInstance() bool {
	if os.Getenv("TENDRIL_INSTANCE_ID") != "" {
		return true
	}
	if strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		return false
	}
	if os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT") != "" {
		return true
	}

	for path, prefix := range map[string]string{"/sys/devices/virtual/dmi/id/board_asset_tag": "i-",
		"/sys/devices/virtual/dmi/id/sys_vendor": "amazon ec2", "/sys/hypervisor/uuid": "ec2"} {
		text, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(strings.ToLower(strings.TrimSpace(string(text))), prefix) {
			return true
		}
	}

	return false
}

func (i *Instance) read(ctx context.Context, path string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, 2*metadataTimeout)
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
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return &queue.Error{Code: queue.CodeUnreachable, Err: err, Message: fmt.Sprintf(
		"reading %s from the instance metadata failed: %s; this works only on an EC2 instance", path,
		firstLine(unwrapSDK(err).Error()))}
}

// TaskProtection is how long an ECS task is protected unless renewed. ECS allows 1 minute to 48 hours.
const TaskProtection = time.Hour

const maxAgentAnswer = 64 << 10

// ECSTask is the ECS task of this process. It is safe for concurrent use.
type ECSTask struct {
	state string // the protection endpoint's URL
}

// NewECSTask returns this process's task. agent is the value of ECS_AGENT_URI.
func NewECSTask(agent string) (*ECSTask, error) {
	if !isWebURL(agent) {
		return nil, fmt.Errorf("ECS_AGENT_URI %q is not a URL: Amazon ECS sets it in its containers; unset it "+
			"elsewhere", agent)
	}
	return &ECSTask{state: strings.TrimSuffix(agent, "/") + "/task-protection/v1/state"}, nil
}

// Protect protects the task from scale-in and deployments for [TaskProtection], or ends the protection. The task's role
// must allow ecs:UpdateTaskProtection.
//
// Source: Amazon ECS Developer Guide, "Amazon ECS task scale-in protection endpoint".
func (t *ECSTask) Protect(ctx context.Context, on bool) error {
	wanted := struct {
		ProtectionEnabled bool
		ExpiresInMinutes  int `json:",omitempty"`
	}{ProtectionEnabled: on}
	if on {
		wanted.ExpiresInMinutes = int(TaskProtection / time.Minute)
	}

	body, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	status, text, err := callAgent(ctx, http.MethodPut, t.state, body)
	if err != nil {
		return err
	}
	return checkProtection(status, text, on)
}

var agentClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func callAgent(ctx context.Context, method, url string, body []byte) (status int, text []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")

	resp, err := agentClient.Do(req)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return 0, nil, ctx.Err()
		}
		return 0, nil, agentError(queue.CodeUnreachable, "no response: "+firstLine(err.Error()))
	}
	defer resp.Body.Close()

	text, err = io.ReadAll(io.LimitReader(resp.Body, maxAgentAnswer))
	if err != nil {
		err = agentError(queue.CodeUnreachable, "the response was cut off")
	}
	return resp.StatusCode, text, err
}

// checkProtection also reads responses with status 200, which may report a failure.
func checkProtection(status int, text []byte, on bool) error {
	var answer struct {
		Protection *struct{ ProtectionEnabled bool }
		Failure    *struct{ Reason, Detail string }
		Error      *struct{ Code, Message string }
	}
	unread := json.Unmarshal(text, &answer)
	switch {
	case answer.Failure != nil:
		return agentError(queue.CodeInvalidParameterValue,
			strings.TrimSuffix(answer.Failure.Reason+": "+answer.Failure.Detail, ": "))
	case answer.Error != nil && strings.HasPrefix(answer.Error.Code, "AccessDenied"):
		return agentError(queue.CodeAccessDenied, "the task's role needs ecs:UpdateTaskProtection: "+answer.Error.Message)
	case answer.Error != nil:
		return agentError(queue.CodeUnreachable, strings.TrimSuffix(answer.Error.Code+": "+answer.Error.Message, ": "))
	case status != http.StatusOK || unread != nil || answer.Protection == nil || answer.Protection.ProtectionEnabled != on:
		return agentError(queue.CodeUnreachable,
			fmt.Sprintf("status %d, but the response does not confirm the protection", status))
	}

	return nil
}

func agentError(code, text string) error {
	return &queue.Error{Code: code, Message: "the container agent of Amazon ECS: " + text}
}
