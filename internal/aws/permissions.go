package aws

import (
	"slices"
	"strings"
)

// Feature is one thing that tendril does on AWS, with permissions of its own. Its value can be
// the Sid of a policy's statement: letters and digits.
type Feature string

// What an environment does while it runs.
const (
	Receive           Feature = "Receive"           // messages of a queue
	CountDeadLetters  Feature = "CountDeadLetters"  // of the queue's dead-letter queue
	SendDeadLetters   Feature = "SendDeadLetters"   // with the reason of their last failure
	CreateQueues      Feature = "CreateQueues"      // the environment's own
	Enqueue           Feature = "Enqueue"           // scheduled runs
	KeepRegistry      Feature = "KeepRegistry"      // leases, runs and pauses in a table
	CreateRegistry    Feature = "CreateRegistry"    // that table
	InvokeFunctions   Feature = "InvokeFunctions"   // Lambda functions
	PublishMetrics    Feature = "PublishMetrics"    // to CloudWatch
	FetchPayloads     Feature = "FetchPayloads"     // of S3
	DescribeGroups    Feature = "DescribeGroups"    // of EC2 Auto Scaling
	TakePartInGroup   Feature = "TakePartInGroup"   // size, protection, termination
	DescribeScaling   Feature = "DescribeScaling"   // what else scales a group of EC2 Auto Scaling
	DescribeServices  Feature = "DescribeServices"  // of Amazon ECS
	ResizeServices    Feature = "ResizeServices"    // of Amazon ECS
	FindScalers       Feature = "FindScalers"       // of services of Amazon ECS
	ManageDeadLetters Feature = "ManageDeadLetters" // look at messages, redrive, delete and purge
	ListQueues        Feature = "ListQueues"        // of the account
	TerminateQueues   Feature = "TerminateQueues"   // delete the environment's own
	TerminateRegistry Feature = "TerminateRegistry" // delete its table
	ListAlarms        Feature = "ListAlarms"        // of CloudWatch, in the account
	ManageAlarms      Feature = "ManageAlarms"      // the environment's own
	ManageDashboards  Feature = "ManageDashboards"  // the environment's own
)

// permissions are the calls of each feature, as "service:Operation Operation". Every call that
// this package makes is in it. The actions of a call are those of the Service Authorization
// Reference of AWS.
var permissions = map[Feature]string{
	Receive: "sqs:ReceiveMessage DeleteMessageBatch ChangeMessageVisibilityBatch GetQueueUrl GetQueueAttributes",
	// The dead-letter queue is only counted: no message is received from it.
	CountDeadLetters: "sqs:GetQueueUrl GetQueueAttributes",
	SendDeadLetters:  "sqs:SendMessageBatch",
	CreateQueues:     "sqs:GetQueueUrl ListQueueTags CreateQueue GetQueueAttributes SetQueueAttributes",
	Enqueue:          "sqs:GetQueueUrl SendMessageBatch",
	KeepRegistry: "dynamodb:GetItem BatchGetItem UpdateItem TransactWriteItems DescribeTable " +
		"DescribeTimeToLive",
	CreateRegistry:  "dynamodb:CreateTable UpdateTimeToLive",
	InvokeFunctions: "lambda:Invoke GetFunctionConfiguration",
	PublishMetrics:  "cloudwatch:PutMetricData",
	FetchPayloads:   "s3:GetObject",
	DescribeGroups:  "autoscaling:DescribeAutoScalingGroups DescribeAutoScalingInstances DescribeLifecycleHooks",
	TakePartInGroup: "autoscaling:SetDesiredCapacity SetInstanceProtection RecordLifecycleActionHeartbeat " +
		"CompleteLifecycleAction",
	DescribeScaling:  "autoscaling:DescribePolicies",
	DescribeServices: "ecs:DescribeServices DescribeTasks",
	ResizeServices:   "ecs:UpdateService",
	FindScalers:      "application-autoscaling:DescribeScalableTargets",
	ManageDeadLetters: "sqs:ReceiveMessage SendMessageBatch DeleteMessageBatch ChangeMessageVisibilityBatch GetQueueUrl " +
		"GetQueueAttributes PurgeQueue ListDeadLetterSourceQueues StartMessageMoveTask ListMessageMoveTasks " +
		"CancelMessageMoveTask",
	ListQueues:        "sqs:ListQueues",
	TerminateQueues:   "sqs:GetQueueUrl GetQueueAttributes ListQueueTags DeleteQueue",
	TerminateRegistry: "dynamodb:DescribeTable ListTagsOfResource Scan DeleteTable",
	ListAlarms:        "cloudwatch:DescribeAlarms",
	ManageAlarms:      "cloudwatch:PutMetricAlarm DeleteAlarms ListTagsForResource",
	ManageDashboards:  "cloudwatch:GetDashboard PutDashboard DeleteDashboards",
}

// callActions are the actions of calls that have others than their own name.
var callActions = map[string]string{
	"sqs:DeleteMessageBatch":           "DeleteMessage",
	"sqs:ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
	"sqs:SendMessageBatch":             "SendMessage",
	"sqs:CreateQueue":                  "CreateQueue TagQueue", // it has tags
	"cloudwatch:PutMetricAlarm":        "PutMetricAlarm TagResource",
	"dynamodb:CreateTable":             "CreateTable TagResource",
	"dynamodb:TransactWriteItems":      "ConditionCheckItem UpdateItem",
	"lambda:Invoke":                    "InvokeFunction",
}

// Actions are the IAM actions that the feature needs, sorted.
func (f Feature) Actions() []string {
	service, calls, _ := strings.Cut(permissions[f], ":")
	var actions []string
	for call := range strings.FieldsSeq(calls) {
		names, other := callActions[service+":"+call]
		if !other {
			names = call
		}
		for name := range strings.FieldsSeq(names) {
			actions = append(actions, service+":"+name)
		}
	}
	slices.Sort(actions)
	return slices.Compact(actions)
}
