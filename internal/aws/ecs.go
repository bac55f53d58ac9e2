package aws

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	scalingtypes "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"tendril/queue"
)

// TaskPlace identifies a running ECS task.
type TaskPlace struct {
	Cluster, ARN, Region string
	// Service may be "" even for a service's task; see [ECS.ServiceOf].
	Service string
}

// ReadTaskPlace identifies this process's task. metadata is the value of ECS_CONTAINER_METADATA_URI_V4.
//
// Source: Amazon ECS Developer Guide, "Amazon ECS task metadata endpoint version 4".
func ReadTaskPlace(ctx context.Context, metadata string) (TaskPlace, error) {
	if !isWebURL(metadata) {
		return TaskPlace{}, fmt.Errorf("ECS_CONTAINER_METADATA_URI_V4 %q is not a URL: Amazon ECS sets it in its "+
			"containers; unset it elsewhere", metadata)
	}

	status, text, err := callAgent(ctx, http.MethodGet, strings.TrimSuffix(metadata, "/")+"/task", nil)
	if err != nil {
		return TaskPlace{}, err
	}
	var answer struct{ Cluster, TaskARN, ServiceName string }
	if err := json.Unmarshal(text, &answer); err != nil || status != http.StatusOK {
		return TaskPlace{}, agentError(queue.CodeUnreachable, fmt.Sprintf("status %d without task metadata", status))
	}

	p := TaskPlace{Cluster: nameInARN(answer.Cluster), ARN: answer.TaskARN, Service: answer.ServiceName}
	if parts := strings.Split(answer.TaskARN, ":"); len(parts) > 3 {
		p.Region = parts[3]
	}
	if p.Cluster == "" || p.Region == "" {
		return TaskPlace{}, agentError(queue.CodeUnreachable, "the task metadata lacks the cluster or the ARN")
	}
	return p, nil
}

func nameInARN(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// ECS is a client for Amazon ECS. It is safe for concurrent use.
type ECS struct {
	service service
	api     client[ecs.Client]

	scaling    service // Application Auto Scaling
	scalingAPI client[applicationautoscaling.Client]
}

// Close closes idle connections.
func (e *ECS) Close() { e.service.close() }

// OpenECS creates a client from the AWS configuration.
func OpenECS(ctx context.Context, opts *Options) (*ECS, error) {
	cfg, service, err := loadConfig(ctx, opts, "Amazon ECS")
	if err != nil {
		return nil, err
	}
	scaling, scalingConfig := service, cfg // an endpoint may be configured for only one of the two
	scaling.rename("Application Auto Scaling")
	err = cmp.Or(service.locate(ctx, &cfg, service.name), scaling.locate(ctx, &scalingConfig, scaling.name))
	if err != nil {
		return nil, err
	}
	return &ECS{service, newClient(ecs.NewFromConfig(cfg)),
		scaling, newClient(applicationautoscaling.NewFromConfig(scalingConfig))}, nil
}

// ServiceOf returns the name of a task's service; "" for a standalone task.
func (e *ECS) ServiceOf(ctx context.Context, cluster, task string) (string, error) {
	out, err := e.api.get().DescribeTasks(ctx, &ecs.DescribeTasksInput{Cluster: &cluster, Tasks: []string{task}})
	if err != nil {
		return "", e.explain(ctx, "DescribeTasks", "task "+nameInARN(task), err)
	}

	if len(out.Tasks) == 0 {
		return "", queue.Errorf(queue.CodeResourceNotFound, "task %s does not exist in the cluster %s at %s", nameInARN(task),
			cluster, e.service.host)
	}
	name, found := strings.CutPrefix(sdk.ToString(out.Tasks[0].Group), "service:")
	if !found {
		return "", nil
	}
	return name, nil
}

// Service returns a service, which need not exist.
func (e *ECS) Service(cluster, name string) *ECSService { return &ECSService{e, cluster, name} }

// ECSService is an ECS service.
type ECSService struct {
	ecs           *ECS
	cluster, name string
}

// Size returns the number of running and of desired tasks.
func (s *ECSService) Size(ctx context.Context) (running, desired int, err error) {
	found, err := s.describe(ctx)
	return int(found.RunningCount), int(found.DesiredCount), err
}

func (s *ECSService) describe(ctx context.Context) (types.Service, error) {
	out, err := s.ecs.api.get().DescribeServices(ctx,
		&ecs.DescribeServicesInput{Cluster: &s.cluster, Services: []string{s.name}})
	if err != nil {
		return types.Service{}, s.ecs.explain(ctx, "DescribeServices", s.text(), err)
	}
	if len(out.Services) == 0 || sdk.ToString(out.Services[0].Status) == "INACTIVE" {
		return types.Service{}, queue.Errorf(queue.CodeResourceNotFound,
			"%s does not exist at %s: check its name, the cluster, the account and the region", s.text(), s.ecs.service.host)
	}
	return out.Services[0], nil
}

// SetSize sets the desired number of tasks; n is clamped to 0 to 5000.
func (s *ECSService) SetSize(ctx context.Context, n int) error {
	_, err := s.ecs.api.get().UpdateService(ctx, &ecs.UpdateServiceInput{Cluster: &s.cluster, Service: &s.name,
		DesiredCount: sdk.Int32(int32(min(max(n, 0), 5000)))})
	return s.ecs.explain(ctx, "UpdateService", s.text(), err)
}

// ScaledBy returns the feature that already controls the number of tasks, or "".
func (s *ECSService) ScaledBy(ctx context.Context) (string, error) {
	found, err := s.describe(ctx)
	switch {
	case err != nil:
		return "", err
	case found.SchedulingStrategy == types.SchedulingStrategyDaemon:
		return "its scheduling strategy DAEMON", nil
	}

	resource := "service/" + s.cluster + "/" + s.name
	targets, err := s.ecs.scalingAPI.get().DescribeScalableTargets(ctx,
		&applicationautoscaling.DescribeScalableTargetsInput{
			ServiceNamespace: scalingtypes.ServiceNamespaceEcs, ResourceIds: []string{resource}})
	if err != nil {
		return "", s.ecs.scaling.explainScaling(ctx, "application-autoscaling", "DescribeScalableTargets", resource, err)
	}
	if len(targets.ScalableTargets) == 0 {
		return "", nil
	}
	return s.ecs.scaling.name, nil
}

func (s *ECSService) text() string { return "service " + s.name + " in the cluster " + s.cluster }

func (e *ECS) explain(ctx context.Context, action, what string, err error) error {
	return e.service.explainScaling(ctx, "ecs", action, what, err)
}
