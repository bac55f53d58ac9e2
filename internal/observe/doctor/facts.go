package doctor

import "time"

// Facts describe an environment and its machine. Unknown facts are zero.
type Facts struct {
	// Running is false for an examination before a start.
	Running bool
	// Health lists the causes of HealthStatus, which is "" if unknown.
	Health       []Finding
	HealthStatus string
	Queues       []Queue
	Apps         []App
	Problems     []Problem
	// Secrets are problems with files that contain secrets.
	Secrets []Problem
	// Unchecked is the reason that Permissions are unknown, or "".
	Permissions  []Permission
	Unchecked    string
	Clocks       []Clock
	Proxies      []Proxy
	Ports        []Port
	Certificates []Certificate
	Disk         Disk
	OpenFiles    OpenFiles
	Zones        Zones
	// OpenEndpoint is an endpoint at which all local users can use the queues, or "". OtherUsers can log in.
	OpenEndpoint string
	OtherUsers   []string
}

// Queue describes a queue and its settings.
type Queue struct {
	Name    string
	URL     string
	OnSQS   bool
	Several bool
	// Managed means that 'tendril up' creates the queue. Missing means that it does not exist.
	Managed, Missing bool
	// Attributes uses the names of the SQS API; nil if unknown.
	Attributes map[string]string
	// Dead is nil if absent or unknown.
	Dead  *DeadLetterQueue
	Times Times
}

// DeadLetterQueue describes a queue's dead-letter queue.
type DeadLetterQueue struct {
	Name, URL string
	// Missing means that the redrive policy names a queue that does not exist.
	Missing    bool
	Attributes map[string]string
}

// Times are the time settings of one queue.
type Times struct {
	// Visibility is the timeout of each receive. A message is retried for Retention after its first receive.
	Visibility, Retention time.Duration
	// Attempt is the maximum duration of a delivery attempt without a response; 0 skips the check. AttemptText names
	// the settings that determine it.
	Attempt     time.Duration
	AttemptText string
	// Pause returns the longest delay after the given attempt, counted from 1. A nil Pause skips the check.
	Pause func(attempt int) time.Duration
	// MaxRetries is the maximum receive count of a queue without a redrive policy.
	MaxRetries int
	// TerminalCodes are the HTTP status codes that dead-letter a message immediately.
	TerminalCodes string
}

// App describes a target of messages.
type App struct {
	// Target is a URL or command. Own means that tendril starts the app.
	Target string
	Own    bool
	// Problem says why the app does not respond, or is "". Remedy may be "".
	Problem, Remedy string
}

// Problem is reported as a finding unchanged. ID identifies it in JSON output.
type Problem struct{ ID, What, Why, Remedy string }

// Permission is an AWS action and whether the role allows it.
type Permission struct {
	Action, Resource string
	// Feature is the Sid of the permission's statement in the policy.
	Feature string
	Allowed bool
}

// Clock describes a server's clock, as read from its Date header.
type Clock struct {
	Server string
	// Ahead is how far the server's clock is ahead of this machine's, to within about a second.
	Ahead  time.Duration
	Signed bool
}

// Proxy describes a proxy server between tendril and the app.
type Proxy struct {
	// Where is the file and line that set the timeout; "" for the default.
	Target, Name, Where string
	// Timeout is how long the proxy waits for the app, Attempt how long tendril does.
	Timeout, Attempt time.Duration
}

// Port describes an address on which the environment listens.
type Port struct {
	// Option is the option that sets the address At, and Use its purpose.
	Name, Option, Use, At string
	// Holder is the process that listens there now, or "". Set means that the option is not the default.
	Holder string
	Set    bool
	Free   string
	// Refused says why a running environment cannot be reached at the address, or is "".
	Refused string
}

// Disk describes the disk that holds the data directory.
type Disk struct {
	Path string
	// Free and Total are in bytes. Sync is the duration of a small synchronous write.
	Free, Total int64
	Sync        time.Duration
	Kind        string
	// Problem says why the directory is not writable, or is "".
	Problem  string
	Embedded bool
}

// OpenFiles compares the limit on the process's open files with the number it needs.
type OpenFiles struct {
	Limit, Needed int // Limit is 0 if unknown
}

// Zones describes the machine's time zone database.
type Zones struct {
	// System is the folder of the machine's database; "" if absent or not Checked.
	Checked bool
	System  string
	App     bool
}
