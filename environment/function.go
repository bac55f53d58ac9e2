package environment

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"regexp"
	"strings"
	"time"

	"tendril/app"
	"tendril/aws"
	"tendril/deliver"
	"tendril/runtimeapi"
	"tendril/supervisor"
	"tendril/telemetry"
)

// lambdaMargin is what a call of a function may take beyond the function's own
// time limit.
const lambdaMargin = 5 * time.Second

// openFunction opens the way to a function of AWS Lambda.
func (e *Environment) openFunction(ctx context.Context, l *line, c *courier) error {
	opts := &aws.LambdaOptions{Function: l.settings().Function, Timeout: e.s.FunctionTimeout + lambdaMargin,
		Connections: l.settings().Concurrency, Log: e.report.SDK}
	if e.Config.IsSet("region") {
		opts.Region = e.s.Region
	}
	function, err := aws.OpenLambda(ctx, opts)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	l.target, l.close = "lambda:"+l.settings().Function, function.Close
	e.warnOfFunction(ctx, l, function)
	return e.invokeBy(l, c, function)
}

// warnOfFunction says where a function may still run when its messages become
// visible again. That may need a permission that nothing else does; without it
// nothing is said.
func (e *Environment) warnOfFunction(ctx context.Context, l *line, function *aws.Lambda) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	about, err := function.Describe(ctx)
	if err == nil && about.Timeout > l.settings().VisibilityTimeout {
		e.report.note(slog.LevelInfo, "aws",
			fmt.Sprintf("the function %s may run for %s, longer than the visibility timeout %s of %s: messages are hidden "+
				"for longer while it works",
				l.settings().Function, about.Timeout, l.settings().VisibilityTimeout, l.queue.name),
			slog.String("queue", l.queue.name))
	}
}

// openLocalFunction runs a function on this machine. Queues with the same
// command share its processes.
func (e *Environment) openLocalFunction(l *line, c *courier) error {
	command := l.settings().Lambda
	f := e.functions[command]
	if f == nil {
		var err error
		if f, err = e.startFunction(command); err != nil {
			return err
		}
		e.functions[command] = f
	}
	l.target, l.close = f.name, func() {}
	return e.invokeBy(l, c, f.pool)
}

// startFunction starts a function as the app's processes are: as whom, within which
// limits and with which variables the settings and the bundle say.
func (e *Environment) startFunction(command string) (*localFunction, error) {
	if err := e.refuseRoot("the function"); err != nil {
		return nil, err
	}
	if err := e.openAppLogs(); err != nil {
		return nil, err
	}
	process := app.Guard(e.s, supervisor.Process{})
	opts := runtimeapi.Options{
		Command: []string{"/bin/sh", "-c", command}, Env: e.processEnviron(e.Bundle, 0),
		Instances: e.s.HTTPConnections,
		User:      process.User, Limits: process.Limits,
		Timeout: e.s.FunctionTimeout, Grace: max(e.s.AppGrace, time.Nanosecond), Hurry: e.urgent, Name: e.s.Name,
		Region: e.s.Region, AccountID: e.s.AccountID,
		LinesPerSecond: e.s.AppLogRate,
		Output: func(instance int, stream string, text []byte) {
			e.appOutput(fmt.Sprintf("function.%d", instance), stream, text)
		},
		Events: e.functionEvents(),
	}
	if e.Bundle != nil {
		opts.Dir = e.Bundle.Dir
	}
	pool, err := runtimeapi.New(opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAppFailed, err)
	}
	pool.Start()
	e.steps.push("the function", pool.Stop)
	return &localFunction{pool, e.functionName(command)}, nil
}

// functionName is what a function on this machine is called in logs, metrics and the
// status, which are read without the token: its program's name, since arguments may
// hold secrets, with a number where another function has that name.
func (e *Environment) functionName(command string) string {
	same := 1
	for other := range e.functions {
		if programName(other) == programName(command) {
			same++
		}
	}
	name := "lambda: " + programName(command)
	if same > 1 {
		name += fmt.Sprintf(" (%d)", same)
	}
	return name
}

var (
	plainAssignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=[A-Za-z0-9_./:@%+,-]*$`)
	plainPath       = regexp.MustCompile(`^[A-Za-z0-9_./@%+-]+$`)
)

// programName is the base name of the program that a command line for the shell runs;
// "function" where only a shell can tell it from a part of something else.
func programName(command string) string {
	for word := range strings.FieldsSeq(command) {
		switch {
		case word == "exec", plainAssignment.MatchString(word):
		case plainPath.MatchString(word):
			return path.Base(word)
		default:
			return "function"
		}
	}
	return "function"
}

func (e *Environment) functionEvents() runtimeapi.Events {
	note := func(level slog.Level, instance int, text string, attrs ...slog.Attr) {
		e.report.note(level, fmt.Sprintf("function.%d", instance), text, attrs...)
	}
	return runtimeapi.Events{
		Ready: func(r runtimeapi.Ready) {
			note(slog.LevelInfo, r.Instance,
				fmt.Sprintf("process %d of the function is ready after %s", r.PID, short(r.After)), slog.Int("pid", r.PID))
		},
		InitFailed: func(f runtimeapi.InitFailed) {
			note(slog.LevelWarn, f.Instance,
				fmt.Sprintf("the function does not start: %s; next try in %s", f.Reason, short(f.Pause)),
				slog.String("reason", f.Type))
		},
		TimedOut: func(t runtimeapi.TimedOut) {
			note(slog.LevelWarn, t.Instance, fmt.Sprintf("the function took longer than %s and was killed", short(t.Limit)))
		},
		Refused: func(r runtimeapi.Refused) {
			note(slog.LevelWarn, r.Instance, "a program that the function did not start asked for its messages, and was refused",
				slog.String("client", r.Client), slog.Int("refused", r.Total))
		},
		LinesDropped: e.linesDropped,
		Exited: func(x runtimeapi.Exited) {
			level := slog.LevelWarn
			if x.Asked != "" || e.stopping() {
				level = slog.LevelDebug
			}
			note(level, x.Instance, fmt.Sprintf("a process of the function ended: %s", x.Exit), slog.Int("pid", x.PID))
		},
	}
}

// invokeBy makes events of a queue's messages and hands them to a function.
func (e *Environment) invokeBy(l *line, c *courier, invoker deliver.Invoker) error {
	function, err := deliver.NewLambda(&deliver.LambdaOptions{Invoker: invoker, QueueARN: l.queue.arn})
	if err != nil {
		return err
	}
	c.to, c.goesTo = function, func(path string) string { return l.target + path }
	c.tracer = e.otlp.Tracer(telemetry.TracerOptions{Queue: l.queue.name, QueueURL: l.queue.url, Function: l.target})
	return nil
}

// localFunction is a function on this machine.
type localFunction struct {
	pool *runtimeapi.Pool
	// name is what people are shown.
	name string
}
