package doctor

import "time"

// Facts are the known facts about an environment and its machine. Unknown parts have their zero value.
type Facts struct {
	// Running reports whether the facts describe a running process rather than a planned start.
	Running bool
	// Health lists the causes that affect or explain the health of the running environment. HealthStatus is its
	// one-word status, or "" if unknown.
	Health       []Cause
	HealthStatus string
	// Queues are the queues the environment works on.
	Queues []Queue
	// Apps are the targets messages are posted to.
	Apps []App
	// Problems are failures while collecting the other facts.
	Problems []Problem
	// Permissions are the role's permissions on AWS. Unchecked is the reason if they are unknown, else "".
	Permissions []Permission
	Unchecked   string
	Clocks      []Clock
	Proxies     []Proxy
	Ports       []Port
	// Certificates are the files in use.
	Certificates []Certificate
	Disk         Disk
	OpenFiles    OpenFiles
	Zones        Zones
	// OpenEndpoint is the address at which every local user can use the queues, or "". OtherUsers are the local users
	// other than this one who can log in.
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
	// Name, URL and OnSQS identify the queue. Several reports whether there are other queues.
	Name    string
	URL     string
	OnSQS   bool
	Several bool
	// Managed reports whether 'tendril up' creates it, and Missing whether it does not exist now.
	Managed, Missing bool
	// Attributes are the queue's SQS attributes by name, or nil if unknown.
	Attributes map[string]string
	// Dead is the dead-letter queue. It is nil if there isn't one or it is unknown.
	Dead  *DeadLetterQueue
	Times Times
}

// DeadLetterQueue is a queue's dead-letter queue.
type DeadLetterQueue struct {
	Name, URL string
	// Missing reports that the redrive policy names a queue that does not exist.
	Missing bool
	// Attributes are the queue's SQS attributes by name, or nil if unknown.
	Attributes map[string]string
}

// Times are the time settings of one queue.
type Times struct {
	// Visibility is the visibility timeout of each receive. Retention is how long a message is tried after its first
	// receive.
	Visibility, Retention time.Duration
	// Attempt is the maximum duration of an attempt without a response; 0 skips the check. AttemptText names the
	// settings it results from.
	Attempt     time.Duration
	AttemptText string
	// Pause returns the longest delay between an attempt, starting with 1, and the next one. Nil skips the check.
	Pause func(attempt int) time.Duration
	// MaxRetries is the receive count that applies if the queue has no redrive policy.
	MaxRetries int
	// TerminalCodes are the statuses that dead-letter a message immediately, or "".
	TerminalCodes string
}

// App is a target of messages.
type App struct {
	// Target is its URL or command. Own reports whether tendril starts it.
	Target string
	Own    bool
	// Problem is why it does not respond, or "". Remedy is a command that fixes it, if known.
	Problem, Remedy string
}

// Problem is a problem that needs no further check, such as an unreachable service. ID identifies it to programs.
type Problem struct{ ID, What, Why, Remedy string }

// Permission reports whether the role may perform an action on AWS.
type Permission struct {
	Action, Resource string
	// Feature is the purpose: the Sid of the statement in the policy.
	Feature string
	Allowed bool
}

// Clock is the clock of a server, known from the Date header of its response.
type Clock struct {
	Server string
	// Ahead is how far it is ahead of this machine's clock, to about a second.
	Ahead time.Duration
	// Signed reports whether requests to it have a signature with a timestamp.
	Signed bool
}

// Proxy is a server between tendril and the app.
type Proxy struct {
	// Target is the app behind it, Name the proxy program, and Where its file and line; "" for the default.
	Target, Name, Where string
	// Timeout is how long it waits for the app, and Attempt how long tendril waits.
	Timeout, Attempt time.Duration
}

// Port is an address the environment listens on.
type Port struct {
	// Name is a short name, Option the option that sets it, Use its purpose, and At the address.
	Name, Option, Use, At string
	// Holder is the process that listens there now, or "". Set reports whether the option was set explicitly.
	Holder string
	Set    bool
	// Free is the address 'tendril up' uses instead, or "".
	Free string
	// Refused is why a running environment cannot be reached there, or "".
	Refused string
}

// Disk is the disk with the data directory.
type Disk struct {
	// Path is the data directory, or "" if it was not checked.
	Path string
	// Free and Total are in bytes. Sync is the duration of a small durable write.
	Free, Total int64
	Sync        time.Duration
	// Kind names a network file system, or is "" for a local one.
	Kind string
	// Problem is why nothing can be written there, or "".
	Problem string
	// Embedded reports whether queues are stored there.
	Embedded bool
}

// OpenFiles is the number of files the process may open.
type OpenFiles struct {
	// Limit is 0 if unknown. Needed is the number used by deliveries, app and queues.
	Limit, Needed int
}

// Zones are the time zones of the machine.
type Zones struct {
	// Looked reports whether they were checked. System is the folder of the system's database, or "".
	Looked bool
	System string
	// App reports whether an app runs on this machine.
	App bool
}
