package config

import "time"

// The backends that a queue can live in.
const (
	// BackendAuto is sqs when a queue URL is given, else embedded. A loaded
	// [Settings] never holds it.
	BackendAuto = "auto"
	// BackendEmbedded is the queue inside this process.
	BackendEmbedded = "embedded"
	// BackendSQS is Amazon SQS, or whatever speaks its protocol.
	BackendSQS = "sqs"
)

// The ways to find out which instance enqueues periodic tasks.
const (
	// LeaderElect: the instances that share a registry elect one.
	LeaderElect = "elect"
	// LeaderLocal: this instance is declared the only one.
	LeaderLocal = "local"
)

// Which messages count as runs of periodic tasks.
const (
	// TrustAll: every message that has a task's attributes, as aws-sqsd has it.
	TrustAll = "all"
	// TrustRegistry: only those whose run is in the registry.
	TrustRegistry = "registry"
)

// Off is the value of Console that means no listener.
const Off = "off"

// Settings are the values in force. [Load] fills every field; the zero value
// means nothing by itself. Ranges are inclusive and already checked.
type Settings struct {
	// Name is the environment's name: 1 to 64 letters, digits, "_" and "-".
	Name string
	// Backend is BackendEmbedded or BackendSQS.
	Backend string
	// QueueURL is the URL or ARN of a queue on Amazon SQS; "" when the queue is
	// embedded, or is to be found on Amazon SQS by its name.
	QueueURL string
	// Queue is the queue's name: 1 to 80 letters, digits, "_" and "-"; one that
	// ends in ".fifo" is a FIFO queue. With a QueueURL it is the name in there.
	Queue string
	// Region is an AWS region. "us-east-1" when nobody said, see [Config.IsSet].
	Region string
	// EndpointURL is where the SQS protocol is spoken; "" leaves it to the AWS
	// SDK and its AWS_ENDPOINT_URL_SQS.
	EndpointURL string
	// WaitTime is how long one receive waits for a message, 0 to 20 s; less
	// than 1 s counts as 1 s, so that an empty queue is not asked in a hot loop.
	WaitTime time.Duration
	// DeleteLinger is how long a finished message's delete may wait for others
	// to travel with it, 0 to 1 s; 0 sends each at once.
	DeleteLinger time.Duration

	// Target is the app's URL: http, https or unix, without a path (for unix
	// the path is the socket's); "" means the supervised app on Port.
	Target string
	// HTTPPath is the path of every POST; begins with "/", may carry a query.
	HTTPPath string
	// MimeType is the Content-Type of every POST.
	MimeType string
	// HTTPConnections is the most requests in work at once, 1 to 100.
	HTTPConnections int
	// SuccessCodes are the statuses that mean done, as "200,202-204": sorted,
	// within 200 to 599, without overlaps.
	SuccessCodes string
	// HeaderBudget bounds the attribute headers of one POST in bytes, 256 B to 64 KiB.
	HeaderBudget int64
	// Keepalive says whether a connection to the app is used again.
	Keepalive bool

	// ConnectTimeout bounds the connect to the app, 1 to 60 s.
	ConnectTimeout time.Duration
	// InactivityTimeout is how long the app may be silent, 1 to 36000 s; each
	// byte from it starts the time anew.
	InactivityTimeout time.Duration
	// Deadline bounds one POST as a whole, 0 to 43200 s; 0 means no bound.
	Deadline time.Duration
	// VisibilityTimeout hides a received message, 0 to 43200 s. 0 is meant
	// as written: not hidden at all.
	VisibilityTimeout time.Duration
	// ErrorVisibilityTimeout hides a failed message, 0 to 43200 s, counted from
	// the failure. Nil leaves VisibilityTimeout to run out; 0 means retry at once.
	ErrorVisibilityTimeout *time.Duration
	// RetentionPeriod is how long after its first receive a message is still
	// tried, 60 to 1209600 s.
	RetentionPeriod time.Duration

	// MaxRetries is maxReceiveCount of the embedded queue's redrive policy,
	// 1 to 1000.
	MaxRetries int
	// RespectRetryAfter lets the app's Retry-After choose the time to the next
	// attempt.
	RespectRetryAfter bool
	// BackoffMin is the pause after a first failure, 0 to 43200 s; 0 means that
	// there is no backoff.
	BackoffMin time.Duration
	// BackoffMax is the longest pause, BackoffMin to 43200 s.
	BackoffMax time.Duration
	// BackoffDoublings is how often the pause doubles, 0 to 16, before it grows
	// by the same step each time.
	BackoffDoublings int
	// BackoffJitter is the percentage by which a pause may be shortened at
	// random, 0 to 100; 0 means none.
	BackoffJitter int

	// Port is where the supervised app listens, 1 to 65535: its PORT.
	Port int
	// Healthcheck is "TCP:port" or "HTTP:port/path"; "" means TCP on Port, or
	// on Target where there is one.
	Healthcheck string
	// AppReadyTimeout is how long the app may take to be ready at the start, 0
	// to 43200 s; 0 means as long as it likes.
	AppReadyTimeout time.Duration
	// AppGrace is the time from TERM to KILL for the app, 0 to 43200 s; 0
	// means KILL at once.
	AppGrace time.Duration
	// RestartLimit is how many restarts RestartWindow may hold, 0 to 1000; 0
	// means that the app is never restarted.
	RestartLimit int
	// RestartWindow is the time over which restarts count, 1 to 86400 s.
	RestartWindow time.Duration

	// DataDir is the absolute path of the folder that holds the embedded queue,
	// the console's token and the instance file.
	DataDir string
	// Listen is a loopback host and a port for the SQS endpoint; port 0 means
	// any free one.
	Listen string
	// AccountID is the 12 digits in the embedded queues' URLs and ARNs.
	AccountID string

	// Cron is the file of periodic tasks; "" means the bundle's cron.yaml, where
	// there is one.
	Cron string
	// RegistryTable is the DynamoDB table by which instances on Amazon SQS agree
	// on who enqueues periodic tasks; "" for none. RegistryCreate makes it when
	// it is missing.
	RegistryTable  string
	RegistryCreate bool
	// Leader is LeaderElect or LeaderLocal.
	Leader string
	// PeriodicTrust is TrustAll or TrustRegistry.
	PeriodicTrust string
	// Lease is how long a leader that is not heard of is waited for, 5 to 300 s.
	Lease time.Duration

	// Console is a loopback host and a port, port 0 meaning any free one, or [Off].
	Console string

	// Quiet leaves only warnings and errors; Verbose adds detail. Never both.
	Quiet, Verbose bool
	// LogFormat is "auto" (text on a terminal, else JSON lines), "text" or "json".
	LogFormat string

	// ShutdownTimeout is how long work in flight may take after TERM, 0 to
	// 43200 s; 0 hands everything back at once.
	ShutdownTimeout time.Duration

	// ConfigFile is the settings file that was read; "" for none.
	ConfigFile string
}
