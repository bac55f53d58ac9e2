// Package autoscale turns backlog and load into a desired size.
//
// The size is the number of app processes on this machine, or of instances in a fleet; a policy works the same for
// both. A [Loop] reads a [Gauge], asks the [Policy], and sets a [Target].
//
//	 Gauge                     Policy.Decide                       Target
//	backlog, age,   ┌──────────────────────────────────────┐
//	busy slots, CPU │ outside Min..Max?       limit        │   processes here,
//	 ──────────────>│ held, or none ready?    hold         ├──> an Auto Scaling
//	 every 10 s     │ measure missing?        no scale-in  │    group, or Advice
//	   size, ready  │ Measure set?    trigger │ else track │    for /api/v1/scale
//	<───────────────└──────────────────────────────────────┘
//	                      │
//	                      v  Events, Status: the last hundred decisions
//
// By default, a policy tracks the load. The desired size is the larger of the size at which TargetBusy percent of the
// slots are busy and the size that finishes the waiting messages within DrainWithin. If Measure is set, the policy is
// a trigger with the options of aws:autoscaling:trigger.
//
// # Invariants
//
//   - A policy is a function of (state, inputs, now). If uncertain, it keeps the size: a missing measure never
//     causes a scale-in.
//   - A scale-in never leaves fewer processes than the known work in flight needs, nor a size at which the trigger
//     would immediately scale out again.
//   - The desired size is between MinSize and MaxSize.
//   - A trigger ignores readings from before the last change of size, whatever caused the change.
//   - Deliveries do not depend on scaling: without this package, work continues at the current size.
//
// # Errors
//
// If a gauge or target fails, the size is kept and the next interval tries again. After a gap in the readings (half
// of ScaleInAfter, or a period) earlier readings are dropped. Failed calls for scale-in protection are retried with
// increasing delays.
//
// # Limits
//
// The size never becomes zero, because this package runs in what it scales. The target selects and drains processes
// or instances. Policies react to load and do not predict it.
package autoscale
