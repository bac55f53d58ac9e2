// Package fleet makes this process a member of a group of instances that share a queue.
//
//	Start ── find this instance and its group ── retried every minute
//	           |
//	           |── long deliveries: protected from scale-in
//	           '── termination: Drain ── Close ── lifecycle action completed
//
// The group is an EC2 Auto Scaling group or an Amazon ECS service. Failures are logged and never delay deliveries.
package fleet
