package api

import (
	"slices"
	"testing"
)

func TestRolloutNamesWhereTheVersionRuns(t *testing.T) {
	t.Parallel()
	all := []KnownInstance{{Name: "a", This: true, TakesVersions: true, AppNumber: 2}, {Name: "b", TakesVersions: true, AppNumber: 1},
		{Name: "c", TakesVersions: true, AppNumber: 1, Unreachable: true}, {Name: "d"},
		{Name: "e", TakesVersions: true, AppNumber: 2, NotAuthenticated: true}}
	for name, c := range map[string]struct {
		all         Instances
		want        string
		unreachable []string
	}{
		"some":                {Instances{Instances: all}, "version 2 runs on 1 of 2 instances, not yet on b", []string{"c"}},
		"one":                 {Instances{Instances: all[:1]}, "version 2 runs on 1 of 1 instance", nil},
		"without the records": {Instances{Instances: all[:1], Unread: "no answer"}, "version 2: the instances that run it are unknown: no answer", nil},
	} {
		if text, unreachable := c.all.Rollout(2); text != c.want || !slices.Equal(unreachable, c.unreachable) {
			t.Errorf("%s: %q, unreachable %q", name, text, unreachable)
		}
	}
}

func TestARecordThatIsNotAuthenticatedHasAppliedNothing(t *testing.T) {
	t.Parallel()
	all := Instances{Instances: []KnownInstance{{Name: "a", This: true, Revision: 2},
		{Name: "b", Source: SourceRegistry, Revision: 2, NotAuthenticated: true}}}
	done, behind, _ := all.Applied(func(one *KnownInstance) bool { return one.Revision >= 2 })
	if done != 1 || !slices.Equal(behind, []string{"b"}) {
		t.Errorf("applied by %d, not by %q", done, behind)
	}
}
