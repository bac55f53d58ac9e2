package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tendril/api"
	"tendril/internal/autoscale"
	"tendril/internal/config"
	"tendril/internal/cron/leader"
	"tendril/internal/instances"
	"tendril/internal/observe/health"
	"tendril/internal/peers"
)

const (
	// registryStart limits each wait for the registry at startup. registrySeek is the interval of later attempts.
	registryStart = 5 * time.Second
	registrySeek  = 15 * time.Second
	othersMaxAge  = 2 * time.Second
	// After leaveTimeout, other instances drop the record when it is too old.
	leaveTimeout = 3 * time.Second
)

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
	rollouts *rollouts

	gauge  *autoscale.Gauge // each consumer of CPU usage needs its own
	joined atomic.Pointer[membership]
	lost   registryLoss

	judging sync.Mutex
	judged  *health.Environment // nil unless this instance leads
}

type membership struct {
	self   *instances.Member
	others *instances.Watcher
	peers  *peers.Peers
}

func (m *members) run(ctx context.Context) error {
	m.gauge = m.scale.gauge(false)
	set := m.settings.now()
	if !set.AnyOnSQS() || set.Leader == config.LeaderLocal {
		return nil
	}
	joining, cancel := context.WithTimeout(ctx, registryStart)
	defer cancel()
	if shared, err := m.cron.election.Join(joining); err == nil && !shared {
		return nil
	}

	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.joinRegistry(ctx, &running) })
	running.Go(func() { m.lost.watch(ctx, m) })
	m.life.onStop("the record of this instance", func(ctx context.Context) error {
		stop()
		running.Wait()
		joined := m.joined.Load()
		if joined == nil {
			return nil
		}
		joined.peers.Close()
		ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
		defer cancel()
		if err := joined.self.Leave(ctx); err != nil {
			m.opts.log("instances").Warn("instance record not marked as stopped", "err", err)
		}
		return nil
	})
	return nil
}

func (m *members) joinRegistry(ctx context.Context, running *sync.WaitGroup) {
	select {
	case <-m.life.announced:
	case <-ctx.Done():
		return
	}

	for logged := false; ; {
		leases, decided, err := m.cron.election.Leases(ctx)
		switch {
		case leases != nil:
			m.lost.setMissing(nil)
			m.keepRecord(ctx, leases, running)
			return
		case err == nil && decided:
			m.lost.setMissing(nil)
			return
		case err != nil && !logged:
			m.opts.log("instances").Warn("shared registry not available", "err", err)
			logged = true
		}

		m.lost.setMissing(cmp.Or(err, errNoQueueServer))
		select {
		case <-time.After(registrySeek):
		case <-m.life.draining: // the periodic tasks close the registry
			return
		case <-ctx.Done():
			return
		}
	}
}

func (m *members) keepRecord(ctx context.Context, leases instances.Store, running *sync.WaitGroup) {
	log := m.opts.log("instances")
	opts := instances.Options{Store: leases, Environment: m.cron.election.Name(), Log: log,
		Key: instances.FleetKey(m.settings.now().FleetKey)}
	gauge := m.scale.gauge(false)
	joined := &membership{others: instances.NewWatcher(opts),
		self: instances.NewMember(opts, m.ownRecord, func() instances.Load { return m.load(gauge) })}
	joined.peers = peers.New(peers.Options{Environment: opts.Environment, ID: joined.self.ID(), Host: peers.Host(),
		Key: opts.Key, List: m.others, Log: log})
	m.joined.Store(joined)

	running.Go(func() { joined.others.Run(ctx, m.leads) })
	fleet := &instances.Fleet{Store: leases, ID: joined.self.ID(), Self: m.ownRecord, Others: joined.others,
		Leads: m.leads, Healthy: completesBatch}
	running.Go(func() { m.desired.follow(ctx, fleet) })
	running.Go(func() { m.rollouts.run(ctx, fleet) })
	joined.self.Run(ctx)
}

func completesBatch(one *instances.Record) bool {
	color := health.Status(one.Health).Color()
	return one.State == api.StateRunning && (color == health.Green || color == health.Yellow)
}

func (m *members) shared() bool { return m.joined.Load() != nil }

// mayShare also returns true while a shared registry is expected.
func (m *members) mayShare() bool { return m.shared() || m.lost.whyMissing() != nil }

func (m *members) leads() bool {
	_, leads := m.cron.election.Term()
	return leads
}

func (m *members) announcement() string {
	if joined := m.joined.Load(); joined != nil {
		return joined.self.Announcement()
	}
	return ""
}

func (m *members) environment() *health.Environment {
	joined := m.joined.Load()
	if joined == nil {
		if why := m.lost.whyMissing(); why != nil {
			return health.UnknownEnvironment("The shared registry is not available.", why.Error())
		}
		return nil
	}

	report, err := m.leaderRecord(joined)
	if err != nil {
		return health.UnknownEnvironment("The leader's report is not available.", err.Error())
	}
	return report.Environment
}

func (m *members) leaderRecord(joined *membership) (r instances.Record, err error) {
	if own := m.ownRecord(); own.Environment != nil {
		return own, nil
	}
	switch leader := m.cron.election.Status(); {
	case leader.Error != "":
		return r, errors.New(leader.Error)
	case leader.Holder == "":
		return r, errors.New("no instance is the leader")
	}
	r, err = joined.others.Announced(context.Background(), m.cron.election.Announcement())
	if err == nil && r.Environment == nil {
		err = errors.New("it has not reported the environment's health yet")
	}
	return r, err
}

// unreachable returns the leader's list, because the leader has watched the records for longer than a new reader.
func (m *members) unreachable() []string {
	if joined := m.joined.Load(); joined != nil {
		report, _ := m.leaderRecord(joined)
		return report.Unreachable
	}
	return nil
}

