package cloud

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/internal/observe/telemetry"
	"tendril/queue"
)

// Policy is an IAM policy document.
type Policy struct {
	Version   string
	Statement []Statement
}

// Statement is a statement of a [Policy].
type Statement struct {
	Sid, Effect string
	Action      []string
	Resource    []string
	Condition   map[string]map[string][]string `json:",omitempty"`
}

// Use describes what an environment needs in addition to its settings.
type Use struct {
	// TaskQueues contains the names, URLs or ARNs of the queues of periodic tasks; "" is the first queue.
	TaskQueues []string
	// Operate requests the permissions of the commands dead, peek, queues and terminate instead of the
	// environment's.
	Operate bool
}

// UnknownDeadLetterQueue is the prefix of the placeholder for a dead-letter queue whose name is unknown.
const UnknownDeadLetterQueue = "DEAD-LETTER-QUEUE-OF-"

// PolicyFor returns the IAM policy that the settings require, with one statement per feature. ARNs contain "*" for
// unknown accounts and regions. It makes no network calls.
func PolicyFor(cfg *config.Config, use *Use) *Policy {
	p := &policyMaker{settings: &cfg.Settings, region: cfg.Region}
	if cfg.Origin("region") == (config.Origin{}) { // the profile or the instance determines the region
		p.region = "*"
	}
	if use.Operate {
		p.allowOperating()
	} else {
		p.allowRunning(use)
	}
	return &Policy{Version: "2012-10-17", Statement: p.statements}
}

type policyMaker struct {
	settings   *config.Settings
	region     string
	statements []Statement
}

func (p *policyMaker) allow(f aws.Feature, resources ...string) *Statement {
	i := slices.IndexFunc(p.statements, func(s Statement) bool { return s.Sid == string(f) })
	if i < 0 {
		i = len(p.statements)
		p.statements = append(p.statements, Statement{Sid: string(f), Effect: "Allow", Action: f.Actions()})
	}
	s := &p.statements[i]
	for _, r := range resources {
		if !slices.Contains(s.Resource, r) {
			s.Resource = append(s.Resource, r)
		}
	}
	return s
}

func (p *policyMaker) allowRunning(use *Use) {
	s := p.settings
	for i := range s.Queues {
		p.allowDelivering(&s.Queues[i])
	}
	p.allowScheduling(use.TaskQueues)
	p.allowScaling()

	if s.CloudWatch == config.On {
		p.allowPublishing(telemetry.NamespacePrefix + s.Name)
		if s.EnvironmentName != "" {
			p.allowPublishing(telemetry.HealthNamespace)
		}
	}

	for _, bucket := range s.S3Payloads {
		p.allow(aws.FetchPayloads, p.bucketARN(bucket)+"/*")
	}
	if bucket, prefix := s.VersionsBucket(); bucket != "" {
		p.allow(aws.KeepArchives, strings.TrimSuffix(p.bucketARN(bucket)+"/"+prefix, "/")+"/*")
		p.allow(aws.CheckArchives, p.bucketARN(bucket))
	}
}

func (p *policyMaker) allowDelivering(q *config.QueueSettings) {
	if q.Backend == config.BackendSQS {
		p.allow(aws.Receive, p.queueARN(q, q.Name))
		p.allow(aws.CountDeadLetters, p.queueARN(q, deadLetterQueue(q)))
		if p.settings.DeadLetterReasons || q.TerminalCodes != "" {
			p.allow(aws.SendDeadLetters, p.queueARN(q, deadLetterQueue(q)))
		}
	}
	if q.Managed {
		p.allow(aws.CreateQueues, p.queueARN(q, q.Name), p.queueARN(q, deadLetterQueue(q)))
	}
	if q.Function != "" {
		p.allow(aws.InvokeFunctions, p.functionARN(q.Function))
	}
}

func (p *policyMaker) allowScheduling(taskQueues []string) {
	s := p.settings
	first := &s.Queues[0]
	if first.Backend != config.BackendSQS {
		return
	}

	for _, reference := range taskQueues {
		q := taskQueue(reference, first)
		p.allow(aws.Enqueue, p.queueARN(&q, q.Name))
	}

	if s.RegistryTable == "" {
		return
	}
	p.allow(aws.KeepRegistry, p.tableARN())
	if s.RegistryCreate {
		p.allow(aws.CreateRegistry, p.tableARN())
	}
}

