// Package fleet makes this process a member of a group of instances that share a queue.
//
// The group is an EC2 Auto Scaling group, or the tasks of an Amazon ECS service. What
// size it should have is decided in package autoscale. This package is about the one
// member that this process is:
//
//	Start ── which instance am I, in which group? ── asked again every minute
//	           |
//	           |── long work in flight: protected from scale-in
//	           '── the group terminates it: Drain ── Close ── the group goes on
//
// A [Fleet] finds out which instance of which group it is from the instance's metadata and
// the Auto Scaling API, in the background. While deliveries run for long it protects the
// instance from scale-in. When the group terminates the instance, it drains the process, waits
// until [Fleet.Close] says that everything has ended, and then completes the lifecycle action,
// so that the group waits neither too short nor too long.
//
// It also writes the load to CloudWatch, for policies that live there. In a task of Amazon ECS it
// sizes or counts the tasks of the service, and [ProtectTask] does the part of protection.
//
// [Find] tells which group or service this process is in, and whether something else scales it.
//
// Nothing here stands in the way of a message: what cannot be reached is logged, and the work goes on.
package fleet
