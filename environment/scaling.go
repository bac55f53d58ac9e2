package environment

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"tendril/autoscale"
	"tendril/config"
	"tendril/console"
	"tendril/fleet"
)

const (
	// gaugeRhythm is the time between two readings of the load; groupRhythm that
	// where each asks a group, and the figures change once a minute.
	gaugeRhythm = 10 * time.Second
	groupRhythm = 30 * time.Second
)

// scaling is the part that chooses a size. There always is one: where nothing is
// scaled it works out an advice for a scaler outside.
type scaling struct {
	loop *autoscale.Loop
	// target is Settings.ScaleTarget.
	target string
}

// runScaling lets the size follow the load until the stop. It is the first to
// be stopped, so that nothing grows or shrinks during a drain.
func (e *Environment) runScaling(context.Context) error {
	run, stop := context.WithCancel(context.Background())
	s, err := e.newScaling(run)
	if err != nil {
		stop()
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	e.scaling = s
	ended := make(chan struct{})
	go func() { s.loop.Run(run); close(ended) }()
	e.fleet.run(run, e.depths.Asked())
	e.steps.push("the scaling", func(context.Context) error {
		stop()
		<-ended
		e.fleet.rest()
		return nil
	})
	return nil
}

// newScaling makes the loop for what Settings.ScaleTarget names.
func (e *Environment) newScaling(run context.Context) (*scaling, error) {
	s := &scaling{target: e.s.ScaleTarget}
	policy := e.scalePolicy(e.s.ScaleMinSize, e.s.ScaleMaxSize)
	opts := autoscale.Options{Interval: rhythm(gaugeRhythm, policy)}
	group, isGroup := strings.CutPrefix(s.target, config.ScaleGroup)
	var target autoscale.Target = &autoscale.Advice{}
	gauge := e.instanceGauge()
	switch {
	case s.target == config.ScaleProcesses && e.app != nil:
		policy.MinSize, policy.MaxSize = e.s.ProcessesMin, e.mostCopies()
		gauge = e.copiesGauge(policy.MaxSize)
		e.warnOfIdleReplicas()
		target, opts.Events = e.app.Scaler(run), e.scaleEvents("copy of the app", "copies of the app")
	case isGroup && e.fleet != nil:
		policy = e.withinGroup(policy)
		target, opts.InCharge = &fleet.Group{Group: e.fleet.group}, e.fleet.inCharge
		opts.Interval, opts.Events = rhythm(groupRhythm, policy),
			e.scaleEvents("instance in the group "+group, "instances in the group "+group)
	default:
		// An advice: said when somebody asks.
		opts.Events.Decided = func(d autoscale.Decided) {
			e.report.note(slog.LevelDebug, "scale", fmt.Sprintf("a size of %d is advised: %s", d.Desired, d.Why))
		}
	}
	opts.Policy = policy
	var err error
	s.loop, err = autoscale.New(gauge, target, opts)
	return s, err
}

// withinGroup leaves the size to the group's own bounds where nobody chose others.
func (e *Environment) withinGroup(p autoscale.Policy) autoscale.Policy {
	if !e.Config.IsSet("scale-min-size") {
		p.MinSize = 1
	}
	if !e.Config.IsSet("scale-max-size") {
		p.MaxSize = autoscale.MaxSize
	}
	return p
}

// mostCopies is the largest number of copies of use: one that never gets a
// message because others may have all there may be in work is of none.
func (e *Environment) mostCopies() int {
	return max(min(e.s.ProcessesMax, e.s.HTTPConnections), e.s.ProcessesMin)
}

// warnOfIdleReplicas warns of settings that allow more replicas than can have work.
func (e *Environment) warnOfIdleReplicas() {
	if most := e.mostCopies(); most < e.s.ProcessesMax {
		e.Logger.Warn("more processes than deliveries allowed, not all of them are used", "component", "scale",
			"processes_max", e.s.ProcessesMax, "http_connections", e.s.HTTPConnections, "used", most)
	}
}

// scalePolicy is the policy of the settings. A chosen 0 means none, which the
// policy says as less than 0.
func (e *Environment) scalePolicy(least, most int) autoscale.Policy {
	s := e.s
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

// rhythm is the time between two readings: two in a period at least.
func rhythm(usual time.Duration, p autoscale.Policy) time.Duration {
	if p.Measure == "" {
		return usual
	}
	return min(usual, p.Period/2)
}

// scaleEvents tells what is decided about the number of what is called one or
// many.
func (e *Environment) scaleEvents(one, many string) autoscale.Events {
	note := func(level slog.Level, text string, attrs ...slog.Attr) {
		e.report.note(level, "scale", text, attrs...)
	}
	return autoscale.Events{
		Decided: func(d autoscale.Decided) {
			attrs := []slog.Attr{slog.Int("from", d.From), slog.Int("desired", d.Desired), slog.String("reason", string(d.Rule))}
			switch {
			case d.Applied:
				note(slog.LevelInfo, fmt.Sprintf("%s wanted, was %d: %s", plural(d.Desired, one, many), d.From, d.Why), attrs...)
			case d.Changes():
				note(slog.LevelDebug,
					fmt.Sprintf("%s wanted, is %d: %s; not done: %s", plural(d.Desired, one, many), d.From, d.Why, d.NotApplied),
					attrs...)
			default:
				note(slog.LevelDebug, fmt.Sprintf("%s, as before: %s", plural(d.Desired, one, many), d.Why), attrs...)
			}
		},
		Failed: func(f autoscale.Failed) {
			level := slog.LevelDebug
			if f.InARow == 1 {
				level = slog.LevelWarn
			}
			note(level, fmt.Sprintf("%s failed: %v", f.Doing, f.Err), slog.Int("failures", f.InARow))
		},
		Protected: func(p autoscale.Protected) {
			verb := "is no longer kept"
			if p.On {
				verb = "is kept"
			}
			note(slog.LevelDebug, "this "+one+" "+verb+" from being taken away while it works")
		},
		Departing: func(autoscale.Departing) {
			note(slog.LevelInfo, "the group takes this instance away: it drains, and the group waits")
		},
		Departed: func(d autoscale.Departed) {
			if d.Err != nil {
				note(slog.LevelWarn, "this instance leaves its group: "+d.Err.Error())
				return
			}
			note(slog.LevelInfo, "this instance has drained, and the group was told")
		},
	}
}

// scale answers a scaler outside.
func (e *Environment) scale() autoscale.Scale {
	if !e.running() {
		return autoscale.NewScale(nil, 1)
	}
	queues, now := map[string]autoscale.QueueLoad{}, time.Now()
	for _, l := range e.lines {
		if r, ok := e.depths.Read(l.queue.name, now); ok {
			queues[l.queue.name] = autoscale.QueueLoad{Backlog: r.Backlog, OldestSeconds: int64(r.Oldest / time.Second)}
		}
	}
	st := e.scaling.loop.Status()
	return autoscale.NewScale(queues, cmp.Or(st.Desired, st.Policy.MinSize))
}

// scalingStatus is what the console shows; nil where nothing is scaled.
func (e *Environment) scalingStatus() *console.Scaling {
	if e.scaling == nil || e.scaling.target == config.ScaleNone {
		return nil
	}
	st := e.scaling.loop.Status()
	out := &console.Scaling{
		Target: e.scaling.target, MinSize: st.Policy.MinSize, MaxSize: st.Policy.MaxSize, Desired: st.Desired,
		Ready:    st.Ready,
		IsLeader: e.fleet.inCharge(), Problem: e.fleet.problem(),
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
