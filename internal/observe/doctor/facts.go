package doctor

import "time"

// Facts are the known facts about an environment and its machine. Unknown parts are zero.
type Facts struct {
	// Running distinguishes a running process from a planned start.
	Running bool
	// Health lists the causes of the health status, which is "" if unknown.
	Health       []Cause
	HealthStatus string
	Queues       []Queue
	Apps         []App
	// Problems are failures while collecting the other facts.
	Problems []Problem
	// Unchecked is why Permissions are unknown, or "".
	Permissions  []Permission
	Unchecked    string
	Clocks       []Clock
	Proxies      []Proxy
	Ports        []Port
	Certificates []Certificate
	Disk         Disk
	OpenFiles    OpenFiles
	Zones        Zones
	// OpenEndpoint is the address at which every local user can use the queues, or "". OtherUsers can log in.
	OpenEndpoint string
	OtherUsers   []string
}

// Cause is one sentence of the health report, with its severity.
type Cause struct {
	Level Level
	Text  string
}

// Queue is a queue with its settings.
type Queue struct {
	// Several reports whether there are other queues.
	Name    string
	URL     string
	OnSQS   bool
	Several bool
	// Managed means that 'tendril up' creates it, and Missing that it does not exist now.
	Managed, Missing bool
	// Attributes are the SQS attributes by name, or nil if unknown.
	Attributes map[string]string
	// Dead is nil if there is no dead-letter queue or it is unknown.
	Dead  *DeadLetterQueue
	Times Times
}

// DeadLetterQueue is a queue's dead-letter queue.
type DeadLetterQueue struct {
	Name, URL string
	// Missing means that the redrive policy names a queue that does not exist.
	Missing    bool
	Attributes map[string]string
}

// Times are the time settings of one queue.
type Times struct {
	// Visibility is the visibility timeout of each receive. Retention is how long a message is tried after its first
	// receive.
	Visibility, Retention time.Duration
	// Attempt is the maximum duration of an attempt without a response; 0 skips the check. AttemptText names its
	// settings.
	Attempt     time.Duration
	AttemptText string
	// Pause returns the longest delay after an attempt, starting with 1. Nil skips the check.
	Pause func(attempt int) time.Duration
	// MaxRetries is the receive count that applies if the queue has no redrive policy.
	MaxRetries int
	// TerminalCodes are the statuses that dead-letter a message immediately, or "".
	TerminalCodes string
}

// App is a target of messages.
type App struct {
	// Target is its URL or command. Own means that tendril starts it.
	Target string
	Own    bool
	// Problem is why it does not respond, or "". Remedy fixes it, if known.
	Problem, Remedy string
}

// Problem is a problem that needs no further check. ID identifies it to programs.
type Problem struct{ ID, What, Why, Remedy string }

// Permission is an action the role may or may not perform on AWS.
type Permission struct {
	Action, Resource string
	// Feature is the purpose: the Sid of the statement in the policy.
	Feature string
	Allowed bool
}

// Clock is the clock of a server, known from the Date header.
type Clock struct {
	Server string
	// Ahead is how far it is ahead of this machine's clock, to about a second.
	Ahead  time.Duration
	Signed bool
}

// Proxy is a server between tendril and the app.
type Proxy struct {
	// Where is the file and line with the timeout, or "" for the default.
	Target, Name, Where string
	// Timeout and Attempt are how long the proxy and tendril wait for the app.
	Timeout, Attempt time.Duration
}

// Port is an address the environment listens on.
type Port struct {
	// Option sets the address At. Use is its purpose.
	Name, Option, Use, At string
	// Holder is the process that listens there now, or "". Set means that the option was set explicitly.
	Holder string
	Set    bool
	Free   string
	// Refused is why a running environment cannot be reached there, or "".
	Refused string
}

// Disk is the disk with the data directory.
type Disk struct {
	Path string
	// Free and Total are in bytes. Sync is the duration of a small durable write.
	Free, Total int64
	Sync        time.Duration
	Kind        string
	// Problem is why nothing can be written there, or "".
	Problem  string
	Embedded bool
}

// OpenFiles is the number of files the process may open.
type OpenFiles struct {
	// Limit is 0 if unknown.
	Limit, Needed int
}

// Zones are the time zones of the machine.
type Zones struct {
	// System is the folder of the system's database. It is "" if there isn't one, or if Checked is false.
	Checked bool
	System  string
	App     bool
}
