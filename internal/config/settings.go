package config

import (
	"strings"
	"time"
)

// Values of Backend.
const (
	backendAuto     = "auto" // resolved by [Load]: sqs if a queue URL is given, else embedded
	BackendEmbedded = "embedded"
	BackendSQS      = "sqs" // Amazon SQS or a compatible server
)

// Values of ConsoleAuth.
const (
	consoleAuthToken = "token" // requires a token or a session
	ConsoleAuthNone  = "none"  // allows every caller on a loopback address
)

// Values of ConsoleBodies.
const (
	consoleBodiesShown  = "shown"
	ConsoleBodiesHidden = "hidden" // until the user requests a body
)

// Values of Leader, which selects the instance that enqueues periodic tasks.
const (
	leaderElect = "elect" // by the instances that share a registry
	LeaderLocal = "local" // this instance, which must be the only one
)

// Values of RolloutPolicy and RolloutBatchSizeType, as in Elastic Beanstalk.
const (
	// RolloutAllAtOnce deploys to all instances at once, RolloutRolling in batches.
	RolloutAllAtOnce = "AllAtOnce"

	RolloutRolling = "Rolling"
	// RolloutPercentage measures batches in percent of the instances.
	RolloutPercentage = "Percentage"
	rolloutFixed      = "Fixed"
)

// foreignPolicies returns deployment policies of Elastic Beanstalk that need new instances or a load balancer.
func foreignPolicies() []string {
	return []string{"RollingWithAdditionalBatch", "Immutable", "TrafficSplitting"}
}

// Values of PeriodicTrust, which selects the messages accepted as runs of periodic tasks.
const (
	trustAll      = "all"      // with a periodic task's attributes, as in aws-sqsd
	TrustRegistry = "registry" // if their run is in the registry
)

const (
	// Off is a value of Console and CloudWatch.
	Off = "off"
	// On is a value of CloudWatch.
	On = "on"
	// auto enables CloudWatch depending on the queues and the environment's name; resolved by [Load].
	auto = "auto"
)

// Values of LogFormat.
const (
	LogAuto = "auto" // LogText on a terminal, else logJSON
	LogText = "text" // short lines for human readers
	logJSON = "json" // one object per line
	LogSQSD = "sqsd" // LogText with deliveries in the format of aws-sqsd
)

// Values of MachineSections.
const (
	machineIgnore = "ignore"
	MachineApply  = "apply"
)

// PerQueue holds the options that individual queues can override. Each field of PerQueue and [Settings] corresponds
// to the option of the same name; its row in the table describes it and its range.
type PerQueue struct {
	Backend string        // BackendEmbedded or BackendSQS
	MaxWait time.Duration // 0 disables it
	// Target is the app's URL: http, https or unix, without a path (with unix, the path is the socket's). "" means
	// the supervised app on Port, unless Function or Lambda is set. At most one of Target, Function and Lambda is
	// set.
	Target            string
	Function          string // name or ARN; may be ""
	Lambda            string // shell command; may be ""
	TargetCA          string // PEM file; "" means the system's authorities
	TargetCert        string // PEM file; may be ""
	TargetKey         string // PEM file; may be ""
	HTTPPath          string // starts with "/" and may have a query
	MimeType          string
	TerminalCodes     string // as SuccessCodes; may be ""
	BatchSize         int
	BatchWindow       time.Duration
	SigningSecret     []string // in the format of package webhook
	SigningSecretFile string   // file with SigningSecret; may be ""
	Filter            string   // in the format of package filter; "" matches all messages
	ViaSNS            bool
	InactivityTimeout time.Duration
	Deadline          time.Duration // 0 is unlimited
	VisibilityTimeout time.Duration // 0 does not hide messages
	// ErrorVisibilityTimeout starts at the failure. Nil keeps the visibility timeout of the receive; 0 retries
	// immediately.
	ErrorVisibilityTimeout *time.Duration
	RetentionPeriod        time.Duration // since the first receive
}

