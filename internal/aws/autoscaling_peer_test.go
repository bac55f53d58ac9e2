package aws

import (
	"context"
	"errors"
	"slices"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

func TestAgainstAForeignAutoScaling(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	ctx := context.Background()
	a, err := OpenAutoScaling(ctx, &Options{Region: "eu-west-1", Endpoint: testpeer.Moto(t, "autoscaling")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	makeGroup(t, a, "workers")
	g := a.Group("workers")

	state := describe(t, g)
	if state.Min != 1 || state.Max != 5 || state.Desired != 2 || len(state.Instances) != 2 || state.InService() != 2 {
		t.Fatalf("the group is %+v", state)
	}
	if err := g.SetSize(ctx, 4); err != nil {
		t.Fatal(err)
	}
	if err := g.SetSize(ctx, 4); err != nil {
		t.Fatal(err)
	}
	if s := describe(t, g); s.InService() != 4 || s.Desired != 4 {
		t.Errorf("the size is %d of %d", s.InService(), s.Desired)
	}

	id := describe(t, g).Instances[0].ID
	if name, err := a.GroupOf(ctx, id); name != "workers" || err != nil {
		t.Errorf("instance %s is in %q, %v", id, name, err)
	}
	for _, on := range []bool{true, false} {
		if err := g.Member(id, TerminationHooks{}).Protect(ctx, on); err != nil {
			t.Fatal(err)
		}
		for _, i := range describe(t, g).Instances {
			if i.Protected != (on && i.ID == id) {
				t.Errorf("protection %v of %s: %+v", on, id, i)
			}
		}
	}

	if hooks, err := g.TerminationHooks(ctx); len(hooks.All) > 0 || err != nil {
		t.Errorf("no hook is %q, %v", hooks, err)
	}
	if _, err := a.api.get().PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{
		AutoScalingGroupName: sdk.String("workers"), LifecycleHookName: sdk.String("drain"),
		LifecycleTransition: sdk.String("autoscaling:EC2_INSTANCE_TERMINATING"), HeartbeatTimeout: sdk.Int32(300),
	}); err != nil {
		t.Fatal(err)
	}
	if hooks, err := g.TerminationHooks(ctx); !slices.Equal(hooks.All, []string{"drain"}) || err != nil {
		t.Errorf("the hook is %q, %v", hooks, err)
	}

	_, missing := a.Group("others").Describe(ctx)
	_, foreign := a.GroupOf(ctx, "i-00000000000000000")
	for _, err := range []error{missing, foreign} {
		if !errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound}) {
			t.Errorf("the error is %v", err)
		}
	}
}

func describe(t *testing.T, g *Group) GroupState {
	t.Helper()
	state, err := g.Describe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func makeGroup(t *testing.T, a *AutoScaling, name string) {
	t.Helper()
	ctx := context.Background()
	if _, err := a.api.get().CreateLaunchConfiguration(ctx, &autoscaling.CreateLaunchConfigurationInput{
		LaunchConfigurationName: sdk.String("one"), ImageId: sdk.String("ami-12c6146b"), InstanceType: sdk.String("t2.micro"),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.api.get().CreateAutoScalingGroup(ctx, &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: &name, LaunchConfigurationName: sdk.String("one"), AvailabilityZones: []string{"eu-west-1a"},
		MinSize: sdk.Int32(1), MaxSize: sdk.Int32(5), DesiredCapacity: sdk.Int32(2),
	}); err != nil {
		t.Fatal(err)
	}
}
