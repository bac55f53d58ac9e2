package environment

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tendril/api"
	"tendril/internal/autoscale"
	"tendril/internal/autoscale/fleet"
	"tendril/internal/config"
	"tendril/internal/delivery"
	"tendril/internal/observe/health"
)

// A group's metrics change only once a minute, so its interval is longer.
const (
	loadInterval  = 10 * time.Second
	groupInterval = 30 * time.Second
)

type sizing struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	work     *pipelines
	programs *programs
	cron     *schedule
	members  *members

	inFlight    delivery.Tracker // does nothing unless messages in flight need protection
	loop        *autoscale.Loop
	fleet       *fleet.Fleet
	target      string // Settings.ScaleTarget, or the choice for auto
	left        string // reason scaling is off although enabled; may be ""
	fleetTiming fleet.Timing
	protection  protection
	decided     func(autoscale.Decided)
}

func loadNamespace(s *config.Settings) string { return "tendril/" + s.Name }

// closeFleetOnStop closes the fleet late in the stop, because the group may terminate this instance from then on.
func (s *sizing) closeFleetOnStop(context.Context) error {
	if mayScaleInstances(s.settings.now()) {
		s.life.onStop("the instance group", func(ctx context.Context) error {
			if s.fleet == nil {
				return nil
			}
			return s.fleet.Close(ctx)
		})
	}
	return nil
}

func (s *sizing) openFleet(ctx context.Context) error {
	if !s.scalesInstances() {
		return nil
	}
	elected, err := s.cron.election.Join(ctx)
	if err != nil {
		return err
	}
	if !elected && s.isAuto() {
		s.leaveSize("no leader is elected: give all instances the same --registry-table")
		return nil
	}

	if s.fleet, err = fleet.Open(ctx, s.fleetOptions()); err != nil {
		return fmt.Errorf("%w: --scale-target %s: %w", ErrSettings, s.target, err)
	}
	if !elected {
		s.opts.log("scale").Warn("no leader elected, assuming that no other instance sets the size",
			"hint", "give all instances the same --registry-table to elect a leader")
	}
	return nil
}

func (s *sizing) fleetOptions() fleet.Options {
	set := s.settings.now()
	gauge, noTrigger := s.gauge(false), autoscale.Policy{}
	opts := fleet.Options{Region: s.opts.aws().Region,
		Namespace: loadNamespace(set), CPUMetric: s.readsMetric(), Work: s.inFlight.Work, Drain: s.life.Drain,
		Load:        func() autoscale.Inputs { return s.members.combinedLoad(gauge, noTrigger) },
		Unprotected: set.ScaleInProtection == config.ProtectionOff, IsLeader: s.cron.election.IsLeader,
		Log: s.opts.log("scale"), LogSDK: s.opts.Logger.SDK, Protected: s.protection.set, Timing: s.fleetTiming,
	}
	if group, found := strings.CutPrefix(s.target, config.ScaleGroup); found {
		opts.Group = group
	} else if service, found := strings.CutPrefix(s.target, config.ScaleService); found {
		opts.Cluster, opts.Service, _ = strings.Cut(service, "/")
	}
	return opts
}

func (s *sizing) readsMetric() bool {
	set := s.settings.now()
	return set.ScaleCPUSource == config.CPUFromCloudWatch && set.ScaleMeasureName == string(autoscale.CPUUtilization)
}

func (s *sizing) inTask() bool {
	return s.settings.now().ScaleInProtection != config.ProtectionOff && fleet.InTask()
}

func (s *sizing) protectTask(context.Context) error {
	if !s.inTask() {
		return nil
	}
	end, err := fleet.ProtectTask(s.inFlight.Work, s.fleetTiming, s.opts.log("scale"), s.protection.set)
	if err != nil {
		return invalidSettings(err)
	}
	s.life.onStop("the task protection", end)
	return nil
}

func (s *sizing) runScaling(context.Context) error {
	run, stop := context.WithCancel(context.Background())
	s.loop = s.newLoop(run)
	s.life.runUntilStop("the counts of the queues", s.work.depths.run) // scaling waits for the first counts

	var ended sync.WaitGroup
	ended.Go(func() {
		if s.target == config.ScaleProcesses { // a second process starting now could take the first one's port
			select {
			case <-s.life.ready:
			case <-run.Done():
			}
		}
		s.loop.Run(run)
	})
	ended.Go(func() { s.fleet.Run(run, s.work.depths.askedOnce()) })
	s.life.onStop("the scaling", func(context.Context) error { stop(); ended.Wait(); return nil })
	return nil
}

