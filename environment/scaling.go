package environment

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"tendril/autoscale"
	"tendril/config"
	"tendril/console"
	"tendril/health"
)

// The time between two readings of the load; longer where each asks a group, whose figures
// change once a minute.
const (
	loadInterval  = 10 * time.Second
	groupInterval = 30 * time.Second
)

// runScaling lets the size follow the load until the stop. It is the first to
// be stopped, so that nothing grows or shrinks during a drain.
func (e *Environment) runScaling(context.Context) error {
	run, stop := context.WithCancel(context.Background())
	var err error
	if e.scaling, err = e.newScaling(run); err != nil {
		stop()
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	ended := make(chan struct{})
	go func() { e.scaling.Run(run); close(ended) }()
	e.fleet.Start(run, e.depths.Asked())
	e.steps.push("the scaling", func(context.Context) error {
		stop()
		<-ended
		e.fleet.WaitLeader()
		return nil
	})
	return nil
}

// newScaling makes the loop for what Settings.ScaleTarget names. There always is one: where
// nothing is scaled it works out an advice for an external scaler.
func (e *Environment) newScaling(run context.Context) (*autoscale.Loop, error) {
	log := e.Logger.With("component", "scale")
	opts := autoscale.Options{Policy: scalePolicy(e.s, e.s.ScaleMinSize, e.s.ScaleMaxSize)}
	group, isGroup := strings.CutPrefix(e.s.ScaleTarget, config.ScaleGroup)
	switch {
	case e.s.ScaleTarget == config.ScaleProcesses && e.app != nil:
		opts.Policy.MinSize, opts.Policy.MaxSize = e.s.ProcessesMin, maxReplicas(e.s)
		if opts.Policy.MaxSize < e.s.ProcessesMax {
			log.Warn("more processes than deliveries allowed, not all of them are used", "processes_max", e.s.ProcessesMax,
				"http_connections", e.s.HTTPConnections, "used", opts.Policy.MaxSize)
		}
		opts.Interval = loadIntervalOf(loadInterval, opts.Policy)
		opts.Events = autoscale.LogEvents(log, "replicas of the app")
		return autoscale.New(e.replicaGauge(opts.Policy.MaxSize).Read, e.app.Scaler(run), opts)
	case isGroup && e.fleet != nil:
		// The group's own bounds hold unless others are set.
		if !e.Config.IsSet("scale-min-size") {
			opts.Policy.MinSize = 1
		}
		if !e.Config.IsSet("scale-max-size") {
			opts.Policy.MaxSize = autoscale.MaxSize
		}
		opts.IsLeader = e.fleet.IsLeader
		opts.Interval = loadIntervalOf(groupInterval, opts.Policy)
		opts.Events = autoscale.LogEvents(log, "instances in the group "+group)
		return autoscale.New(e.instanceGauge().Read, e.fleet.Target(), opts)
	}
	opts.Interval = loadIntervalOf(loadInterval, opts.Policy)
	opts.Events.Decided = func(d autoscale.Decided) { // at debug, because it is read by whoever wants it
		log.Debug("size advised", "desired", d.Desired, "reason", d.Why)
	}
	return autoscale.New(e.instanceGauge().Read, &autoscale.Advice{}, opts)
}

// maxReplicas is the largest number of replicas that can all have a delivery in work.
func maxReplicas(s *config.Settings) int {
	return max(min(s.ProcessesMax, s.HTTPConnections), s.ProcessesMin)
}

// scalePolicy is the policy of the settings. A chosen 0 means none, which the
// policy says as less than 0.
func scalePolicy(s *config.Settings, least, most int) autoscale.Policy {
	p := autoscale.Policy{
		MinSize: least, MaxSize: most, Cooldown: zeroMeant(s.ScaleCooldown),
		TargetBusy: float64(s.ScaleTargetBusy), DrainWithin: s.ScaleDrainWithin,
	}
	if s.ScaleMeasureName == "" {
		return p
	}
	p.Measure, p.Statistic, p.Unit = autoscale.Measure(s.ScaleMeasureName), autoscale.Statistic(s.ScaleStatistic),
		s.ScaleUnit
	p.LowerThreshold, p.UpperThreshold = s.ScaleLowerThreshold, s.ScaleUpperThreshold
	p.LowerBreachScaleIncrement, p.UpperBreachScaleIncrement = s.ScaleLowerBreachScaleIncrement,
		s.ScaleUpperBreachScaleIncrement
	p.Period, p.EvaluationPeriods, p.BreachDuration = s.ScalePeriod, s.ScaleEvaluationPeriods, s.ScaleBreachDuration
	return p
}

// loadIntervalOf is the time between two readings: two in a period at least.
func loadIntervalOf(usual time.Duration, p autoscale.Policy) time.Duration {
	if p.Measure == "" {
		return usual
	}
	return min(usual, p.Period/2)
}

// instanceGauge measures for what has instances like this one.
func (e *Environment) instanceGauge() *autoscale.Gauge {
	return e.gauge(func(*pipeline) bool { return true })
}

// replicaGauge measures for the replicas of the app on this machine, of which there
// are at most so many.
func (e *Environment) replicaGauge(most int) *autoscale.Gauge {
	g := e.gauge(func(l *pipeline) bool { return l.settings().ToOwnApp() })
	g.Slots, g.Ready = max(g.Slots/most, 1), e.app.ReadyReplicas
	return g
}

// gauge measures the load of some pipelines.
func (e *Environment) gauge(selected func(*pipeline) bool) *autoscale.Gauge {
	concurrency := 0
	for _, l := range e.lines {
		if selected(l) {
			concurrency += l.settings().Concurrency
		}
	}
	host := health.NewHost("")
	return &autoscale.Gauge{
		Slots:     slotsOf(e.s.HTTPConnections, concurrency),
		Queues:    func() []autoscale.QueueState { return e.loads(selected) },
		CPU:       func() autoscale.Reading { return autoscale.Reading(host.Read().CPU) },
		Deploying: func() bool { return e.app != nil && e.app.Deployment() != nil && !e.app.Deployment().Over() },
	}
}

// slotsOf is how many deliveries can be in work at once, of the queues with this concurrency.
func slotsOf(all, concurrency int) int { return max(min(all, concurrency), 1) }

// loads are the states of some pipelines, as scaling sees them.
func (e *Environment) loads(selected func(*pipeline) bool) (all []autoscale.QueueState) {
	now := time.Now()
	for _, l := range e.lines {
		if !selected(l) {
			continue
		}
		r, known := e.depths.Read(l.queue.name, now)
		st := l.worker.Status()
		all = append(all, autoscale.QueueState{
			Name: l.queue.name, Known: known, Backlog: r.Backlog, Oldest: r.Oldest, HasAge: r.HasAge,
			InWork: st.InWork, ServiceTime: st.ServiceTime, PerSecond: st.PerSecond, Paused: isPaused(st),
		})
	}
	return all
}

// scale answers an external scaler.
func (e *Environment) scale() autoscale.Scale {
	if !e.running() {
		return autoscale.NewScale(nil, 1)
	}
	st := e.scaling.Status()
	return autoscale.NewScale(e.loads(func(*pipeline) bool { return true }), cmp.Or(st.Desired, st.Policy.MinSize))
}

// scalingStatus is what the console shows; nil where nothing is scaled.
func (e *Environment) scalingStatus() *console.Scaling {
	if e.scaling == nil || e.s.ScaleTarget == config.ScaleNone {
		return nil
	}
	st := e.scaling.Status()
	out := &console.Scaling{
		Target: e.s.ScaleTarget, MinSize: st.Policy.MinSize, MaxSize: st.Policy.MaxSize, Desired: st.Desired,
		Ready: st.Ready, IsLeader: e.fleet.IsLeader(), Problem: e.fleet.Problem(),
	}
	if st.Failed != nil {
		out.Problem = fmt.Sprintf("%s: %v", st.Failed.Doing, st.Failed.Err)
	}
	for _, d := range st.Decisions[:min(len(st.Decisions), console.ShownDecisions)] {
		out.Decisions = append(out.Decisions, console.ScaleDecision{
			At: d.At, Until: d.Until, Times: d.Times, From: d.From, Desired: d.Desired, Rule: string(d.Rule), Why: d.Why,
			Applied: d.Applied, NotApplied: d.NotApplied,
		})
	}
	return out
}
