package environment

import (
	"context"
	"slices"
	"time"

	"tendril/api"
	"tendril/internal/autoscale/fleet"
	"tendril/internal/config"
	"tendril/internal/cron/leader"
	"tendril/internal/instances"
)

// After recordsTimeout, the other instances are omitted.
const recordsTimeout = 3 * time.Second

func (m *members) knownInstances() api.Instances {
	if !m.life.running() || m.opts.QueuesOnly {
		self := api.KnownInstance{Name: leader.ProcessName(), This: true, Source: "process", State: m.life.state(),
			Version: m.opts.Version, StartedAt: m.instance.began, Console: m.instance.public}
		return api.Instances{Instances: []api.KnownInstance{self}, Notes: m.soleInstanceNotes()}
	}

	out := api.Instances{Instances: []api.KnownInstance{m.thisInstance()}}
	refusals, err := m.addOthers(&out)
	leader := m.cron.election.Status()
	if !leader.Local {
		out.Election = electionText(m.settings.now())
	}
	addLeader(&out, &leader)
	members := m.scale.fleet.Members()
	addMembers(&out, &members)

	out.Notes = m.soleInstanceNotes()
	switch {
	case out.Notes != nil:
	case err != nil:
		out.Unread = err.Error()
		out.Notes = []string{"Reading the records of other instances failed: " + out.Unread}
	case !m.shared():
		out.Notes = sharedNotes(members.Group, m.settings.now().Leader == config.LeaderLocal, &leader)
	}
	out.Notes = append(out.Notes, refusals...)
	m.addDesired(&out)
	return out
}

func (m *members) thisInstance() api.KnownInstance {
	record := m.ownRecord()
	record.Load = m.load(m.gauge)
	self := knownByRecord(&record)
	self.ID = m.ID()
	self.This = true
	self.Source = "process"
	self.Protected = m.scale.protection.Load()
	return self
}

func (m *members) addOthers(out *api.Instances) (refusals []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), recordsTimeout)
	defer cancel()
	others, err := m.others(ctx)
	unreachable := m.unreachable()
	for i := range others {
		one := knownByRecord(&others[i].Record)
		one.Unreachable = !others[i].Reachable() || slices.Contains(unreachable, others[i].ID)
		if refused := others[i].Refused; refused != nil {
			one.NotAuthenticated = true
			one.Console = ""
			refusals = append(refusals, "The record of "+one.Name+" is not used: "+refused.Error())
		}
		one.RecordAgeSeconds = others[i].Age.Seconds()
		one.NoDetails = m.joined.Load().peers.NoDetails(&others[i])
		out.Instances = append(out.Instances, one)
	}
	return refusals, err
}

func (m *members) addDesired(out *api.Instances) {
	if m.desired.state == nil {
		return
	}
	out.Revision = m.desired.revision()
	out.Shared = m.desired.sharedSettings()
	if text := out.Batches(); text != "" {
		out.Notes = append(out.Notes, text)
	}
	if _, err := m.desired.state.Current(); err != nil {
		out.Notes = append(out.Notes, "The last known desired state applies: "+err.Error())
	}
}

func knownByRecord(r *instances.Record) api.KnownInstance {
	inFlight := r.Load.InWork
	return api.KnownInstance{ID: r.ID, Name: r.Name, Member: r.Member, Source: api.SourceRegistry, State: r.State,
		Version: r.Version, AppVersion: r.AppVersion, StartedAt: r.StartedAt, Console: r.Console,
		Health: string(r.Health), Causes: r.Causes, InFlight: &inFlight, Slots: r.Load.Slots,
		LongestSeconds: r.Load.OldestDelivery, CPUPercent: known(r.Load.CPU), PausedQueues: r.PausedQueues,
		Deploying: r.Deploying, Revision: r.Revision, TakesVersions: r.App.Takes, AppNumber: r.App.Number,
		SettingsRevision: r.SettingsRevision, Rejected: r.Rejected}
}

func addLeader(out *api.Instances, leader *api.Leader) {
	if leader.Local || !leader.Leading && leader.Holder == "" {
		return
	}

	i := 0
	if !leader.Leading {
		i = slices.IndexFunc(out.Instances, func(one api.KnownInstance) bool {
			return !one.This && one.Name == leader.Holder && one.Console == leader.Console
		})
	}

	if i < 0 {
		i = len(out.Instances)
		out.Instances = append(out.Instances,
			api.KnownInstance{Name: leader.Holder, Source: "lease", Console: leader.Console})
	}

	one := &out.Instances[i]
	one.Leads = true
	one.Term = leader.Term
	one.LeaseAgeSeconds = leader.AgeSeconds
}

func addMembers(out *api.Instances, group *fleet.Members) {
	for _, member := range group.Instances {
		i := slices.IndexFunc(out.Instances, func(one api.KnownInstance) bool {
			return one.Member == member.ID || one.This && group.Self == member.ID
		})
		if i < 0 {
			out.Instances = append(out.Instances, api.KnownInstance{Name: member.ID, Member: member.ID,
				Source: config.ScaleGroup + group.Group, State: member.State, Unhealthy: !member.Healthy,
				Protected: &member.Protected, SeenAt: group.At})
			continue
		}

		one := &out.Instances[i]
		one.Name = member.ID + ", " + one.Name
		one.Member = member.ID
		one.Unhealthy = !member.Healthy
		one.SeenAt = group.At
		one.State += ", " + member.State
		if !one.This {
			one.Protected = &member.Protected
		}
	}
}

func (m *members) soleInstanceNotes() []string {
	if m.opts.QueuesOnly {
		return []string{"This process only serves queues. An instance that uses them lists all instances."}
	}
	if m.settings.now().AnyOnSQS() {
		return nil
	}
	return []string{"This is the only instance: others can use the queues in its data directory only by URL."}
}

func sharedNotes(group string, sole bool, leader *api.Leader) []string {
	notes := []string{"Other instances that receive from the same queue are unknown, except for the " +
		"leader, which is known by its lease."}
	if group != "" {
		notes[0] = "Other members of the group " + group + " are only known from Auto Scaling."
	}

	switch {
	case sole:
		notes = append(notes, "No leader is elected: --leader local declares this instance to be the only one.")
	case leader.Local:
		notes = append(notes, "No leader is elected: there are no periodic tasks and no group to scale.")
	case leader.Error != "":
		notes = append(notes, "Reading the registry failed: "+leader.Error)
	case !leader.Leading && leader.Holder == "":
		notes = append(notes, "No instance is the leader right now.")
	case group != "" && !leader.Leading:
		notes = append(notes, "The lease names the leader by host, the group by instance ID: the leader may be listed twice.")
	}
	return notes
}
