package aws

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
)

type serviceScaling struct {
	service service
	api     client[applicationautoscaling.Client]
}

func newServiceScaling(ctx context.Context, cfg sdk.Config, shared service) (serviceScaling, error) {
	shared.rename("Application Auto Scaling")
	err := shared.locate(ctx, &cfg, shared.name)
	return serviceScaling{shared, newClient(applicationautoscaling.NewFromConfig(cfg))}, err
}

func (s *serviceScaling) isRegistered(ctx context.Context, cluster, name string) (bool, error) {
	resource := "service/" + cluster + "/" + name
	out, err := s.api.get().DescribeScalableTargets(ctx, &applicationautoscaling.DescribeScalableTargetsInput{
		ServiceNamespace: types.ServiceNamespaceEcs, ResourceIds: []string{resource}})
	if err != nil {
		return false, s.service.explainScaling(ctx, "application-autoscaling:DescribeScalableTargets", resource, err)
	}
	return len(out.ScalableTargets) > 0, nil
}
