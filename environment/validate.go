package environment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"tendril/app"
	"tendril/bundle"
	"tendril/config"
	"tendril/console"
	"tendril/deliver"
	"tendril/periodic"
	"tendril/supervisor"
	"tendril/tasks"
)

// Validate returns everything for which a start would be refused, as far as that shows
// without starting, creating or asking anything; nil for nothing. A start begins with it.
func (o *Options) Validate() error { return o.unstarted().validate(context.Background()) }

// unstarted is an environment to judge the options with.
func (o *Options) unstarted() *Environment {
	return &Environment{lifecycle: newLifecycle(), Options: *o, s: &o.Config.Settings}
}

// ProbePorts returns an error that wraps [ErrConflict] when an address on which the
// environment or the app is to listen is in use, or when two of them are the same.
func (o *Options) ProbePorts() error {
	e := o.unstarted()
	var problems []error
	var held []net.Listener
	hold := func(l net.Listener, err error) {
		if err != nil {
			problems = append(problems, err)
			return
		}
		held = append(held, l)
	}
	if e.s.Console != config.Off {
		hold(e.listenConsole())
	}
	if e.s.AnyEmbedded() {
		hold(listen("listen", e.s.Listen, true))
	}
	if e.hasApp() {
		if err := supervisor.CheckPort(bundle.MainProcess, e.s.Port); err != nil {
			problems = append(problems, portConflict(err))
		}
	}
	for _, l := range held {
		problems = append(problems, l.Close())
	}
	return errors.Join(problems...)
}

// validate is the first part of a start.
func (e *Environment) validate(context.Context) error {
	if e.QueuesOnly {
		return nil
	}
	_, scaling := scalePolicy(e.s, e.s.ScaleMinSize, e.s.ScaleMaxSize).Complete()
	var problems []error
	for _, err := range slices.Concat(e.validateApp(), e.validateTargets(), e.validatePaths(), []error{scaling}) {
		if err != nil && !errors.Is(err, ErrSettings) {
			err = fmt.Errorf("%w: %w", ErrSettings, err)
		}
		problems = append(problems, err)
	}
	return errors.Join(append(problems, e.validateTasks())...)
}

// validateApp judges how the app, or a function on this machine, is to be run.
func (e *Environment) validateApp() (problems []error) {
	if slices.ContainsFunc(e.s.Queues, func(q config.QueueSettings) bool { return q.Lambda != "" }) {
		function := app.Guard(e.s, supervisor.Process{Name: "function", Shell: "true"})
		_, err := supervisor.New([]supervisor.Process{function}, nil)
		problems = append(problems, err, e.refuseRoot("the function"), refuseForeignBundle(e.Bundle, isMachineRoot()))
	}
	if !e.hasApp() {
		return problems
	}
	web := supervisor.Process{Name: bundle.MainProcess, Argv: e.Command, Port: e.s.Port}
	if len(e.Command) == 0 {
		main, err := e.Bundle.Web()
		if err != nil {
			return problems // it was refused when the bundle was opened
		}
		web.Shell = main.Command
	}
	if e.s.Healthcheck != "" {
		var err error
		if web.Check, err = supervisor.ParseCheck(e.s.Healthcheck); err != nil {
			problems = append(problems, err)
		}
	}
	_, err := supervisor.New([]supervisor.Process{app.Guard(e.s, web)}, nil)
	return append(problems, err, e.refuseRoot("the app"), refuseForeignBundle(e.Bundle, isMachineRoot()))
}

// validateTargets judges what messages are posted to.
func (e *Environment) validateTargets() (problems []error) {
	codes, err := deliver.ParseStatusSet(e.s.SuccessCodes)
	if err != nil {
		problems = append(problems, fmt.Errorf("success codes: %w", err))
	}
	for i := range e.s.Queues {
		q := &e.s.Queues[i]
		if q.ToFunction() || q.Target == "" {
			continue
		}
		way, err := deliver.NewHTTP(&deliver.HTTPOptions{Target: q.Target, Path: q.HTTPPath, MimeType: q.MimeType,
			QueueName: q.Name, SuccessCodes: codes, Version: e.Version})
		if err != nil {
			problems = append(problems, fmt.Errorf("the app's address: %w", err))
			continue
		}
		way.Close()
	}
	if e.s.Healthcheck != "" && !e.hasApp() {
		_, err := supervisor.ParseCheck(e.s.Healthcheck)
		problems = append(problems, err)
	}
	return problems
}

// validatePaths judges the files and folders that are to be read and written.
func (e *Environment) validatePaths() (problems []error) {
	if e.s.Console != config.Off || e.s.AnyEmbedded() {
		problems = append(problems, creatable("data-dir", e.s.DataDir))
	}
	if e.s.AppLogDir != "" {
		problems = append(problems, creatable("app-log-dir", e.s.AppLogDir))
	}
	if e.s.PIDFile != "" {
		problems = append(problems, validatePIDFile(e.s.PIDFile))
	}
	if e.s.ConsoleTLSCert != "" && e.s.Console != config.Off {
		if _, err := console.OpenCertificate(e.s.ConsoleTLSCert, e.s.ConsoleTLSKey, console.CertificateEvents{}); err != nil {
			problems = append(problems, fmt.Errorf("--console-tls-cert: %w", err))
		}
	}
	return problems
}

// validatePIDFile says why a PID file cannot be written; nil when it can.
func validatePIDFile(path string) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("pid-file %s: it is not a regular file: choose another path", path)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("pid-file %s: there is no folder %s: choose a path in a folder that exists", path, dir)
	}
	return creatable("pid-file", dir)
}

// creatable says why a folder can neither be written to nor made; nil when it can.
func creatable(option, dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			continue
		case err == nil && !info.IsDir():
			err = errors.New("it is no folder")
		case err == nil:
			const writeAndSearch = 0x2 | 0x1
			err = syscall.Access(at, writeAndSearch)
		}
		if err != nil {
			return fmt.Errorf("%s %s cannot be used: %s: %w; choose a folder that may be written to with --%s", option, dir,
				at, withoutPath(err), option)
		}
		return nil
	}
}

// withoutPath is an error of the file system without the path, which is told already.
func withoutPath(err error) error {
	if wrong := (*fs.PathError)(nil); errors.As(err, &wrong) {
		return wrong.Err
	}
	return err
}

// validateTasks judges the file of periodic tasks, and the queues that they go to.
func (e *Environment) validateTasks() error {
	path := e.CronFile()
	if path == "" {
		return nil
	}
	file, err := tasks.Read(path)
	if err != nil {
		var wrong *periodic.Error
		if !errors.As(err, &wrong) {
			err = fmt.Errorf("%w: %w", ErrSettings, err)
		}
		return err
	}
	first := &e.s.Queues[0]
	for _, t := range file.Tasks {
		named := slices.IndexFunc(e.s.Queues, func(q config.QueueSettings) bool { return q.Name == t.Queue })
		switch embedded := first.Backend == config.BackendEmbedded; {
		case t.Queue == "":
		case named >= 0 && (e.s.Queues[named].Backend == config.BackendEmbedded) != embedded:
			err = errors.Join(err,
				fmt.Errorf("%w: task %s cannot go to %s: runs are accounted for where the first queue %s lives, and only one of "+
					"the two is embedded; name the other one first, or another queue for the task",
					ErrSettings, t.Name, t.Queue, first.Name))
		case named < 0 && embedded && strings.Contains(t.Queue, ":"):
			err = errors.Join(err,
				fmt.Errorf("%w: task %s: on the embedded backend a queue has a name alone, not %s", ErrSettings, t.Name, t.Queue))
		}
	}
	return err
}
