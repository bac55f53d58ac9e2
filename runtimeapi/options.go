package runtimeapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"tendril/supervisor"
)

// MaxInstances is the largest number of processes that one pool runs.
const MaxInstances = 1000

// Options say what to run and how. Only Command is required.
type Options struct {
	// Command is the program and its arguments, run without a shell: a binary
	// built on a Lambda runtime client, or a script that speaks the Runtime API.
	// A name without a slash is looked up in the PATH of Env; one with a slash
	// that is not absolute counts from Dir.
	Command []string
	// Dir is the working directory and the LAMBDA_TASK_ROOT; "" is our own.
	Dir string
	// Env is the environment as NAME=value, for example the credentials. What
	// Lambda reserves is set over it; nothing else is inherited.
	Env []string

	// User and Limits are those of the processes: see [supervisor.Process].
	User   string
	Limits map[string]string

	// Instances is how many processes may live at once, 1 to [MaxInstances];
	// 0 means 1.
	Instances int
	// Timeout is the time limit of one invocation, up to the next time that the
	// function asks for work; 0 means 15 minutes, the longest that Lambda knows.
	Timeout time.Duration
	// InitTimeout is how long a process may take from its start until it asks
	// for its first invocation; 0 means one minute. (Lambda gives 10 s, then
	// starts over within the time limit of the first invocation.)
	InitTimeout time.Duration
	// Grace is how long a process may take to end after TERM before its group gets
	// KILL; 0 means 2 s. One that is past its time limit gets KILL at once, as at
	// Lambda.
	Grace time.Duration
	// Hurry ends the graces of [Pool.Stop] when it is done; nil is never.
	Hurry context.Context

	// Name is the function's name, 1 to 64 of A-Z a-z 0-9 _ and -; "" means
	// "function".
	Name string
	// Handler becomes _HANDLER; "" leaves it out.
	Handler string
	// Region and AccountID are those of the function's ARN. "" means the
	// AWS_REGION of Env, else us-east-1; and 000000000000.
	Region, AccountID string
	// MemoryMB is what the function is told that it may use. It is not
	// enforced. 0 means 128.
	MemoryMB int

	// Output takes every line that a process writes, without its end and with
	// control characters escaped. instance is 1 to Instances; stream is "stdout" or
	// "stderr". It may be called by several goroutines at once and must not keep
	// line. A sink that stalls costs lines, which are counted. nil discards output.
	Output func(instance int, stream string, line []byte)
	// MaxLine is the longest line in bytes; the rest of a longer one is cut and
	// its length told in its place. 0 means 16 KiB.
	MaxLine int
	// LinesPerSecond is how many lines a process may write per second, averaged over
	// five seconds; more are dropped and counted. 0 means 1000.
	LinesPerSecond int

	// Events are called as things happen.
	Events Events
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// withDefaults returns a copy in which no zero is left, or says what is wrong.
func (o Options) withDefaults() (Options, error) {
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{{"Timeout", &o.Timeout, 15 * time.Minute}, {"InitTimeout", &o.InitTimeout, time.Minute},
		{"Grace", &o.Grace, 2 * time.Second}} {
		if *d.value < 0 {
			return o, fmt.Errorf("%s is %s: it cannot be negative; 0 means %s", d.name, *d.value, d.zero)
		}
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	for _, n := range []struct {
		name      string
		value     *int
		zero, max int
	}{{"Instances", &o.Instances, 1, MaxInstances}, {"MemoryMB", &o.MemoryMB, 128, 1 << 20},
		{"MaxLine", &o.MaxLine, 16 << 10, 1 << 20}, {"LinesPerSecond", &o.LinesPerSecond, 1000, 1_000_000}} {
		if *n.value < 0 || *n.value > n.max {
			return o, fmt.Errorf("%s is %d: use 1 to %d, or 0 for %d", n.name, *n.value, n.max, n.zero)
		}
		if *n.value == 0 {
			*n.value = n.zero
		}
	}
	if o.Hurry == nil {
		o.Hurry = context.Background()
	}
	if o.Name == "" {
		o.Name = "function"
	}
	if !validName.MatchString(o.Name) {
		return o, fmt.Errorf("function name %q: use 1 to 64 of A-Z a-z 0-9 _ and -", o.Name)
	}
	if o.AccountID == "" {
		o.AccountID = "000000000000"
	}
	if err := o.checkEnv(); err != nil {
		return o, err
	}
	o.Region = region(&o)
	return o, o.resolve()
}

// region is the first of: the option, the environment, the SDKs' usual one.
func region(o *Options) string {
	for _, region := range []string{o.Region, lookup(o.Env, "AWS_REGION"), lookup(o.Env, "AWS_DEFAULT_REGION")} {
		if region != "" {
			return region
		}
	}
	return "us-east-1"
}

// checkEnv names a bad variable but never prints a value: it may be secret.
func (o *Options) checkEnv() error {
	for i, entry := range o.Env {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return fmt.Errorf("entry %d of the function's environment has no name: write NAME=value", i+1)
		}
		if strings.ContainsRune(entry, 0) {
			return fmt.Errorf("the variable %q of the function's environment contains a NUL byte, which no environment can "+
				"carry", name)
		}
	}
	return nil
}

// resolve makes the directory absolute and finds the program, so that a
// mistyped command is an error now and not a crash loop later.
func (o *Options) resolve() error {
	if len(o.Command) == 0 || o.Command[0] == "" {
		return errors.New("no command for the function: give the program that speaks the Lambda Runtime API, such as " +
			"./bootstrap")
	}
	if strings.ContainsRune(strings.Join(o.Command, ""), 0) {
		return errors.New("the function's command contains a NUL byte, which no command can carry")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return fmt.Errorf("the function's working directory: %w", err)
	}
	o.Dir = dir
	_, err = findProgram(o.Command[0], o.Dir, lookup(o.Env, "PATH"))
	return err
}

// Events are what a pool reports. Each func may be nil. Those of one process come
// in order and one at a time; those of two processes may come at once. A func
// must return soon and must not call the pool.
type Events struct {
	// Started: a process runs.
	Started func(Started)
	// Ready: a process asked for its first invocation.
	Ready func(Ready)
	// InitFailed: a process ended before that, or could not be started.
	InitFailed func(InitFailed)
	// TimedOut: an invocation met its time limit, and its process was killed.
	TimedOut func(TimedOut)
	// Exited: a process ended, and its group with it; also one that could not be
	// started.
	Exited func(Exited)
	// Refused: a program that is not the function asked for its invocations. It is reported
	// the first, the tenth, the hundredth of the pool, and so on.
	Refused func(Refused)
	// LinesDropped: output was lost. Its process is "function-" and the instance.
	LinesDropped func(supervisor.LinesDropped)
}

// Started says that a process runs.
type Started struct {
	// Instance is 1 to the number of instances; a successor may have the number
	// of a process that ended.
	Instance, PID int
}

// Ready says that a process has done its initialization.
type Ready struct {
	Instance, PID int
	// After is the time since its start.
	After time.Duration
}

// InitFailed says that a process did not get as far as its first invocation.
type InitFailed struct {
	Instance int
	// Type is Lambda's name for it, or the one that the function posted
	// ("Runtime.ImportModuleError").
	Type string
	// Reason says it in a few words.
	Reason string
	// Pause is how long no process is started; it grows with Failures, the
	// number of failures since the last invocation that was answered.
	Failures int
	Pause    time.Duration
}

// TimedOut says that an invocation met its time limit.
type TimedOut struct {
	Instance  int
	RequestID string
	// Limit is the time that it had.
	Limit time.Duration
}

// Exited says how a process ended.
type Exited struct {
	// PID is 0 when the process could not be started.
	Instance, PID int
	Exit          Exit
	// Asked tells why we ended it ("stopped", "time limit"); "" when it ended by
	// itself.
	Asked string
}

// Refused says that a program was refused that the process did not start.
type Refused struct {
	Instance int
	// Client names the program, as "curl (pid 123) of user 1000".
	Client string
	// Total is how many requests the pool has refused.
	Total int
}

// Exit is how one process ended.
type Exit = supervisor.Exit

// findProgram returns the file to execute for the first word of a command. It
// looks where the function's own environment says, which may not be ours.
func findProgram(name, dir, path string) (string, error) {
	if strings.Contains(name, "/") {
		file := name
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		if err := executable(file); err != nil {
			return "", fmt.Errorf("the function's command %s cannot be run: %w", name, err)
		}
		return file, nil
	}
	for _, folder := range filepath.SplitList(cmp.Or(path, defaultPath)) {
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(dir, folder)
		}
		if file := filepath.Join(folder, name); executable(file) == nil {
			return file, nil
		}
	}
	if executable(filepath.Join(dir, name)) == nil {
		return "", fmt.Errorf("the function's command %s is not in the PATH of its environment; to run the one in %s "+
			"write ./%s", name, dir, name)
	}
	return "", fmt.Errorf("the function's command %s is not in the PATH of its environment: give its path", name)
}

// executable says why file is no program.
func executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder: give the program in it", file)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable: run chmod +x on it, or name its interpreter first, as in python3 %s", file,
			filepath.Base(file))
	}
	return nil
}

// defaultPath is where programs are looked for when the environment does not
// say.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// lookup returns the value of a variable; the last entry counts, as it does for
// the process.
func lookup(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