// Settings holds the values of all options. [Load] sets every field.
type Settings struct {
	// PerQueue is for queues that do not override it. Backend, Queue and QueueURL belong to the first queue.
	PerQueue
	Name   string
	Queues []QueueSettings // 1 to 64, with unique names and complete settings
	// Strict is true if a queue is served only while all queues before it are empty, and for a single queue without a
	// weight. Otherwise each queue's Weight is its share of free slots.
	Strict   bool
	QueueURL string // URL or ARN; "" for an embedded queue or one known by its name only
	Queue    string // ".fifo" at the end makes it a FIFO queue
	Region   string // [Config.IsSet] reports whether it was configured
	// EndpointURL is the address of the SQS API; "" means AWS_ENDPOINT_URL_SQS or the AWS SDK's default.
	EndpointURL     string
	WaitTime        time.Duration // at least 1 s, to avoid a tight polling loop
	Sleep           time.Duration // 0 disables it
	DeleteLinger    time.Duration // 0 sends each delete immediately
	HTTPConnections int           // maximum concurrent deliveries of all queues
	SuccessCodes    string        // sorted, without overlaps: "200,202-204"
	HeaderBudget    int64         // in bytes
	Keepalive       bool
	S3Payloads      []string // bucket names; if empty, pointers are delivered unchanged
	FunctionTimeout time.Duration

	Rate                float64 // deliveries per second; 0 is unlimited
	AdaptiveConcurrency bool
	Breaker             int // percentage of failures; 0 disables it
	BreakerWindow       time.Duration
	BreakerDelay        time.Duration

	ConnectTimeout time.Duration

	MaxRetries        int // maxReceiveCount in redrive policies that tendril creates
	DeadLetterReasons bool
	RespectRetryAfter bool
	BackoffMin        time.Duration // 0 disables it
	BackoffMax        time.Duration // at least BackoffMin
	BackoffDoublings  int
	BackoffJitter     int // percentage

	Port            int
	Healthcheck     string        // "TCP:port" or "HTTP:port/path"; "" means TCP on Target, if set, else Port
	AppReadyTimeout time.Duration // 0 is unlimited
	AppGrace        time.Duration // 0 kills the app immediately
	RestartLimit    int           // 0 disables restarts
	RestartWindow   time.Duration

	DeployTimeout   time.Duration
	ProcessesMin    int
	ProcessesMax    int
	AppUser         string // "NAME", "UID" or "UID:GID"; "" means tendril's own
	AllowRoot       bool
	MachineSections string   // machineIgnore or MachineApply
	AppLimit        []string // "NAME=NUMBER" or "NAME=unlimited"
	AppLogDir       string   // absolute path; may be ""
	AppLogRate      int      // lines per second of each process
	PIDFile         string   // path; may be ""

	// ScaleTarget is ScaleNone, ScaleAuto, ScaleProcesses, ScalePublish, ScaleGroup followed by the name of an Auto
	// Scaling group, or ScaleService followed by "CLUSTER/SERVICE" of Amazon ECS.
	ScaleTarget       string
	ScaleDrainWithin  time.Duration // only without a ScaleMeasureName
	ScaleTargetBusy   int           // percentage; only without a ScaleMeasureName
	ScaleInProtection string        // protectionAuto or ProtectionOff
	ScaleMinSize      int
	ScaleMaxSize      int
	ScaleCooldown     time.Duration
	// ScaleMeasureName is "CPUUtilization", "BacklogPerProcess", "OldestMessageAge" or "BusyShare". With "" there is
	// no trigger and the following fields are unused.
	ScaleMeasureName               string
	ScaleCPUSource                 string // cpuFromInstances or CPUFromCloudWatch
	ScaleStatistic                 string // "Average", "Minimum", "Maximum" or "Sum"
	ScaleUnit                      string // "Percent", "Count" or "Seconds"
	ScaleLowerThreshold            float64
	ScaleUpperThreshold            float64 // greater than ScaleLowerThreshold
	ScaleLowerBreachScaleIncrement int     // negative
	ScaleUpperBreachScaleIncrement int
	ScalePeriod                    time.Duration
	ScaleEvaluationPeriods         int
	ScaleBreachDuration            time.Duration // 0 means the total of the evaluation periods

	DataDir     string // absolute path
	Listen      string // HOST:PORT, "unix:" and a path, or both with a comma; port 0 is any free one
	Credentials string // file; "" accepts all callers, only on a loopback address or a socket
	TLSCert     string // PEM file; set together with TLSKey
	TLSKey      string
	// FleetKey signs the desired state of all instances, see instances.FleetKey; may be "". FleetKeyFile is the file
	// it was read from; may be "".
	FleetKey     string
	FleetKeyFile string
	// Versions is a folder that all instances share, or s3://BUCKET/PREFIX; "" means the tendril that serves the
	// queue.
	Versions             string
	RolloutPolicy        string // RolloutAllAtOnce, RolloutRolling or an unsupported policy of Elastic Beanstalk
	RolloutBatchSizeType string // RolloutPercentage or rolloutFixed
	RolloutBatchSize     int
	RolloutTimeout       time.Duration
	RolloutIgnoreHealth  bool
	// RegistryToken gives access to the registry of an embedded queue, in this process or in the tendril that serves
	// the queue; "" means a generated token.
	RegistryToken     string
	RegistryTokenFile string // file with RegistryToken; may be ""
	RegistryInsecure  bool   // send the token even to a server that cannot prove that it has it
	AccountID         string

	Cron           string // file; "" means the bundle's cron.yaml, if any
	RegistryTable  string // DynamoDB table; may be ""
	RegistryCreate bool
	// RegistryLostAfter is how long receiving continues while the shared registry does not answer; 0 means forever.
	RegistryLostAfter time.Duration
	Leader            string // leaderElect or LeaderLocal
	PeriodicTrust     string // trustAll or TrustRegistry
	Lease             time.Duration

	Console                  string // HOST:PORT or Off; port 0 means any free port
	ConsoleTLSCert           string // PEM file; set together with ConsoleTLSKey
	ConsoleTLSKey            string
	ConsoleInsecure          bool // unencrypted on any address
	ConsoleAuth              string
	ConsoleReadOnly          bool
	ConsoleBodies            string
	ConsoleTrustedProxy      []string // network prefixes in CIDR notation
	ConsoleHosts             []string // besides localhost and the console's own addresses
	ConsoleToken             string   // "" means a new token at each start
	ConsoleTokenFile         string   // file with ConsoleToken; may be ""
	ConsoleDrainToken        string   // only for /-/drain and /-/quiet; may be ""
	ConsoleDrainTokenFile    string   // file with ConsoleDrainToken; may be ""
	HealthIgnoreClientErrors bool

	Quiet, Verbose bool // not both
	LogFormat      string
	LogSample      int // lines per second about deliveries; 0 is unlimited

	CloudWatch      string // On or Off
	MetricsInterval time.Duration
	EnvironmentName string // may be ""

	ShutdownTimeout time.Duration // 0 returns all messages immediately

	ConfigFile string // settings file; may be ""
}

