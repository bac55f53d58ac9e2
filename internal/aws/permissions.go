package aws

import (
	"slices"
	"strings"
)

// Feature is an activity that needs AWS permissions. Its value is a valid statement ID.
type Feature string

// Features of an environment and of the commands that manage its resources.
const (
	Receive           Feature = "Receive"
	CountDeadLetters  Feature = "CountDeadLetters"
	SendDeadLetters   Feature = "SendDeadLetters" // including the reason for the last failure
	CreateQueues      Feature = "CreateQueues"    // of the environment
	Enqueue           Feature = "Enqueue"         // scheduled runs
	KeepRegistry      Feature = "KeepRegistry"    // leases, runs and pauses
	CreateRegistry    Feature = "CreateRegistry"
	InvokeFunctions   Feature = "InvokeFunctions"
	PublishMetrics    Feature = "PublishMetrics"    // to CloudWatch
	FetchPayloads     Feature = "FetchPayloads"     // from S3
	DescribeGroups    Feature = "DescribeGroups"    // of EC2 Auto Scaling
	TakePartInGroup   Feature = "TakePartInGroup"   // size, protection, termination
	DescribeScaling   Feature = "DescribeScaling"   // policies of EC2 Auto Scaling groups
	DescribeServices  Feature = "DescribeServices"  // of Amazon ECS
	ResizeServices    Feature = "ResizeServices"    // of Amazon ECS
	FindScalers       Feature = "FindScalers"       // policies of ECS services
	ManageDeadLetters Feature = "ManageDeadLetters" // read, redrive, delete and purge
	ListQueues        Feature = "ListQueues"        // of the account
	TerminateQueues   Feature = "TerminateQueues"   // of the environment
	TerminateRegistry Feature = "TerminateRegistry" // the environment's table
	ListAlarms        Feature = "ListAlarms"        // of the account
	ManageAlarms      Feature = "ManageAlarms"      // of the environment
	ManageDashboards  Feature = "ManageDashboards"  // of the environment
)

// permissions lists each feature's API calls, including every call of this package. Source: AWS Service Authorization
// Reference.
var permissions = map[Feature]string{
	Receive:          "sqs:ReceiveMessage DeleteMessageBatch ChangeMessageVisibilityBatch GetQueueUrl GetQueueAttributes",
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

// callActions lists calls with actions other than their own name.
var callActions = map[string]string{
	"sqs:DeleteMessageBatch":           "DeleteMessage",
	"sqs:ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
	"sqs:SendMessageBatch":             "SendMessage",
	"sqs:CreateQueue":                  "CreateQueue TagQueue", // includes tags
	"cloudwatch:PutMetricAlarm":        "PutMetricAlarm TagResource",
	"dynamodb:CreateTable":             "CreateTable TagResource",
	"dynamodb:TransactWriteItems":      "ConditionCheckItem UpdateItem",
	"lambda:Invoke":                    "InvokeFunction",
}

// Actions returns the required IAM actions, sorted.
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
