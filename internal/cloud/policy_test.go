package cloud

import (
	"encoding/json"
	"strings"
	"testing"

	"tendril/internal/config"
)

func TestPolicyCoversTheSettings(t *testing.T) {
	t.Parallel()
	const jobs = "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"
	for name, c := range map[string]struct {
		flags map[string]string
		use   Use
		want  map[string]string // resources by statement ID
	}{
		"embedded queues": {flags: map[string]string{"queue": "jobs"}, use: Use{TaskQueues: []string{""}}},
		"a queue by its URL": {flags: map[string]string{"queue-url": jobs},
			want: map[string]string{
				"Receive":          "arn:aws:sqs:eu-west-1:123456789012:jobs",
				"CountDeadLetters": "arn:aws:sqs:eu-west-1:123456789012:DEAD-LETTER-QUEUE-OF-jobs"}},
		"reasons of dead letters": {flags: map[string]string{"backend": "sqs", "name": "shop", "region": "eu-west-1",
			"cloudwatch": "off", "dead-letter-reasons": "true"},
			want: map[string]string{
				"Receive":          "arn:aws:sqs:eu-west-1:*:shop",
				"CountDeadLetters": "arn:aws:sqs:eu-west-1:*:shop-dead",
				"SendDeadLetters":  "arn:aws:sqs:eu-west-1:*:shop-dead",
				"CreateQueues":     "arn:aws:sqs:eu-west-1:*:shop arn:aws:sqs:eu-west-1:*:shop-dead"}},
		"a queue of its own": {flags: map[string]string{"backend": "sqs", "name": "shop", "region": "cn-north-1",
			"cloudwatch": "off"},
			want: map[string]string{
				"Receive":          "arn:aws-cn:sqs:cn-north-1:*:shop",
				"CountDeadLetters": "arn:aws-cn:sqs:cn-north-1:*:shop-dead",
				"CreateQueues":     "arn:aws-cn:sqs:cn-north-1:*:shop arn:aws-cn:sqs:cn-north-1:*:shop-dead"}},
		"nobody said where": {flags: map[string]string{"backend": "sqs", "queue": "jobs", "cloudwatch": "off"},
			want: map[string]string{"Receive": "arn:aws:sqs:*:*:jobs",
				"CountDeadLetters": "arn:aws:sqs:*:*:DEAD-LETTER-QUEUE-OF-jobs"}},
		"everything": {flags: map[string]string{"queue-url": jobs, "name": "shop", "environment-name": "beanstalk",
			"registry-table": "runs", "registry-create": "true", "function": "resize:live", "s3-payloads": "big,bigger",
			"versions": "s3://archives/shop", "scale-target": "asg:workers"},
			use: Use{TaskQueues: []string{"", "ticks", "arn:aws:sqs:us-east-1:210987654321:far"}},
			want: map[string]string{
				"Receive":          "arn:aws:sqs:eu-west-1:123456789012:jobs",
				"CountDeadLetters": "arn:aws:sqs:eu-west-1:123456789012:DEAD-LETTER-QUEUE-OF-jobs",
				"InvokeFunctions":  "arn:aws:lambda:eu-west-1:*:function:resize:live",
				"Enqueue": "arn:aws:sqs:eu-west-1:123456789012:jobs arn:aws:sqs:eu-west-1:123456789012:ticks " +
					"arn:aws:sqs:us-east-1:210987654321:far",
				"KeepRegistry":    "arn:aws:dynamodb:eu-west-1:*:table/runs",
				"CreateRegistry":  "arn:aws:dynamodb:eu-west-1:*:table/runs",
				"DescribeGroups":  "*",
				"TakePartInGroup": "arn:aws:autoscaling:eu-west-1:*:autoScalingGroup:*:autoScalingGroupName/workers",
				"PublishMetrics":  "* if Workerless-shop ElasticBeanstalk/SQSD",
				"FetchPayloads":   "arn:aws:s3:::big/* arn:aws:s3:::bigger/*",
				"KeepArchives":    "arn:aws:s3:::archives/shop/*",
				"CheckArchives":   "arn:aws:s3:::archives"}},
		"archives at the top of a bucket": {flags: map[string]string{"queue": "jobs", "backend": "sqs", "region": "cn-north-1",
			"cloudwatch": "off", "versions": "s3://archives/"}, want: map[string]string{
			"Receive":          "arn:aws-cn:sqs:cn-north-1:*:jobs",
			"CountDeadLetters": "arn:aws-cn:sqs:cn-north-1:*:DEAD-LETTER-QUEUE-OF-jobs",
			"KeepArchives":     "arn:aws-cn:s3:::archives/*",
			"CheckArchives":    "arn:aws-cn:s3:::archives"}},
		"published metrics": {flags: map[string]string{"queue": "jobs", "name": "shop", "scale-target": "publish",
			"region": "us-gov-west-1"},
			want: map[string]string{
				"DescribeGroups":  "*",
				"PublishMetrics":  "* if tendril/shop",
				"TakePartInGroup": "arn:aws-us-gov:autoscaling:us-gov-west-1:*:autoScalingGroup:*:autoScalingGroupName/*",
				"DescribeServices": "arn:aws-us-gov:ecs:us-gov-west-1:*:service/*/* " +
					"arn:aws-us-gov:ecs:us-gov-west-1:*:task/*/*"}},
		"a group's metric": {flags: map[string]string{"queue-url": jobs, "scale-target": "asg:workers",
			"scale-measure-name": "CPUUtilization", "scale-cpu-source": "cloudwatch"},
			want: map[string]string{
				"Receive":          "arn:aws:sqs:eu-west-1:123456789012:jobs",
				"CountDeadLetters": "arn:aws:sqs:eu-west-1:123456789012:DEAD-LETTER-QUEUE-OF-jobs",
				"DescribeGroups":   "*", "ReadMetrics": "*",
				"TakePartInGroup": "arn:aws:autoscaling:eu-west-1:*:autoScalingGroup:*:autoScalingGroupName/workers"}},
		"a service": {flags: map[string]string{"queue": "jobs", "region": "eu-west-1", "scale-target": "ecs:shop/worker"},
			want: map[string]string{
				"DescribeServices": "arn:aws:ecs:eu-west-1:*:service/shop/worker arn:aws:ecs:eu-west-1:*:task/shop/*",
				"ResizeServices":   "arn:aws:ecs:eu-west-1:*:service/shop/worker"}},
		"sizes alone": {flags: map[string]string{"queue-url": jobs, "scale-max-size": "6"},
			want: map[string]string{
				"Receive":          "arn:aws:sqs:eu-west-1:123456789012:jobs",
				"CountDeadLetters": "arn:aws:sqs:eu-west-1:123456789012:DEAD-LETTER-QUEUE-OF-jobs",
				"DescribeGroups":   "*", "DescribeScaling": "*", "FindScalers": "*",
				"TakePartInGroup":  "arn:aws:autoscaling:eu-west-1:*:autoScalingGroup:*:autoScalingGroupName/*",
				"DescribeServices": "arn:aws:ecs:eu-west-1:*:service/*/* arn:aws:ecs:eu-west-1:*:task/*/*",
				"ResizeServices":   "arn:aws:ecs:eu-west-1:*:service/*/*"}},
		"an operator": {flags: map[string]string{"backend": "sqs", "name": "shop", "region": "eu-west-1",
			"registry-table": "runs"}, use: Use{Operate: true},
			want: map[string]string{
				"ManageDeadLetters": "arn:aws:sqs:eu-west-1:*:shop arn:aws:sqs:eu-west-1:*:shop-dead",
				"ListQueues":        "*",
				"TerminateQueues":   "arn:aws:sqs:eu-west-1:*:shop arn:aws:sqs:eu-west-1:*:shop-dead",
				"TerminateRegistry": "arn:aws:dynamodb:eu-west-1:*:table/runs"}},
	} {
		cfg, err := config.Load(config.Sources{Flags: c.flags, Environ: []string{"HOME=/absent"}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		policy := PolicyFor(cfg, &c.use)
		got := map[string]string{}
		for _, s := range policy.Statement {
			text := strings.Join(s.Resource, " ")
			if s.Condition != nil {
				text += " if " + strings.Join(s.Condition["StringEquals"]["cloudwatch:namespace"], " ")
			}
			got[s.Sid] = text
			if s.Effect != "Allow" || len(s.Action) == 0 {
				t.Errorf("%s: the statement %+v", name, s)
			}
		}
		for sid, want := range c.want {
			if got[sid] != want {
				t.Errorf("%s: %s is for %q, want %q", name, sid, got[sid], want)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: statements %v, want %v", name, got, c.want)
		}
		if text, err := json.Marshal(policy); err != nil || strings.Contains(string(text), `"Condition":null`) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}
