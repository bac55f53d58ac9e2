package runtimeapi

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"tendril/internal/supervisor"
)

// Options configure a [Pool]. Only Command is required.
type Options struct {
	// Command runs without a shell. A name without a slash is looked up in Env's PATH; a relative path is relative to
	// Dir.
	Command []string
	// Dir is the working directory and LAMBDA_TASK_ROOT; "" means the current directory.
	Dir string
	// Env is the environment as NAME=value. Lambda's reserved variables are replaced.
	Env []string

	// User and Limits apply to each process; see [supervisor.Process].
	User   string
	Limits map[string]string

	// Instances is the maximum number of processes, 1 to 1000; 0 means 1.
	Instances int
	// Timeout limits an invocation, until the function requests the next one; 0 means 15 minutes, Lambda's maximum.
	Timeout time.Duration
	// Grace is the time between SIGTERM and SIGKILL; 0 means 2 s. A timeout sends SIGKILL at once, as in Lambda.
	Grace time.Duration
	// Hurry, once done, ends the grace periods of [Pool.Stop]; may be nil.
	Hurry context.Context

	// Name has 1 to 64 letters, digits, hyphens and underscores; "" means "function".
	Name string
	// Region defaults to Env's AWS_REGION or AWS_DEFAULT_REGION, or else us-east-1. AccountID defaults to
	// 000000000000.
	Region, AccountID string

	// Output receives every line of output, without the line ending and with control characters escaped. instance
	// counts from 1; stream is "stdout" or "stderr". Output must be safe for concurrent use and must not keep line.
	// While it blocks, lines may be dropped. It may be nil.
	Output func(instance int, stream string, line []byte)
	// LinesPerSecond limits a process's lines, averaged over five seconds; 0 means 1000.
	LinesPerSecond int

	Events Events
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// withDefaults does not check Command, User and Limits; package supervisor does.
func (o Options) withDefaults() (Options, error) {
	o.Timeout = cmp.Or(o.Timeout, 15*time.Minute)
	o.Grace = cmp.Or(o.Grace, 2*time.Second)
	o.Instances = cmp.Or(o.Instances, 1)
	if o.Hurry == nil {
		o.Hurry = context.Background()
	}

	if o.Name = cmp.Or(o.Name, "function"); len(o.Name) > 64 || !validName.MatchString(o.Name) {
		return o, fmt.Errorf("function name %q: use 1 to 64 of A-Z a-z 0-9 _ and -", o.Name)
	}

	o.AccountID = cmp.Or(o.AccountID, "000000000000")
	o.Region = cmp.Or(o.Region, lookup(o.Env, "AWS_REGION"), lookup(o.Env, "AWS_DEFAULT_REGION"), "us-east-1")
	if lookup(o.Env, "PATH") == "" {
		o.Env = append(o.Env[:len(o.Env):len(o.Env)], "PATH=/usr/local/bin:/usr/bin:/bin")
	}

	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, fmt.Errorf("the function's working directory: %w", err)
	}
	return o, nil
}

// Events are the listeners of a pool; each may be nil. They must return quickly and must not call the pool. Events of
// one process are sequential.
type Events struct {
	Ready        func(Ready)
	InitFailed   func(InitFailed)
	TimedOut     func(TimedOut)
	Exited       func(Exited)
	Refused      func(Refused)
	LinesDropped func(supervisor.LinesDropped)
}

// Ready reports that a process has requested its first invocation.
type Ready struct {
	// Instance counts from 1; numbers are reused.
	Instance, PID int
	After         time.Duration
}

// InitFailed reports that a process failed before its first invocation.
type InitFailed struct {
	Instance int
	// Type is an error type, such as "Runtime.ImportModuleError".
	Type   string
	Reason string
	// Failures counts failures since the last response. No process starts during Pause, which starts with this failure.
	Failures int
	Pause    time.Duration
}

// TimedOut reports that an invocation timed out.
type TimedOut struct {
	Instance  int
	RequestID string
	Limit     time.Duration
}

// Exited reports that a process and its group have exited or could not start.
type Exited struct {
	// PID is 0 if the process could not be started.
	Instance, PID int
	Exit          supervisor.Exit
	// Asked is the reason the pool ended the process, such as "stopped" or "time limit"; "" if it exited by itself.
	Asked string
}

// Refused reports the 1st, 10th, 100th and so on request from a program outside the function.
type Refused struct {
	Instance int
	// Client describes the program, such as "curl (pid 123) of user 1000".
	Client string
	// Total is the number of requests rejected by the pool.
	Total int
}
