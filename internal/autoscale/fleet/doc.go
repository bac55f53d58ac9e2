// Package fleet makes this process a member of a group of instances that share a queue.
//
// The group is an EC2 Auto Scaling group or an Amazon ECS service. Package autoscale determines its size.
//
//	Start ── find this instance and its group ── retried every minute
//	           |
//	           |── long deliveries: protected from scale-in
//	           '── termination: Drain ── Close ── lifecycle action completed
//
// A [Fleet] also publishes the load to CloudWatch for external scaling policies. Failures are logged and never delay
// deliveries.
package fleet
