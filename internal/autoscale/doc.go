// Package autoscale turns backlog and load into a desired size.
//
// The size is a number of app processes on this machine, or of instances in a
// fleet: the policy does not know which. A [Loop] reads a [Gauge], asks the
// [Policy], and sets a [Target].
//
//	 Gauge                     Policy.Decide                       Target
//	backlog, age,   ┌──────────────────────────────────────┐
//	busy slots, CPU │ outside Min..Max?       to the bound │   processes here,
//	 ──────────────>│ held, or none ready?    hold         ├──> an Auto Scaling
//	 every 10 s     │ a measure missing?      no scale-in  │    group, or Advice
//	   size, ready  │ Measure set?    trigger │ else track │    for /api/v1/scale
//	<───────────────└──────────────────────────────────────┘
//	                      │
//	                      v  Events, Status: the last hundred decisions, in words
//
// There are two kinds of policy.
//
// Tracking is the default. The desired size is the larger of two: the number at which
// TargetBusy percent of the slots would be busy, and the number that finishes the
// waiting messages within DrainWithin.
//
// A trigger is used when Measure is set. Its options mean the same as in
// aws:autoscaling:trigger.
//
// # Invariants
//
//   - The policy is a function of (state, inputs, now). It holds the size when it is not
//     sure: a missing measure never causes a scale-in.
//   - A scale-in never leaves fewer than the work in progress needs, as far as that is
//     known, nor a size at which the trigger would scale out again at once.
//   - The desired size is within MinSize and MaxSize.
//   - A trigger ignores values that were measured before the last change of size,
//     whoever made the change.
//   - Scaling is independent of deliveries: when this package stops, work continues with
//     the current size.
//
// # When something fails
//
// A failing gauge or target is reported as an event and the size is held; the next
// interval tries again. After a gap in the readings (half of ScaleInAfter, or a period)
// earlier readings are dropped. A group that rejects a size is called again. Protection
// that cannot be set is retried with growing delays.
//
// # What it does not do
//
// It does not scale to zero, because it runs in what it scales. It does not choose
// which process or instance stops, and does not drain it: the target does. It does not
// predict: it reacts to load that has arrived.
package autoscale
