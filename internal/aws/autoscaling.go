package aws

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"tendril/queue"
)

// AutoScaling is a client for Amazon EC2 Auto Scaling. It is safe for concurrent use. The error code for a missing
// group, or an instance outside any group, is queue.CodeResourceNotFound.
type AutoScaling struct {
	service service
	api     client[autoscaling.Client]
}

// Close closes idle connections.
func (a *AutoScaling) Close() { a.service.close() }

// OpenAutoScaling creates a client from the AWS configuration. The default region is the instance's region.
func OpenAutoScaling(ctx context.Context, opts *Options) (*AutoScaling, error) {
	cfg, service, err := loadConfig(ctx, opts, "Auto Scaling")
	if err != nil {
		return nil, err
	}

	if cfg.Region == "" && endpointOf(ctx, &cfg, service.id) == nil {
		instance, err := NewInstance("")
		if err != nil {
			return nil, err
		}
		if cfg.Region, err = instance.Region(ctx); err != nil {
			return nil, queue.Errorf(queue.CodeInvalidParameterValue,
				"no AWS region for Auto Scaling: set AWS_REGION, or set a region in the profile (%w)", err)
		}
	}

	if err := service.locate(ctx, &cfg, service.name); err != nil {
		return nil, err
	}
	return &AutoScaling{service, newClient(autoscaling.NewFromConfig(cfg))}, nil
}

// GroupOf returns the name of the instance's Auto Scaling group.
func (a *AutoScaling) GroupOf(ctx context.Context, instance string) (string, error) {
	out, err := a.api.get().DescribeAutoScalingInstances(ctx,
		&autoscaling.DescribeAutoScalingInstancesInput{InstanceIds: []string{instance}})
	if err != nil {
		return "", a.explain(ctx, "DescribeAutoScalingInstances", "instance "+instance, err)
	}
	if len(out.AutoScalingInstances) == 0 {
		return "", queue.Errorf(queue.CodeResourceNotFound,
			"instance %s is not in any Auto Scaling group known to %s: name the group, or check the region", instance, a.service.host)
	}
	return sdk.ToString(out.AutoScalingInstances[0].AutoScalingGroupName), nil
}

// Group returns a group, which need not exist.
func (a *AutoScaling) Group(name string) *Group { return &Group{scaling: a, name: name} }

// Group is an Auto Scaling group.
type Group struct {
	scaling *AutoScaling
	name    string
}

// GroupState is a group's size and instances.
type GroupState struct {
	Min, Max, Desired int
	Instances         []GroupInstance
	// ManagedBy is the service or program that manages the group, according to its tags, or "".
	ManagedBy string
}

// InService returns the number of healthy instances in service.
func (s GroupState) InService() int {
	n := 0
	for _, i := range s.Instances {
		if i.State == string(types.LifecycleStateInService) && i.Healthy {
			n++
		}
	}
	return n
}

// GroupInstance is an instance of a [Group].
type GroupInstance struct {
	ID string
	// State is the lifecycle state, such as "InService" or "Terminating:Wait".
	State              string
	Healthy, Protected bool
}

// Name returns the group's name.
func (g *Group) Name() string { return g.name }

// Describe returns the group's current state.
func (g *Group) Describe(ctx context.Context) (GroupState, error) {
	out, err := g.scaling.api.get().DescribeAutoScalingGroups(ctx,
		&autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{g.name}})
	if err != nil {
		return GroupState{}, g.explain(ctx, "DescribeAutoScalingGroups", err)
	}

	if len(out.AutoScalingGroups) == 0 {
		return GroupState{}, queue.Errorf(queue.CodeResourceNotFound, "Auto Scaling group %s does not exist at %s: "+
			"check its name, the account and the region", g.name, g.scaling.service.host)
	}

	found := &out.AutoScalingGroups[0]
	s := GroupState{Min: int(sdk.ToInt32(found.MinSize)), Max: int(sdk.ToInt32(found.MaxSize)),
		Desired: int(sdk.ToInt32(found.DesiredCapacity)), ManagedBy: managerOf(found.Tags)}
	for _, one := range found.Instances {
		s.Instances = append(s.Instances, GroupInstance{
			ID: sdk.ToString(one.InstanceId), State: string(one.LifecycleState),
			Healthy: sdk.ToString(one.HealthStatus) == "Healthy", Protected: sdk.ToBool(one.ProtectedFromScaleIn),
		})
	}

	return s, nil
}

