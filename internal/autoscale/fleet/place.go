package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"tendril/internal/aws"
	"tendril/queue"
)

const (
	// Source: Amazon ECS Developer Guide, "Amazon ECS task metadata endpoint version 4".
	metadataVariable = "ECS_CONTAINER_METADATA_URI_V4"
	metadataTimeout  = 2 * time.Second
	// Kubernetes scales its nodes' group itself. Source: Kubernetes documentation, "Service", "Discovering services".
	kubernetesVariable = "KUBERNETES_SERVICE_HOST"
)

// Place is the group or service of this process, or neither.
type Place struct {
	Group            string
	Cluster, Service string
	ScaledBy         string
}

// Alone reports whether this process is in neither a group nor a service.
func (p Place) Alone() bool { return p.Group == "" && p.Service == "" }

// Find returns this process's group or service. After an error, callers must not scale anything, because the process
// may belong to a group.
func Find(ctx context.Context, region string, logSDK aws.LogFunc) (Place, error) {
	switch {
	case os.Getenv(metadataVariable) != "":
		return findService(ctx, &aws.Options{Region: region, Log: logSDK})
	case os.Getenv(kubernetesVariable) != "" || !aws.MayBeInstance():
		return Place{}, nil
	}
	return findGroup(ctx, &aws.Options{Region: region, Log: logSDK})
}

func findGroup(ctx context.Context, connection *aws.Options) (Place, error) {
	machine, err := aws.NewInstance("")
	if err != nil {
		return Place{}, err
	}

	asking, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	id, err := machine.InstanceID(asking)
	if err != nil {
		return Place{}, nil // not on EC2, or in a container without access to the metadata service
	}

	if os.Getenv("TENDRIL_INSTANCE_ID") == "" { // otherwise, there may be no metadata service
		if isMember, err := machine.InGroup(asking); err != nil || !isMember {
			return Place{}, err
		}
	}

	service, err := aws.OpenAutoScaling(ctx, connection)
	if err != nil {
		return Place{}, err
	}
	defer service.Close()

	group, err := service.GroupOf(ctx, id)
	if errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
		return Place{}, nil
	}
	if err != nil {
		return Place{}, err
	}
	scaledBy, err := service.Group(group).ScaledBy(ctx)
	return Place{Group: group, ScaledBy: scaledBy}, err
}

func findService(ctx context.Context, connection *aws.Options) (p Place, err error) {
	api, task, err := openService(ctx, connection)
	if err != nil || task.Service == "" {
		return p, err
	}
	defer api.Close()
	p.Cluster, p.Service = task.Cluster, task.Service
	p.ScaledBy, err = api.Service(p.Cluster, p.Service).ScaledBy(ctx)
	return p, err
}

func openService(ctx context.Context, connection *aws.Options) (*aws.ECS, aws.TaskPlace, error) {
	asking, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	task, err := aws.ReadTaskPlace(asking, os.Getenv(metadataVariable))
	if err != nil {
		return nil, task, err
	}

	here := *connection
	here.Region = cmp.Or(here.Region, task.Region)
	api, err := aws.OpenECS(ctx, &here)
	if err != nil {
		return nil, task, err
	}

	if task.Service == "" {
		task.Service, err = api.ServiceOf(ctx, task.Cluster, task.ARN)
	}
	if err != nil || task.Service == "" {
		api.Close()
		return nil, task, err
	}
	return api, task, nil
}

// String returns p in the format of the option scale-target.
func (p Place) String() string {
	switch {
	case p.Group != "":
		return "asg:" + p.Group
	case p.Service != "":
		return fmt.Sprintf("ecs:%s/%s", p.Cluster, p.Service)
	}
	return "processes"
}
