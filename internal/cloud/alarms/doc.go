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
// Alarm names are tendril/ENVIRONMENT/KIND[/QUEUE], or tendril/ENVIRONMENT/NAME for alarms from a bundle. Environment
// names contain no slash, so prefixes are unambiguous. The dashboard's name is tendril-ENVIRONMENT.
//
// Resources are changed or deleted only if they have both the environment's name and its mark: the tag
// tendril:environment of an alarm, a line of text in the dashboard. Others, such as an alarm of a CloudFormation
// stack, are reported as foreign. Applying a set again changes nothing.
//
// Only alarms on metrics that tendril or Amazon publishes are described; the others are reported with a reason. SNS
// topics must exist already.
package alarms
