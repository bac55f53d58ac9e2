package environment

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tendril/internal/autoscale"
	"tendril/internal/config"
	"tendril/internal/instances"
)

const (
	// registrySeek is the interval between attempts to find the shared registry.
	registrySeek = 15 * time.Second
	// leaveTimeout limits the final write of this instance's record. If the write fails, the others drop the record a
	// little later because of its age.
	leaveTimeout = 3 * time.Second
)

// members keeps this instance's record in the registry that the environment's instances share, and reads the others'
// records. Without a shared registry it does nothing.
type members struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	work     *pipelines
	programs *programs
	cron     *schedule
	scale    *sizing
	observe  *observer
	instance *instance
	desired  *desired

	gauge  *autoscale.Gauge           // for the list of instances; each consumer of CPU usage needs its own gauge
	joined atomic.Pointer[membership] // nil until the registry is found
}

// membership is this instance's record and its view of the others.
type membership struct {
	self   *instances.Member
	others *instances.Watcher
}

// run joins the other instances in the background. Shutdown leaves them after everything started later has stopped.
func (m *members) run(context.Context) error {
	m.gauge = m.scale.gauge(false)
	set := m.settings.now()
	if !set.AnyOnSQS() || set.Leader == config.LeaderLocal {
		return nil
	}

	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.join(ctx, &running) })
	m.life.steps.push("the record of this instance", func(ctx context.Context) error {
		stop()
		running.Wait()
		joined := m.joined.Load()
		if joined == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
		defer cancel()
		if err := joined.self.Leave(ctx); err != nil {
			m.opts.Logger.Warn("instance record not marked as stopped", "component", "instances", "err", err)
		}
		return nil
	})
	return nil
}

// join waits for the registry. It then updates this instance's record and watches the others' until ctx ends.
func (m *members) join(ctx context.Context, running *sync.WaitGroup) {
	select {
	case <-m.life.announced:
	case <-ctx.Done():
		return
	}
	log := m.opts.Logger.With("component", "instances")

	for failed := false; ; {
		leases, decided, err := m.cron.election.Leases(ctx)
		switch {
		case err != nil && !failed:
			log.Warn("shared registry not available", "err", err)
			failed = true
		case err == nil && decided && leases == nil:
			return // the environment has no shared registry
		case leases != nil:
			opts := instances.Options{Store: leases, Environment: m.cron.election.Name(), Log: log}
			gauge := m.scale.gauge(false)
			joined := &membership{instances.NewMember(opts, m.record, func() instances.Load { return m.load(gauge) }),
				instances.NewWatcher(opts)}
			m.joined.Store(joined)
			running.Go(func() { joined.others.Run(ctx, m.leads) })
			running.Go(func() { m.desired.follow(ctx, leases, m.leads) })
			joined.self.Run(ctx)
			return
		}

		select {
		case <-time.After(registrySeek):
		case <-m.life.draining: // the periodic tasks close the registry
			return
		case <-ctx.Done():
			return
		}
	}
}

// shared reports whether a shared registry is in use.
func (m *members) shared() bool { return m.joined.Load() != nil }

func (m *members) leads() bool {
	_, leads := m.cron.election.Term()
	return leads
}

// record returns this instance's record without its load.
func (m *members) record() instances.Record {
	r := instances.Record{Name: processName(), Console: m.instance.address, Version: m.opts.Version,
		StartedAt: m.instance.began.UTC(), State: m.life.state()}
	if m.life.running() {
		r.Member = m.scale.fleet.Members().Self
	}
	if m.programs.app != nil {
		r.AppVersion = m.programs.app.Version()
	}

	report := m.observe.monitor.Report()
	r.Health, r.Causes = string(report.Status), report.Causes
	r.Deploying = m.scale.deploying()
	if r.Follows, r.Revision = m.desired.state != nil, m.desired.revision(); r.Follows {
		r.Applies = []string{instances.PartSettings}
		progress := m.desired.settingsProgress()
		r.SettingsRevision, r.Rejected = max(progress.Applied, progress.Rejected), progress.Reason
	}
	for _, l := range m.work.all {
		if isPaused(l.worker.Status()) {
			r.PausedQueues = append(r.PausedQueues, l.queue.name)
		}
	}
	return r
}

// load returns the load since the last reading of the gauge.
func (m *members) load(gauge *autoscale.Gauge) (l instances.Load) {
	_, l.Sample = gauge.Measure()
	for _, line := range m.work.all {
		l.OldestDelivery = max(l.OldestDelivery, int(line.worker.Status().LongestDelivery/time.Second))
	}
	return l
}

// combined adds the other instances' measurements to this one's. A new leader first watches the records for a while
// without changing the size, because it cannot yet tell which are current.
func (m *members) combined(gauge *autoscale.Gauge, policy autoscale.Policy) autoscale.Inputs {
	own, sample := gauge.Measure()
	joined := m.joined.Load()
	if joined == nil || !m.leads() {
		return own
	}
	if watched := joined.others.Leading(); watched < instances.FreshFor {
		own.Hold = fmt.Sprintf("leader for %s: it reads the loads of the others for %s before it decides",
			watched.Round(time.Second), instances.FreshFor)
		return own
	}

	all, _ := joined.others.Recent() // if a read fails, the last records remain and grow old
	samples := []autoscale.Sample{sample}
	for i := range all {
		if one := &all[i]; one.Reachable() && one.ID != joined.self.ID() {
			samples = append(samples, one.Load.Sample)
		}
	}
	return autoscale.Combine(own, samples, policy)
}

// others reads the records of the other instances. It returns nil without a shared registry.
func (m *members) others(ctx context.Context) (all []instances.Instance, err error) {
	joined := m.joined.Load()
	if joined == nil {
		return nil, nil
	}
	all, err = joined.others.ReadOnce(ctx, 2*time.Second)
	return slices.DeleteFunc(all, func(one instances.Instance) bool { return one.ID == joined.self.ID() }), err
}
