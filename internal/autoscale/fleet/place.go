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
	// metadataVariable is where Amazon ECS tells its containers of their task.
	//
	// Source: Amazon ECS Developer Guide, "Amazon ECS task metadata endpoint version 4".
	metadataVariable = "ECS_CONTAINER_METADATA_URI_V4"
	// metadataTimeout bounds a question to the metadata of this machine or task, which are local.
	metadataTimeout = 2 * time.Second
	// kubernetesVariable is set in every container of a pod. The group of its node is the
	// business of the cluster. Source: Kubernetes documentation, "Service", "Discovering services".
	kubernetesVariable = "KUBERNETES_SERVICE_HOST"
)

// Place is what has instances of which this process is one. The zero value is a process that
// runs alone.
type Place struct {
	// Group is the name of an Auto Scaling group; "" for none.
	Group string
	// Cluster and Service are the names of a service of Amazon ECS; "" for none.
	Cluster, Service string
	// ScaledBy is what sets the number of instances already; "" for nothing.
	ScaledBy string
}

// Alone reports whether this process is not one of several instances.
func (p Place) Alone() bool { return p.Group == "" && p.Service == "" }

// Find finds out which Auto Scaling group or service this process is in. The error says that it
// is in one, or may be, and that not everything is known about it: nothing should be scaled then.
func Find(ctx context.Context, region string, logSDK aws.LogFunc) (Place, error) {
	switch {
	case os.Getenv(metadataVariable) != "":
		return findService(ctx, &aws.Options{Region: region, Log: logSDK})
	case os.Getenv(kubernetesVariable) != "" || !aws.MayBeInstance():
		return Place{}, nil
	}
	return findGroup(ctx, &aws.Options{Region: region, Log: logSDK})
}

func findGroup(ctx context.Context, connection *aws.Options) (p Place, err error) {
	machine, err := aws.NewInstance("")
	if err != nil {
		return p, err
	}

	asking, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	id, err := machine.InstanceID(asking)
	if err != nil {
		return p, nil // nobody answers: no instance, or a container that may not ask
	}

	if named := os.Getenv("TENDRIL_INSTANCE_ID"); named == "" {
		if is, err := machine.InGroup(asking); err != nil || !is {
			return p, err
		}
	}

	service, err := aws.OpenAutoScaling(ctx, connection)
	if err != nil {
		return p, err
	}
	defer service.Close()

	if p.Group, err = service.GroupOf(ctx, id); err != nil {
		if errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
			err = nil
		}
		return p, err
	}
	p.ScaledBy, err = service.Group(p.Group).ScaledBy(ctx)
	return p, err
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

// openService asks which service this task belongs to, and opens the connection to it; there is
// none for a task without a service.
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

// String names the place as the option scale-target does.
func (p Place) String() string {
	switch {
	case p.Group != "":
		return "asg:" + p.Group
	case p.Service != "":
		return fmt.Sprintf("ecs:%s/%s", p.Cluster, p.Service)
	}
	return "processes"
}
