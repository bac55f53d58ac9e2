package aws

import (
	"slices"
	"strings"
)

// Feature is an activity that needs AWS permissions. It is also a valid statement ID.
type Feature string

// The features of an environment and of the commands that manage its resources.
const (
	Receive           Feature = "Receive"
	CountDeadLetters  Feature = "CountDeadLetters"
	SendDeadLetters   Feature = "SendDeadLetters" // with the last failure's reason
	CreateQueues      Feature = "CreateQueues"
	Enqueue           Feature = "Enqueue"
	KeepRegistry      Feature = "KeepRegistry"
	CreateRegistry    Feature = "CreateRegistry"
	InvokeFunctions   Feature = "InvokeFunctions"
	PublishMetrics    Feature = "PublishMetrics"
	ReadMetrics       Feature = "ReadMetrics"
	FetchPayloads     Feature = "FetchPayloads"
	KeepArchives      Feature = "KeepArchives"
	CheckArchives     Feature = "CheckArchives"
	DescribeGroups    Feature = "DescribeGroups"
	TakePartInGroup   Feature = "TakePartInGroup" // set the size and the protection, complete terminations
	DescribeScaling   Feature = "DescribeScaling" // of EC2 Auto Scaling groups
	DescribeServices  Feature = "DescribeServices"
	ResizeServices    Feature = "ResizeServices"
	FindScalers       Feature = "FindScalers" // of ECS services
	ManageDeadLetters Feature = "ManageDeadLetters"
	ListQueues        Feature = "ListQueues"
	TerminateQueues   Feature = "TerminateQueues"
	TerminateRegistry Feature = "TerminateRegistry"
)

// permissions lists the AWS API calls of this package, except for [IAM].
//
// Source: AWS Service Authorization Reference.
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
	ReadMetrics:     "cloudwatch:GetMetricStatistics",
	FetchPayloads:   "s3:GetObject",
	KeepArchives:    "s3:GetObject PutObject DeleteObject",
	CheckArchives:   "s3:HeadBucket",
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
}

// callActions contains the IAM actions of calls that have a different name or need several actions.
var callActions = map[string]string{
	"sqs:DeleteMessageBatch":           "DeleteMessage",
	"sqs:ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
	"sqs:SendMessageBatch":             "SendMessage",
	"sqs:CreateQueue":                  "CreateQueue TagQueue",
	"dynamodb:CreateTable":             "CreateTable TagResource",
	"dynamodb:TransactWriteItems":      "ConditionCheckItem UpdateItem",
	"lambda:Invoke":                    "InvokeFunction",
	"s3:HeadBucket":                    "ListBucket",
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
