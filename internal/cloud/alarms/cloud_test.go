package alarms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/aws"
	"tendril/internal/testing/testpeer"
)

type fakeCloud struct {
	alarms     map[string]aws.Alarm
	tags       map[string]map[string]string
	dashboards map[string]string
	puts       int
	err        error // error of every change
}

func newFakeCloud() *fakeCloud {
	return &fakeCloud{alarms: map[string]aws.Alarm{}, tags: map[string]map[string]string{},
		dashboards: map[string]string{}}
}

func (f *fakeCloud) Alarms(_ context.Context, prefix string) (found []aws.AlarmState, _ error) {
	for name, a := range f.alarms {
		if strings.HasPrefix(name, prefix) {
			found = append(found, aws.AlarmState{Alarm: normal(&a), ARN: name})
		}
	}
	slices.SortFunc(found, func(a, b aws.AlarmState) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

func (f *fakeCloud) AlarmTags(_ context.Context, arn string) (map[string]string, error) {
	return f.tags[arn], nil
}

func (f *fakeCloud) PutAlarm(_ context.Context, a *aws.Alarm, tags map[string]string) error {
	if f.err != nil {
		return f.err
	}
	f.puts++
	if _, exists := f.alarms[a.Name]; !exists {
		f.tags[a.Name] = tags
	}
	f.alarms[a.Name] = *a
	return nil
}

func (f *fakeCloud) DeleteAlarms(_ context.Context, names []string) error {
	for _, name := range names {
		delete(f.alarms, name)
	}
	return f.err
}

func (f *fakeCloud) Dashboard(_ context.Context, name string) (string, error) {
	return f.dashboards[name], nil
}

func (f *fakeCloud) PutDashboard(_ context.Context, name, body string) error {
	f.puts++
	f.dashboards[name] = body
	return f.err
}

func (f *fakeCloud) DeleteDashboard(_ context.Context, name string) error {
	delete(f.dashboards, name)
	return f.err
}

// apply compares want with the existing resources, applies the steps and returns them.
func apply(t *testing.T, cloud Cloud, want *Set, prune bool) (text []string) {
	t.Helper()
	found, err := Find(t.Context(), cloud, want.Environment)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := Compare(want, found, prune)
	if err != nil {
		t.Fatal(err)
	}
	if err := Apply(t.Context(), cloud, want.Environment, steps); err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		line := s.Action + " " + strings.TrimPrefix(s.Name, "tendril/shop/")
		if s.Action != Create && len(s.Changes) > 0 {
			line += fmt.Sprint(" ", s.Changes)
		}
		text = append(text, line)
	}
	return text
}

// small returns a set of two alarms and a dashboard.
func small(threshold float64) *Set {
	s := shop()
	s.Queues, s.Publishes = s.Queues[:1], false
	set := Describe(s, &File{changes: map[string]change{queueAge: {Threshold: &threshold}}})
	return &set
}

func changesOnly(t *testing.T, cloud Cloud) {
	t.Helper()
	for _, step := range []struct {
		set   *Set
		prune bool
		want  []string
	}{
		{small(600), false, []string{"create dead-letters/orders", "create queue-age/orders", "create tendril-shop"}},
		{small(600), true, []string{"keep dead-letters/orders", "keep queue-age/orders", "keep tendril-shop"}},
		{small(300), false, []string{"keep dead-letters/orders", "change queue-age/orders [threshold 600 -> 300]",
			"keep tendril-shop"}},
		{&Set{Environment: "shop", Alarms: small(300).Alarms[:1]}, false, []string{"keep dead-letters/orders",
			"keep queue-age/orders [no longer described; --prune deletes it]",
			"keep tendril-shop [no longer described; --prune deletes it]"}},
		{&Set{Environment: "shop", Alarms: small(300).Alarms[:1]}, true, []string{"keep dead-letters/orders",
			"delete queue-age/orders", "delete tendril-shop"}},
		{&Set{Environment: "shop", Alarms: small(300).Alarms[:1]}, true, []string{"keep dead-letters/orders"}},
	} {
		if diff := cmp.Diff(step.want, apply(t, cloud, step.set, step.prune)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestApplyingChangesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	cloud := newFakeCloud()
	changesOnly(t, cloud)
	if cloud.puts != 4 {
		t.Errorf("%d calls wrote something, want 4: three that create, one that changes", cloud.puts)
	}
}

// Actions set by 'alarms apply --action' are kept if the new actions are nil, and removed if they are an empty list.
func TestActionsThatAreNotNamedAreKept(t *testing.T) {
	t.Parallel()
	cloud := newFakeCloud()
	with := func(actions []string) *Set {
		s := shop()
		s.Queues, s.Publishes, s.Actions = s.Queues[:1], false, nil
		set := Describe(s, &File{Actions: actions})
		return &set
	}
	board := "keep tendril-shop"
	for _, step := range []struct {
		actions []string
		want    []string
	}{
		{[]string{"arn:on-call"}, []string{"create dead-letters/orders", "create queue-age/orders", "create tendril-shop"}},
		{nil, []string{"keep dead-letters/orders", "keep queue-age/orders", board}},
		{[]string{"arn:other"}, []string{"change dead-letters/orders [actions [arn:on-call] -> [arn:other]]",
			"change queue-age/orders [actions [arn:on-call] -> [arn:other]]", board}},
		{[]string{}, []string{"change dead-letters/orders [actions [arn:other] -> []]",
			"change queue-age/orders [actions [arn:other] -> []]", board}},
	} {
		if diff := cmp.Diff(step.want, apply(t, cloud, with(step.actions), false)); diff != "" {
			t.Errorf("actions %q (-want +got):\n%s", step.actions, diff)
		}
	}
}

// Resources of other programs are neither changed nor deleted.
func TestForeignAlarmsAreLeftAlone(t *testing.T) {
	t.Parallel()
	cloud := newFakeCloud()
	cloud.alarms["tendril/shop/queue-age/orders"] = aws.Alarm{Name: "tendril/shop/queue-age/orders"}
	cloud.dashboards["tendril-shop"] = `{"widgets":[{"properties":{"markdown":"# tendril environment shop2"}}]}`
	found, err := Find(t.Context(), cloud, "shop")
	if err != nil || len(found.Alarms) != 0 || len(found.Foreign) != 1 || !found.ForeignDashboard ||
		found.Dashboard != "" {
		t.Fatalf("%+v, %v", found, err)
	}
	_, err = Compare(small(1), found, true)
	if err == nil || !strings.HasPrefix(err.Error(), "alarm tendril/shop/queue-age/orders, dashboard tendril-shop: ") {
		t.Errorf("Compare: %v", err)
	}
	if err := Delete(t.Context(), cloud, found); err != nil || len(cloud.alarms) != 1 || len(cloud.dashboards) != 1 {
		t.Errorf("%v; left are %v and %v", err, cloud.alarms, cloud.dashboards)
	}
}

func TestAFailedStepIsNamed(t *testing.T) {
	t.Parallel()
	cloud := newFakeCloud()
	cloud.err = errors.New("denied")
	steps, err := Compare(small(1), &Found{Environment: "shop"}, false)
	if err != nil {
		t.Fatal(err)
	}
	err = Apply(t.Context(), cloud, "shop", steps)
	if !errors.Is(err, cloud.err) || err.Error() != "create alarm tendril/shop/dead-letters/orders: denied" {
		t.Errorf("%v", err)
	}
}

func TestDifferencesAreNamed(t *testing.T) {
	t.Parallel()
	is := aws.Alarm{Name: "a", Threshold: 1, EvaluationPeriods: 3, DatapointsToAlarm: 3, MissingData: "missing",
		Actions: []string{}}
	want := is
	want.DatapointsToAlarm, want.MissingData, want.Actions = 0, "", nil
	if got := differences(&is, &want); got != nil {
		t.Errorf("what means the same differs: %v", got)
	}
	want.Threshold, want.Muted, want.Actions = 2.5, true, []string{"arn"}
	want.Dimensions = []aws.Dimension{{Name: "QueueName", Value: "jobs"}}
	if diff := cmp.Diff([]string{"dimensions [] -> [{QueueName jobs}]", "threshold 1 -> 2.5", "actions [] -> [arn]",
		"muted false -> true"}, differences(&is, &want)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAgainstAForeignCloudWatch runs against moto, which also contains other alarms and dashboards.
func TestAgainstAForeignCloudWatch(t *testing.T) {
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	endpoint := testpeer.Moto(t, "cloudwatch")
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"} {
		t.Setenv(name, value)
	}
	cloud, err := aws.OpenCloudWatch(t.Context(), &aws.Options{Region: "eu-west-1", Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)
	changesOnly(t, cloud)

	everything := Describe(shop(), nil)
	apply(t, cloud, &everything, false)
	others := shop()
	others.Environment = "shop2"
	second := Describe(others, nil)
	apply(t, cloud, &second, false)
	foreign := everything.Alarms[0]
	foreign.Name = Prefix("shop") + "by-hand"
	if err := cloud.PutAlarm(t.Context(), &foreign, nil); err != nil {
		t.Fatal(err)
	}
	found, err := Find(t.Context(), cloud, "shop")
	if err != nil || len(found.Alarms) != len(everything.Alarms) || len(found.Foreign) != 1 || found.Dashboard == "" {
		t.Fatalf("%+v, %v", found, err)
	}
	for i := range found.Alarms {
		if is := &found.Alarms[i]; is.State == "" || is.Since.IsZero() || !strings.HasPrefix(is.ARN, "arn:") {
			t.Errorf("%s has the state %q since %v, ARN %q", is.Name, is.State, is.Since, is.ARN)
		}
		if changes := differences(&found.Alarms[i].Alarm, &everything.Alarms[i]); changes != nil {
			t.Errorf("%s did not arrive as it was sent: %v", found.Alarms[i].Name, changes)
		}
	}
	for range 2 { // the second time, nothing is left to delete
		if err := Delete(t.Context(), cloud, found); err != nil {
			t.Fatal(err)
		}
	}
	left, err := cloud.Alarms(t.Context(), "")
	if err != nil || len(left) != len(second.Alarms)+1 || left[0].Name != foreign.Name {
		t.Errorf("%d alarms are left, want those of shop2 and the foreign one: %v", len(left), err)
	}
	for name, want := range map[string]bool{"shop": false, "shop2": true} {
		if body, err := cloud.Dashboard(t.Context(), DashboardName(name)); err != nil || (body != "") != want {
			t.Errorf("the dashboard of %s: %q, %v", name, body, err)
		}
	}
}
