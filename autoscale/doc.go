// Package autoscale turns backlog and load into a desired size.
//
// The size is a number of app processes on this machine, or of instances in a
// fleet: the policy does not know which. A [Loop] reads a [Gauge], asks the
// [Policy], and sets a [Target].
//
//	 Gauge                     Policy.Decide                       Target
//	backlog, age,   ┌──────────────────────────────────────┐
//	busy share, CPU │ outside Min..Max?       to the bound │   processes here,
//	 ──────────────>│ held, or none ready?    hold         ├──> an Auto Scaling
//	 every 10 s     │ a measure missing?      no scale-in  │    group, or Advice
//	   size, ready  │ Measure set?    trigger │ else track │    for /api/v1/scale
//	<───────────────└──────────────────────────────────────┘
//	                      │
//	                      v  Events, Status: the last hundred decisions, in words
//
// Two laws are on offer.
//
// Tracking is the default. The size wanted is the larger of two: the busy
// slots of today spread so that TargetBusy percent are in use, and the waiting
// messages shared so that they are done within DrainWithin. It grows when every
// reading of the last seconds asks for more, and shrinks to the most that any
// reading of the last minutes asked for.
//
// A trigger, for who names a Measure, means what the options of the same names
// mean in aws:autoscaling:trigger: a statistic over a period, outside of a
// threshold for so many periods in a row, then an increment and a cooldown.
//
// Beside the loop, protect.go keeps an instance from being scaled in while it
// does long work, depart.go drains one that its group has chosen to terminate,
// publish.go hands two figures to a service of metrics, scale.go is what an
// outside scaler reads.
//
// # Invariants
//
//   - The policy is a function of (state, inputs, now). It holds whatever it is
//     not sure of: a missing measure never shrinks anything.
//   - A scale-in never leaves fewer than the work in hand needs, as far as that
//     is known, nor a size at which the trigger would grow at once again.
//   - The size set lies within MinSize and MaxSize.
//   - What was measured before a change of size is no evidence for a trigger
//     after it, whoever made the change.
//   - Scaling is beside the way of a message: with this package stopped, work
//     goes on with the size there is.
//
// # When something fails
//
// A gauge or target that fails is an event and a hold; the next interval tries
// again. After a gap in the readings (half of ScaleInAfter, or a period) what
// was gathered before is forgotten. A group that refuses a size is asked again.
// Protection that cannot be set is tried again with growing pauses.
//
// # What it does not do
//
// It does not scale to zero, for it runs in what it scales. It does not choose
// which process or instance goes, and does not drain it: that is the target's
// part. It does not foresee: a load that comes every morning is met when it
// comes.
package autoscale
