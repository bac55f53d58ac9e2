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

func newServiceScaling(cfg sdk.Config, shared service, endpoint string) serviceScaling {
	shared.name, shared.variable = "Application Auto Scaling", "AWS_ENDPOINT_URL_APPLICATION_AUTO_SCALING"
	api := applicationautoscaling.NewFromConfig(cfg, func(o *applicationautoscaling.Options) {
		chooseEndpoint(endpoint, &o.BaseEndpoint, &o.Region)
	})
	return serviceScaling{shared, newClient(api)}
}

// A registered service's number of tasks is controlled by Application Auto Scaling.
func (s *serviceScaling) isRegistered(ctx context.Context, cluster, name string) (bool, error) {
	resource := "service/" + cluster + "/" + name
	out, err := s.api.get().DescribeScalableTargets(ctx, &applicationautoscaling.DescribeScalableTargetsInput{
		ServiceNamespace: types.ServiceNamespaceEcs, ResourceIds: []string{resource}})
	if err != nil {
		return false, s.service.explain(ctx, "DescribeScalableTargets ("+resource+")", err,
			s.service.adviseScaling("application-autoscaling:DescribeScalableTargets"))
	}
	return len(out.ScalableTargets) > 0, nil
}