// Sources: Amazon EKS User Guide, "Simplify node lifecycle with managed node groups"; Amazon ECS Developer Guide,
// "Amazon ECS capacity providers for EC2 workloads"; Kubernetes Cluster Autoscaler, AWS README; Elastic Beanstalk
// Developer Guide, "Tagging Elastic Beanstalk application resources".
func managerOf(tags []types.TagDescription) string {
	for _, tag := range tags {
		for prefix, manager := range map[string]string{"elasticbeanstalk:": "Elastic Beanstalk", "eks:": "Amazon EKS",
			"k8s.io/": "Kubernetes", "kubernetes.io/": "Kubernetes", "AmazonECSManaged": "Amazon ECS"} {
			if strings.HasPrefix(sdk.ToString(tag.Key), prefix) {
				return manager
			}
		}
	}
	return ""
}

// ScaledBy returns the group's manager or one of its enabled scaling policies, or "" if it has neither.
func (g *Group) ScaledBy(ctx context.Context) (string, error) {
	state, err := g.Describe(ctx)
	if err != nil || state.ManagedBy != "" {
		return state.ManagedBy, err
	}
	out, err := g.scaling.api.get().DescribePolicies(ctx,
		&autoscaling.DescribePoliciesInput{AutoScalingGroupName: &g.name})
	if err != nil {
		return "", g.explain(ctx, "DescribePolicies", err)
	}

	for _, p := range out.ScalingPolicies {
		if p.Enabled == nil || *p.Enabled {
			return "its scaling policy " + sdk.ToString(p.PolicyName), nil
		}
	}
	return "", nil
}

// SetSize sets the desired capacity, ignoring the cooldown. Sizes outside the group's limits are an error.
func (g *Group) SetSize(ctx context.Context, n int) error {
	_, err := g.scaling.api.get().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: &g.name, DesiredCapacity: sdk.Int32(int32(min(max(n, 0), math.MaxInt32))),
		HonorCooldown: sdk.Bool(false),
	})
	return g.explain(ctx, "SetDesiredCapacity", err)
}

// Member returns an instance of the group.
func (g *Group) Member(instance string, hooks TerminationHooks) *Member {
	return &Member{group: g, id: instance, hooks: hooks}
}

// Member is an instance of a group.
type Member struct {
	group *Group
	id    string
	hooks TerminationHooks
}

// Protect enables or disables the instance's scale-in protection.
func (m *Member) Protect(ctx context.Context, on bool) error {
	_, err := m.group.scaling.api.get().SetInstanceProtection(ctx, &autoscaling.SetInstanceProtectionInput{
		AutoScalingGroupName: &m.group.name, InstanceIds: []string{m.id}, ProtectedFromScaleIn: &on,
	})
	return m.group.explain(ctx, "SetInstanceProtection", err)
}

// Heartbeat restarts the timeouts of all termination hooks.
func (m *Member) Heartbeat(ctx context.Context) error {
	return m.forEachHook(ctx, m.hooks.All, "RecordLifecycleActionHeartbeat", func(hook string) error {
		_, err := m.group.scaling.api.get().RecordLifecycleActionHeartbeat(ctx, &autoscaling.RecordLifecycleActionHeartbeatInput{
			AutoScalingGroupName: &m.group.name, InstanceId: &m.id, LifecycleHookName: &hook,
		})
		return err
	})
}

