// Package fleet makes this process a member of a group of instances that share a queue.
//
// The group is an EC2 Auto Scaling group or an Amazon ECS service. Package autoscale determines its size.
//
//	Start ── find this instance and its group ── retried every minute
//	           |
//	           |── long deliveries: protected from scale-in
//	           '── termination: Drain ── Close ── lifecycle action completed
//
// A [Fleet] finds its group in the background. When the group terminates the instance, the Fleet drains the process,
// waits for [Fleet.Close] and then completes the lifecycle action. It also publishes the load to CloudWatch for
// external scaling policies. In an ECS task, it counts or sets the service's tasks, and [ProtectTask] protects the
// task. Failures are logged and never delay deliveries.
package fleet
