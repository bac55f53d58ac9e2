// Package alarms describes the CloudWatch alarms and the dashboard of an environment.
//
//	Settings ---------+
//	alarms.yaml ------+--> Describe --> Set --> CloudFormation template
//	Resources of the -+                  |
//	bundle                               +----> Compare(Set, Found) --> steps
//	                                                      ^              |
//	                                            Find -----+            Apply, Delete
//	                                              |                      |
//	                                              +------ CloudWatch ----+
//
// [Describe] is a pure function. The template and the API calls use the same [Set], so they cannot differ.
//
// # Names
//
// Alarm names are tendril/ENVIRONMENT/KIND/QUEUE, without /QUEUE for the environment itself, and
// tendril/ENVIRONMENT/NAME for alarms from a bundle. Environment names contain no slash, so prefixes are unambiguous.
// The dashboard's name is tendril-ENVIRONMENT.
//
// # Invariants
//
//   - Resources are changed or deleted only if they have both the environment's name and its mark: the tag
//     tendril:environment of an alarm, a line of text in the dashboard. Others, such as an alarm of a CloudFormation
//     stack, are reported as foreign.
//   - Applying a set again changes nothing.
//   - Only alarms on metrics that tendril or Amazon publishes are described. Omitted alarms are reported with a
//     reason.
//
// Package telemetry publishes the metrics. SNS topics must exist already; alarms only contain their ARNs.
package alarms