// Complete completes the lifecycle actions of the member's own hooks. The group terminates the instance once the
// actions of all hooks are complete.
func (m *Member) Complete(ctx context.Context) error {
	return m.forEachHook(ctx, m.hooks.Own, "CompleteLifecycleAction", func(hook string) error {
		_, err := m.group.scaling.api.get().CompleteLifecycleAction(ctx, &autoscaling.CompleteLifecycleActionInput{
			AutoScalingGroupName: &m.group.name, InstanceId: &m.id, LifecycleHookName: &hook,
			LifecycleActionResult: sdk.String("CONTINUE"),
		})
		return err
	})
}

// forEachHook ignores hooks without an active lifecycle action, such as completed ones.
func (m *Member) forEachHook(ctx context.Context, hooks []string, action string, call func(hook string) error) error {
	var failed error
	for _, hook := range hooks {
		err := m.group.explain(ctx, action, call(hook))
		if !errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// TerminationHooks are the lifecycle hooks that delay the termination of a group's instances.
type TerminationHooks struct {
	// All must receive heartbeats while the instance needs time: if a hook times out with the result ABANDON, the other
	// hooks end too.
	All []string
	// Own are completed by [Member.Complete]. The other hooks have a notification target, which completes them.
	Own []string
}

// TerminationHooks returns the group's termination hooks. If all have a notification target, all count as own.
func (g *Group) TerminationHooks(ctx context.Context) (TerminationHooks, error) {
	out, err := g.scaling.api.get().DescribeLifecycleHooks(ctx,
		&autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: &g.name})
	if err != nil {
		return TerminationHooks{}, g.explain(ctx, "DescribeLifecycleHooks", err)
	}

	var hooks TerminationHooks
	for _, h := range out.LifecycleHooks {
		if sdk.ToString(h.LifecycleTransition) != "autoscaling:EC2_INSTANCE_TERMINATING" {
			continue
		}
		hooks.All = append(hooks.All, sdk.ToString(h.LifecycleHookName))
		if sdk.ToString(h.NotificationTargetARN) == "" {
			hooks.Own = append(hooks.Own, sdk.ToString(h.LifecycleHookName))
		}
	}

	if len(hooks.Own) == 0 {
		hooks.Own = hooks.All
	}
	return hooks, nil
}

func (g *Group) explain(ctx context.Context, action string, err error) error {
	return g.scaling.explain(ctx, action, "Auto Scaling group "+g.name, err)
}

func (a *AutoScaling) explain(ctx context.Context, action, what string, err error) error {
	return a.service.explainScaling(ctx, "autoscaling", action, what, err)
}

func (s *service) explainScaling(ctx context.Context, namespace, action, what string, err error) error {
	return s.explain(ctx, fmt.Sprintf("%s (%s)", action, what), err, func(refused *refusal) (code, message string) {
		code = scalingCode(refused)
		message = fmt.Sprintf("%s: %s", s.host, refused)
		switch code {
		case queue.CodeResourceNotFound:
			message += "; check the names, the account and the region"
		case queue.CodeUnreachable, queue.CodeRequestThrottled:
			message += "; retrying"
		case queue.CodeAccessDenied:
			message = fmt.Sprintf("%s denied access: %s; allow these credentials %s:%s", s.host, refused, namespace,
				action)
		}
		return code, message
	})
}

// EC2 Auto Scaling reports missing resources as ValidationError.
func scalingCode(refused *refusal) string {
	switch refused.shape {
	case "ValidationError":
		message := strings.ToLower(refused.message)
		if strings.Contains(message, "not found") || strings.Contains(message, "does not exist") ||
			strings.Contains(message, "no active lifecycle action") {
			return queue.CodeResourceNotFound
		}
		return queue.CodeInvalidParameterValue
	case "ServiceNotFoundException", "ClusterNotFoundException", "ServiceNotActiveException":
		return queue.CodeResourceNotFound
	case "ResourceContention", "ScalingActivityInProgress", "LimitExceeded":
		return queue.CodeRequestThrottled
	}
	return refused.queueCode()
}
