// Package alarms describes the CloudWatch alarms and the dashboard of an environment.
//
//	Settings ---------+
//	alarms.yaml ------+--> Describe --> Set --> CloudFormation template
//	Resources of the -+
//	bundle
//
// Alarm names are tendril/ENVIRONMENT/KIND[/QUEUE], or tendril/ENVIRONMENT/NAME for alarms from a bundle.
package alarms
