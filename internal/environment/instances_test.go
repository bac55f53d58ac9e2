package environment

import (
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/autoscale/fleet"
	"tendril/internal/aws"
)

func TestKnownInstancesAreListed(t *testing.T) {
	t.Parallel()
	group := fleet.Members{Group: "workers", Self: "i-1", At: time.Now(), Instances: []aws.GroupInstance{
		{ID: "i-1", State: "InService", Healthy: true}, {ID: "i-2", State: "Terminating:Wait", Protected: true}}}
	const alone = "No leader is elected: there are no periodic tasks"
	for name, c := range map[string]struct {
		leader api.Leader
		group  fleet.Members
		sole   bool
		want   string
		leads  string
		notes  string
	}{
		"alone": {leader: api.Leader{Local: true, Leading: true}, want: "self", notes: alone},
		"declared": {leader: api.Leader{Local: true, Leading: true}, sole: true, want: "self",
			notes: "--leader local declares"},
		"this one leads": {leader: api.Leader{Leading: true, Term: 2, Holder: "self"}, want: "self", leads: "self",
			notes: "are unknown, except for"},
		"another one leads": {leader: api.Leader{Term: 3, Holder: "other", AgeSeconds: 2}, want: "self other",
			leads: "other", notes: "are unknown, except for"},
		"nobody leads": {leader: api.Leader{Term: 3}, want: "self", notes: "No instance is"},
		"no registry": {leader: api.Leader{Error: "access denied"}, want: "self",
			notes: "Reading the registry failed: access denied"},
		"in a group": {leader: api.Leader{Leading: true, Term: 2}, group: group, want: "i-1, self i-2",
			leads: "i-1, self", notes: "known from Auto Scaling"},
		"in a group that another one leads": {leader: api.Leader{Term: 2, Holder: "other"}, group: group,
			want: "i-1, self other i-2", leads: "other", notes: "listed twice"},
	} {
		out := api.Instances{Instances: []api.KnownInstance{{Name: "self", This: true, State: "running"}}}
		addLeader(&out, &c.leader)
		addMembers(&out, &c.group)
		var names []string
		leads := ""
		for _, one := range out.Instances {
			names = append(names, one.Name)
			if one.Leads {
				leads += one.Name
			}
		}
		notes := strings.Join(sharedNotes(c.group.Group, c.sole, &c.leader), " ")
		if got := strings.Join(names, " "); got != c.want || leads != c.leads || !strings.Contains(notes, c.notes) {
			t.Errorf("%s: %q, led by %q: %s", name, got, leads, notes)
		}
	}
}