// A queue named without a URL or ARN is in the first queue's account and region.
func taskQueue(reference string, first *config.QueueSettings) config.QueueSettings {
	if reference == "" {
		return *first
	}
	q := config.QueueSettings{Name: reference[strings.LastIndexAny(reference, ":/")+1:], URL: first.URL}
	if strings.Contains(reference, ":") {
		q.URL = reference
	}
	return q
}

// allowScaling covers every possible target if the target is known only at run time.
func (p *policyMaker) allowScaling() {
	target := p.settings.ScaleTarget
	group, inGroup := strings.CutPrefix(target, config.ScaleGroup)
	service, inService := strings.CutPrefix(target, config.ScaleService)
	publishes := target == config.ScalePublish
	finds := target == config.ScaleAuto && p.settings.AnyOnSQS()

	if publishes {
		p.allowPublishing("tendril/" + p.settings.Name)
	}
	if finds {
		p.allow(aws.DescribeScaling, "*")
		p.allow(aws.FindScalers, "*")
	}
	if publishes || finds {
		group, inGroup = "*", true
		service, inService = "*/*", true
	}

	if inGroup {
		p.allow(aws.DescribeGroups, "*")
		p.allow(aws.TakePartInGroup, fmt.Sprintf("arn:%s:autoscaling:%s:*:autoScalingGroup:*:autoScalingGroupName/%s",
			partitionOf(p.region), p.region, group))
	}
	if p.settings.ScaleCPUSource == config.CPUFromCloudWatch { // GetMetricStatistics has no resource-level permissions
		p.allow(aws.ReadMetrics, "*")
	}
	if inService {
		cluster, _, _ := strings.Cut(service, "/")
		place := fmt.Sprintf("arn:%s:ecs:%s:*:", partitionOf(p.region), p.region)
		p.allow(aws.DescribeServices, place+"service/"+service, place+"task/"+cluster+"/*")
		if !publishes {
			p.allow(aws.ResizeServices, place+"service/"+service)
		}
	}
}

// allowPublishing limits the namespace by a condition, because PutMetricData does not support resource-level
// permissions.
func (p *policyMaker) allowPublishing(namespace string) {
	s := p.allow(aws.PublishMetrics, "*")
	if s.Condition == nil {
		s.Condition = map[string]map[string][]string{"StringEquals": {}}
	}
	equal := s.Condition["StringEquals"]
	equal["cloudwatch:namespace"] = append(equal["cloudwatch:namespace"], namespace)
}

func (p *policyMaker) allowOperating() {
	s := p.settings
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.Backend != config.BackendSQS {
			continue
		}
		p.allow(aws.ManageDeadLetters, p.queueARN(q, q.Name), p.queueARN(q, deadLetterQueue(q)))
		p.allow(aws.ListQueues, "*")
		if q.Managed {
			p.allow(aws.TerminateQueues, p.queueARN(q, q.Name), p.queueARN(q, deadLetterQueue(q)))
		}
	}

	if s.RegistryTable != "" && s.Queues[0].Backend == config.BackendSQS {
		p.allow(aws.TerminateRegistry, p.tableARN())
	}
}

func deadLetterQueue(q *config.QueueSettings) string {
	if q.Managed {
		return queue.DeadLetterName(q.Name)
	}
	return UnknownDeadLetterQueue + q.Name
}

func (p *policyMaker) queueARN(near *config.QueueSettings, name string) string {
	region, account := p.region, "*"
	if ref, err := aws.ParseReference(near.URL); err == nil {
		region = cmp.Or(ref.Region, region)
		if len(ref.Account) == len("000000000000") {
			account = ref.Account
		}
	}
	return fmt.Sprintf("arn:%s:sqs:%s:%s:%s", partitionOf(region), region, account, name)
}

func (p *policyMaker) tableARN() string {
	region := p.settings.Region
	return fmt.Sprintf("arn:%s:dynamodb:%s:*:table/%s", partitionOf(region), region, p.settings.RegistryTable)
}

func (p *policyMaker) bucketARN(name string) string {
	return "arn:" + partitionOf(p.region) + ":s3:::" + name
}

func (p *policyMaker) functionARN(reference string) string {
	if strings.HasPrefix(reference, "arn:") {
		return reference
	}
	account, name, partial := strings.Cut(reference, ":function:")
	if !partial {
		account, name = "*", reference
	}
	return fmt.Sprintf("arn:%s:lambda:%s:%s:function:%s", partitionOf(p.region), p.region, account, name)
}

func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}
