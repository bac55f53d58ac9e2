// Package autoscale turns backlog and load into a desired size.
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
// The size is the number of app processes on this machine, or of instances in a fleet. Tracking keeps TargetBusy
// percent of the slots busy and finishes the waiting messages within DrainWithin. A trigger has the options of
// aws:autoscaling:trigger.
//
//   - A missing measure never causes a scale-in.
//   - Except at the limits, a scale-in never leaves too few processes for the known work in flight, nor a size at which
//     the trigger would immediately scale out again.
//   - A trigger ignores readings from before the last change of size.
//   - If a gauge or target fails, the size is kept. After a gap in the readings of more than 2.5 minutes, or of a
//     trigger's period, earlier readings are discarded.
//   - The size never becomes zero, because this package runs in the instances that it scales.
package autoscale
