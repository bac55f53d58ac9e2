// Package alarms describes the CloudWatch alarms and the dashboard of an environment.
//
//	Settings ---------+
//	alarms.yaml ------+--> Describe --> Set --> CloudFormation template
//	Resources of the -+
//	bundle
//
// Alarm names are tendril/ENVIRONMENT/KIND[/QUEUE], or tendril/ENVIRONMENT/NAME for alarms from a bundle. The
// dashboard's name is tendril-ENVIRONMENT.
//
// Only alarms on metrics that tendril or AWS publishes are described; the others are reported with a reason. SNS
// topics must exist already.
package alarms