func (s *sizing) newLoop(run context.Context) *autoscale.Loop {
	log := s.opts.log("scale")
	group, isGroup := strings.CutPrefix(s.target, config.ScaleGroup)
	service, isService := strings.CutPrefix(s.target, config.ScaleService)
	switch {
	case s.target == config.ScaleProcesses && s.programs.app != nil:
		return s.replicaLoop(run, log)
	case isGroup:
		return s.fleetLoop(autoscale.LogEvents(log, "instances in the group "+group), isGroup)
	case isService:
		return s.fleetLoop(autoscale.LogEvents(log, "tasks of the service "+service), isGroup)
	}
	return s.adviceLoop(log)
}

func (s *sizing) adviceLoop(log *slog.Logger) *autoscale.Loop {
	set := s.settings.now()
	policy := scalePolicy(set, set.ScaleMinSize, set.ScaleMaxSize)
	events := autoscale.Events{Decided: func(d autoscale.Decided) { // at debug level: scalers query it anyway
		log.Debug("size advised", "desired", d.Decision.Desired, "reason", d.Decision.Why)
	}}
	return autoscale.New(s.gauge(false).Read, &autoscale.Advice{}, s.loopOptions(policy, loadInterval, events))
}

func (s *sizing) replicaLoop(run context.Context, log *slog.Logger) *autoscale.Loop {
	set := s.settings.now()
	policy := scalePolicy(set, set.ProcessesMin, maxReplicas(set))
	if policy.MaxSize < set.ProcessesMax {
		log.Warn("more processes than http-connections, some stay idle", "processes_max", set.ProcessesMax,
			"http_connections", set.HTTPConnections, "used", policy.MaxSize)
	}
	opts := s.loopOptions(policy, loadInterval, autoscale.LogEvents(log, "replicas of the app"))
	return autoscale.New(s.replicaGauge(policy.MaxSize).Read, s.programs.app.Scaler(run), opts)
}

func (s *sizing) fleetLoop(events autoscale.Events, isGroup bool) *autoscale.Loop {
	set := s.settings.now()
	policy := scalePolicy(set, set.ScaleMinSize, set.ScaleMaxSize)
	policy.Instances = true
	if isGroup {
		policy.MinSize, policy.MaxSize = groupBounds(s.opts.Config)
	}
	opts := s.loopOptions(policy, groupInterval, events)
	opts.IsLeader = s.fleet.IsLeader
	if isGroup && s.readsMetric() {
		opts.Metric = s.fleet.CPUMetric(policy)
	}
	gauge := s.gauge(false)
	load := func() autoscale.Inputs { return s.members.combinedLoad(gauge, policy) }
	return autoscale.New(load, s.fleet.Target(), opts)
}

// loopOptions also records the decisions, unless scaling is off.
func (s *sizing) loopOptions(p autoscale.Policy, usual time.Duration, events autoscale.Events) autoscale.Options {
	if logDecision := events.Decided; s.target != config.ScaleNone {
		events.Decided = func(d autoscale.Decided) {
			logDecision(d)
			s.decided(d)
		}
	}
	return autoscale.Options{Policy: p, Interval: loadIntervalOf(usual, p), Events: events}
}

func maxReplicas(s *config.Settings) int {
	return max(min(s.ProcessesMax, s.HTTPConnections), s.ProcessesMin)
}

func scalePolicy(s *config.Settings, least, most int) autoscale.Policy {
	p := autoscale.Policy{
		MinSize: least, MaxSize: most, Cooldown: s.ScaleCooldown,
		TargetBusy: float64(s.ScaleTargetBusy), DrainWithin: s.ScaleDrainWithin,
	}
	if s.ScaleMeasureName == "" {
		return p
	}

	p.Measure = autoscale.Measure(s.ScaleMeasureName)
	p.Statistic = autoscale.Statistic(s.ScaleStatistic)
	p.Unit = s.ScaleUnit
	p.LowerThreshold, p.UpperThreshold = s.ScaleLowerThreshold, s.ScaleUpperThreshold
	p.LowerBreachScaleIncrement, p.UpperBreachScaleIncrement = s.ScaleLowerBreachScaleIncrement,
		s.ScaleUpperBreachScaleIncrement
	p.Period = s.ScalePeriod
	p.EvaluationPeriods = s.ScaleEvaluationPeriods
	p.BreachDuration = s.ScaleBreachDuration
	return p
}

func loadIntervalOf(usual time.Duration, p autoscale.Policy) time.Duration {
	if p.Measure == "" {
		return usual
	}
	return min(usual, p.Period/2)
}

func (s *sizing) replicaGauge(most int) *autoscale.Gauge {
	g := s.gauge(true)
	slots := g.Slots
	g.Slots = func() int { return max(slots()/most, 1) }
	g.Ready = s.programs.app.ReadyReplicas
	return g
}

