package environment

import (
	"fmt"
	"os"

	"tendril/api"
	"tendril/internal/autoscale/fleet"
	"tendril/internal/config"
)

// knownInstances lists this instance, the leader known from its lease, and the members of the Auto Scaling group.
type knownInstances struct {
	scale  *sizing
	self   *instance
	status func() api.Status
}

func (k *knownInstances) list() api.Instances {
	st := k.status()
	self := api.KnownInstance{Name: processName(), This: true, Source: "process", State: st.State, Version: k.scale.opts.Version,
		StartedAt: k.self.began, Console: k.self.address}
	if !k.scale.life.running() || k.scale.opts.QueuesOnly {
		return api.Instances{Instances: []api.KnownInstance{self}, Notes: k.soleInstanceNotes()}
	}

	inFlight := 0
	for _, w := range st.Workers {
		inFlight += w.InWork
	}
	self.InFlight = &inFlight
	if k.scale.programs.app != nil {
		self.AppVersion = k.scale.programs.app.Version()
	}
	if st.Scaling != nil && st.Scaling.Protection != "" {
		on := st.Scaling.Protection == "on"
		self.Protected = &on
	}
	out := api.Instances{Instances: []api.KnownInstance{self}}

	leader := k.scale.cron.election.Status()
	if !leader.Local {
		out.Election = electionText(k.scale.settings.now())
	}
	addLeader(&out, &leader)
	members := k.scale.fleet.Members()
	addMembers(&out, &members)
	if out.Notes = k.soleInstanceNotes(); out.Notes == nil {
		out.Notes = sharedNotes(members.Group, k.scale.settings.now().Leader == config.LeaderLocal, &leader)
	}
	return out
}

// processName returns this instance's name in the leader's lease. It must match package leader.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s (%d)", host, os.Getpid())
}

// addLeader marks this instance as leader, or adds the leader from the lease.
func addLeader(out *api.Instances, leader *api.Leader) {
	switch self := &out.Instances[0]; {
	case leader.Local: // there is no election
	case leader.Leading:
		self.Leads = true
		self.Term = leader.Term
		self.LeaseAgeSeconds = leader.AgeSeconds
	case leader.Holder != "":
		out.Instances = append(out.Instances, api.KnownInstance{Name: leader.Holder, Source: "lease", Leads: true,
			Term: leader.Term, LeaseAgeSeconds: leader.AgeSeconds, Console: leader.Console})
	}
}

func addMembers(out *api.Instances, group *fleet.Members) {
	for _, one := range group.Instances {
		if one.ID == group.Self {
			self := &out.Instances[0]
			self.Name = one.ID + ", " + self.Name
			self.Unhealthy = !one.Healthy
			self.SeenAt = group.At
			self.State += ", " + one.State
			continue
		}
		protected := one.Protected
		out.Instances = append(out.Instances, api.KnownInstance{Name: one.ID, Source: config.ScaleGroup + group.Group,
			State: one.State, Unhealthy: !one.Healthy, Protected: &protected, SeenAt: group.At})
	}
}

func (k *knownInstances) soleInstanceNotes() []string {
	if k.scale.settings.now().AnyOnSQS() {
		return nil
	}
	return []string{"This is the only instance: no other one can use the queues in its data directory."}
}

// sharedNotes explains the limits of the list. sole means that this instance was declared the only one.
func sharedNotes(group string, sole bool, leader *api.Leader) []string {
	notes := []string{"Other instances that receive from the same queue on Amazon SQS do not report themselves: only " +
		"the one that leads is known, by its lease."}
	if group != "" {
		notes[0] = "Of the other members of the group " + group + ", only what Auto Scaling says is known."
	}

	switch {
	case sole:
		notes = append(notes, "No leader is elected: --leader local declares this instance to be the only one.")
	case leader.Local:
		notes = append(notes, "No leader is elected: there are no periodic tasks, and no group whose size one instance of "+
			"several sets.")
	case leader.Error != "":
		notes = append(notes, "The registry cannot be asked: "+leader.Error)
	case !leader.Leading && leader.Holder == "":
		notes = append(notes, "No instance leads at this moment.")
	case group != "" && !leader.Leading:
		notes = append(notes, "The lease names the leader by its host, and the group names it by its instance id: it may be "+
			"in the list twice.")
	}
	return notes
}
