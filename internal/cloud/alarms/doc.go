// Package alarms describes the CloudWatch alarms and the dashboard of an environment.
//
//	Settings ---------+
//	alarms.yaml ------+--> Describe --> Set --> CloudFormation template
//	Resources of the -+                  |
//	bundle                               +----> Compare(Set, Found) --> Plan
//	                                                      ^              |
//	                                            Find -----+            Apply, Delete
//	                                              |                      |
//	                                              +------ CloudWatch ----+
//
// [Describe] is pure. The template and the calls are made from the same [Set], so that they
// cannot differ.
//
// # Names
//
// An alarm is called tendril/ENVIRONMENT/KIND/QUEUE, or without the queue where it is about
// the environment, and an alarm of a bundle tendril/ENVIRONMENT/NAME. The name of an
// environment has no slash, so no other environment has names with the same beginning. The
// dashboard is called tendril-ENVIRONMENT.
//
// # Invariants
//
//   - Nothing is changed or deleted that does not have both the name and the mark of the
//     environment: the tag tendril:environment of an alarm, a line of text in the dashboard. What has
//     the name alone, such as an alarm of a CloudFormation stack, is reported as foreign.
//   - Applying twice changes nothing the second time.
//   - An alarm is described only if tendril or Amazon publishes its metric. Each one that is
//     left out is named with the reason.
//
// # What it does not do
//
// It publishes no metrics: package telemetry does. It creates no SNS topic: alarms get the
// ARNs of existing ones.
package alarms
