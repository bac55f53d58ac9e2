// Package autoscale turns backlog and load into a desired size.
//
// The size is the number of app processes on this machine, or of instances in a fleet. A [Loop] reads a [Gauge], asks
// the [Policy], and sets a [Target].
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
// By default, a policy tracks the load. The desired size is the larger of two: the size at which TargetBusy percent
// of the slots are busy, and the size that finishes the waiting messages within DrainWithin. If Measure is set, the
// policy is a trigger with the options of aws:autoscaling:trigger.
//
//   - A missing measure never causes a scale-in.
//   - A scale-in never leaves too few processes for the known work in flight, nor a size at which the trigger would
//     immediately scale out again.
//   - A trigger ignores readings from before the last change of size, whatever caused the change.
//   - If a gauge or target fails, the size is kept and the next interval tries again. After a gap in the readings (half
//     of ScaleInAfter, or a period) earlier readings are dropped.
//   - The size never becomes zero, because this package runs in the instances that it scales.
package autoscale