func (m *members) judgeEnvironment(own *instances.Record) {
	m.judging.Lock()
	defer m.judging.Unlock()
	joined := m.joined.Load()
	if joined == nil || !m.leads() {
		m.judged = nil
		return
	}

	e := environmentHealth(joined, own)
	e.Since = thisSecond()
	if m.judged != nil && m.judged.Status == e.Status {
		e.Since = m.judged.Since
	}
	m.judged = &e
	own.Environment = &e
}

// environmentHealth also adds unreachable instances to the leader's own record.
func environmentHealth(joined *membership, own *instances.Record) health.Environment {
	all, err := joined.others.Recent()
	known := []health.InstanceHealth{own.HealthStatus()}
	var refused []string
	for i := range all {
		one := &all[i]
		if one.ID == joined.self.ID() {
			continue
		}
		if one.Refused == nil {
			known = append(known, one.HealthStatus())
		}
		switch {
		case one.Refused == nil && !one.Reachable():
			own.Unreachable = append(own.Unreachable, one.ID)
		case one.Refused != nil && one.Reachable():
			refused = append(refused, one.Name)
		}
	}

	e := health.EnvironmentOf(known)
	if err != nil {
		e = *health.UnknownEnvironment("The records of the other instances are unknown.", err.Error())
	}
	if refused != nil {
		e.Inform("Records are not authenticated: their instances are not counted.", refused...)
	}
	if watched := joined.others.Leading(); watched < instances.FreshFor {
		e.Inform(fmt.Sprintf("The leader is new and detects unreachable instances after %.0f seconds.",
			instances.FreshFor.Seconds()))
	}
	return e
}

func (m *members) ownRecord() instances.Record {
	r := instances.Record{Name: leader.ProcessName(), Version: m.opts.Version, StartedAt: m.instance.began.UTC(),
		State: m.life.state()}
	r.Console, r.Certificate = m.instance.reachable()
	if m.settings.now().FleetKey != "" {
		r.Host = peers.Host()
	}
	if m.life.running() {
		r.Member = m.scale.fleet.Members().Self
	}
	if m.programs.app != nil {
		r.AppVersion = m.programs.app.Version()
	}

	report := m.observe.monitor.Report()
	r.Health, r.Causes = report.Status, report.Explaining()
	r.Deploying = m.scale.deploying()
	r.Follows, r.Revision = m.desired.state != nil, m.desired.revision()
	if r.Follows {
		r.Applies = []string{instances.PartSettings, instances.PartBatches, instances.PartQueueSettings}
		progress := m.desired.follower.Progress()
		r.SettingsRevision, r.Rejected = max(progress.Applied, progress.Rejected), progress.Reason
	}
	if r.App = m.rollouts.report(); m.rollouts.follows() {
		r.Applies = append(r.Applies, instances.PartApp)
	}
	for _, l := range m.work.all {
		if isPaused(l.worker.Status()) && !l.heldByRollout() {
			r.PausedQueues = append(r.PausedQueues, l.queue.name)
		}
	}
	m.judgeEnvironment(&r)
	return r
}

func (m *members) load(gauge *autoscale.Gauge) (l instances.Load) {
	_, l.Sample = gauge.Measure()
	for _, line := range m.work.all {
		l.OldestDelivery = max(l.OldestDelivery, int(line.worker.Status().LongestDelivery/time.Second))
	}
	return l
}

// combinedLoad holds the size while a new leader cannot yet tell which records are current.
func (m *members) combinedLoad(gauge *autoscale.Gauge, policy autoscale.Policy) autoscale.Inputs {
	own, sample := gauge.Measure()
	joined := m.joined.Load()
	if joined == nil || !m.leads() {
		return own
	}
	if watched := joined.others.Leading(); watched < instances.FreshFor {
		own.Hold = fmt.Sprintf("the leader is new (%s): it collects the loads of all instances for %s before it decides",
			watched.Round(time.Second), instances.FreshFor)
		return own
	}

	all, _ := joined.others.Recent() // after an error, the last records count until they are too old
	samples := []autoscale.Sample{sample}
	for i := range all {
		if one := &all[i]; one.Counts() && one.ID != joined.self.ID() {
			samples = append(samples, one.Load.Sample)
		}
	}
	return autoscale.Combine(own, samples, policy)
}

func (m *members) others(ctx context.Context) (all []instances.Instance, err error) {
	joined := m.joined.Load()
	if joined == nil {
		return nil, nil
	}
	all, err = joined.others.ReadOnce(ctx, othersMaxAge)
	return slices.DeleteFunc(all, func(one instances.Instance) bool { return one.ID == joined.self.ID() }), err
}

func (m *members) ID() string {
	if joined := m.joined.Load(); joined != nil {
		return joined.peers.ID()
	}
	return ""
}

func (m *members) Secrets() []string {
	if joined := m.joined.Load(); joined != nil {
		return joined.peers.Secrets()
	}
	return nil
}

func (m *members) Answer(ctx context.Context, id string, r *api.Request, into any) error {
	if joined := m.joined.Load(); joined != nil {
		return joined.peers.Answer(ctx, id, r, into)
	}
	return errNoPeers(id)
}

func (m *members) Follow(ctx context.Context, id string, r *api.Request, each func(line []byte) error) error {
	if joined := m.joined.Load(); joined != nil {
		return joined.peers.Follow(ctx, id, r, each)
	}
	return errNoPeers(id)
}

func errNoPeers(id string) error {
	return api.NewError(http.StatusNotFound, fmt.Sprintf("instance %q not found: this instance knows no others", id),
		"'tendril instances' lists the instances")
}