// QueueSettings holds the complete settings of one queue. [Load] sets every field.
type QueueSettings struct {
	PerQueue
	Name string // unique; from URL if that is set. ".fifo" at the end makes it a FIFO queue.
	URL  string // URL or ARN; "" for an embedded queue or one known by its name only
	// Managed means that no setting names the queue: tendril creates it on Amazon SQS under the environment's name.
	Managed     bool
	Region      string // in URL, else Settings.Region
	Weight      int    // share of free slots, 1 to 1000; if every queue has 0, they are served in strict order
	Concurrency int    // maximum concurrent deliveries, 1 to 1000; Settings.HTTPConnections limits all queues together
}

// FIFO reports whether the queue's name ends in ".fifo".
func (q *QueueSettings) FIFO() bool { return strings.HasSuffix(q.Name, fifoSuffix) }

// ToFunction reports whether messages go to a Lambda function, on AWS or emulated locally, rather than to an app over
// HTTP.
func (q *QueueSettings) ToFunction() bool { return q.Function != "" || q.Lambda != "" }

// ToOwnApp reports whether messages go to the supervised app, because neither a target nor a function is set.
func (q *QueueSettings) ToOwnApp() bool { return q.Target == "" && !q.ToFunction() }

func (q *QueueSettings) reference() string {
	if q.URL != "" {
		return q.URL
	}
	return q.Name
}

// unixPrefix marks the path of a socket in Listen.
const unixPrefix = "unix:"

// ListenOn returns the address and the unix socket path of the SQS endpoint; either may be "".
func (s *Settings) ListenOn() (address, socket string) {
	for part := range strings.SplitSeq(s.Listen, ",") {
		if path, ok := strings.CutPrefix(part, unixPrefix); ok {
			socket = path
		} else {
			address = part
		}
	}
	return address, socket
}

func (s *Settings) any(holds func(*QueueSettings) bool) bool {
	for i := range s.Queues {
		if holds(&s.Queues[i]) {
			return true
		}
	}
	return false
}

// AnyEmbedded reports whether any queue is embedded.
func (s *Settings) AnyEmbedded() bool {
	return s.any(func(q *QueueSettings) bool { return q.Backend == BackendEmbedded })
}

func (s *Settings) anyCreated() bool {
	return s.any(func(q *QueueSettings) bool { return q.Backend == BackendEmbedded || q.Managed })
}

// AnyOnSQS reports whether any queue is on Amazon SQS.
func (s *Settings) AnyOnSQS() bool {
	return s.any(func(q *QueueSettings) bool { return q.Backend == BackendSQS })
}

// AnyToOwnApp reports whether any queue's messages go to the supervised app.
func (s *Settings) AnyToOwnApp() bool {
	return s.any((*QueueSettings).ToOwnApp)
}

func (s *Settings) toFunction() bool {
	return s.any((*QueueSettings).ToFunction)
}

func (s *Settings) toApp() bool {
	return s.any(func(q *QueueSettings) bool { return !q.ToFunction() })
}

func (s *Settings) anyTLS() bool {
	return s.any(func(q *QueueSettings) bool {
		return !q.ToFunction() && strings.HasPrefix(q.Target, "https:")
	})
}

// Values of ScaleTarget, which selects what is scaled.
const (
	ScaleNone      = "none"      // nothing is scaled
	ScaleAuto      = "auto"      // this instance's group or ECS service, if any, else the app's processes
	ScaleProcesses = "processes" // the app's, on this machine
	ScalePublish   = "publish"   // for another scaler, which gets the backlog
	ScaleGroup     = "asg:"      // followed by an Auto Scaling group's name
	ScaleService   = "ecs:"      // followed by "CLUSTER/SERVICE"
)

// ScalesInstances reports whether the target is certain to be instances rather than local processes.
func (s *Settings) ScalesInstances() bool {
	return s.ScaleTarget == ScalePublish || strings.HasPrefix(s.ScaleTarget, ScaleGroup) ||
		strings.HasPrefix(s.ScaleTarget, ScaleService)
}