func (s *sizing) gauge(toOwnApp bool) *autoscale.Gauge {
	host := health.NewHost("")
	return &autoscale.Gauge{
		Slots:     func() int { return s.slots(toOwnApp) },
		Queues:    func() []autoscale.QueueState { return s.loads(toOwnApp) },
		CPU:       func() autoscale.Reading { return autoscale.Reading(host.Read().CPU) },
		Deploying: s.deploying,
	}
}

func (s *sizing) deploying() bool {
	return s.programs.app != nil && s.programs.app.Deployment() != nil && !s.programs.app.Deployment().Over()
}

func (s *sizing) slots(toOwnApp bool) int {
	concurrency := 0
	for _, l := range s.work.all {
		if q := l.queue.settings(); !toOwnApp || q.ToOwnApp() {
			concurrency += q.Concurrency
		}
	}
	return slotsOf(s.settings.now().HTTPConnections, concurrency)
}

func slotsOf(all, concurrency int) int { return max(min(all, concurrency), 1) }

func (s *sizing) loads(toOwnApp bool) (all []autoscale.QueueState) {
	now := time.Now()
	for _, l := range s.work.all {
		if toOwnApp && !l.queue.settings().ToOwnApp() {
			continue
		}
		r, known := s.work.depths.read(l.queue.name, now)
		st := l.worker.Status()
		all = append(all, autoscale.QueueState{
			Name: l.queue.name, Known: known, Backlog: r.backlog, Oldest: r.oldest, HasAge: r.hasAge,
			InWork: st.InWork, ServiceTime: st.ServiceTime, PerSecond: st.PerSecond, Paused: isPaused(st),
		})
	}
	return all
}

func (s *sizing) scale() autoscale.Scale {
	if !s.life.running() {
		return autoscale.NewScale(nil, 1)
	}
	st := s.loop.Status()
	return autoscale.NewScale(s.loads(false), cmp.Or(st.Desired, st.Policy.MinSize))
}

func (s *sizing) scalingStatus() *api.Scaling {
	protection := s.protection.text()
	if s.loop == nil || s.target == config.ScaleNone {
		if s.left != "" || protection != "" {
			return &api.Scaling{Target: config.ScaleNone, Problem: s.left, Protection: protection}
		}
		return nil
	}

	st := s.loop.Status()
	out := &api.Scaling{
		Target: s.target, MinSize: st.Policy.MinSize, MaxSize: st.Policy.MaxSize, Desired: st.Desired,
		Ready: st.Ready, IsLeader: s.fleet.IsLeader(), Problem: s.fleet.Problem(), Protection: protection,
	}
	if st.Failed != nil {
		out.Problem = fmt.Sprintf("%s: %v", st.Failed.Doing, st.Failed.Err)
	}
	out.Problem = cmp.Or(out.Problem, s.heldScaleIn())

	for _, d := range st.Decisions[:min(len(st.Decisions), api.ShownDecisions)] {
		out.Decisions = append(out.Decisions, decision(&d))
	}
	return out
}

func (s *sizing) heldScaleIn() string {
	if s.loop == nil || !s.fleet.IsLeader() {
		return ""
	}
	if all := s.loop.Status().Decisions; len(all) > 0 && all[0].Decided.Decision.ScaleInHeld() {
		return all[0].Decided.Decision.Why
	}
	return ""
}

func decision(d *autoscale.Entry) api.ScaleDecision {
	made := d.Decided.Decision
	return api.ScaleDecision{
		At: made.At, Until: d.Until, Times: d.Times, From: made.From, Desired: made.Desired, Rule: string(made.Rule),
		Why: made.Why, Applied: d.Decided.Applied, NotApplied: d.Decided.NotApplied,
	}
}

func (s *sizing) scaleDecisions() api.ScaleDecisions {
	out := api.ScaleDecisions{Advice: s.target == config.ScaleNone}
	if !s.life.running() || s.loop == nil {
		return out
	}
	for _, d := range s.loop.Status().Decisions {
		one := decision(&d)
		one.Inputs = &api.ScaleInputs{Ready: d.Inputs.Ready, Backlog: known(d.Inputs.Backlog),
			OldestSeconds: known(d.Inputs.OldestAge), BusyPercent: known(d.Inputs.Busy), CPUPercent: known(d.Inputs.CPU),
			Hold: d.Inputs.Hold}
		out.Decisions = append(out.Decisions, one)
	}
	return out
}

func known(r autoscale.Reading) *float64 {
	if !r.Known {
		return nil
	}
	return &r.Value
}

// protection is nil if this instance needs none.
type protection struct{ atomic.Pointer[bool] }

func (p *protection) set(on bool) { p.Store(&on) }

func (p *protection) text() string {
	switch on := p.Load(); {
	case on == nil:
		return ""
	case *on:
		return "on"
	}
	return "off"
}
