package environment

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"tendril/internal/access"
	"tendril/internal/app"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/cron/periodic"
	"tendril/internal/cron/tasks"
	"tendril/internal/delivery/deliver"
	"tendril/internal/host/listen"
	"tendril/internal/supervisor"
)

// Validate returns every problem that would prevent startup and can be detected without creating or querying anything.
func (o *Options) Validate() error {
	checks := o.validatePaths()
	if !o.QueuesOnly {
		checks = slices.Concat(o.validateApp(), o.validateTargets(), checks)
	}
	var problems []error
	for _, err := range checks {
		if err != nil && !errors.Is(err, ErrSettings) {
			err = invalidSettings(err)
		}
		problems = append(problems, err)
	}
	if !o.QueuesOnly {
		problems = append(problems, o.validateTasks())
	}
	return errors.Join(problems...)
}

// ProbePorts returns an error that wraps [ErrConflict] if an address to listen on is in use or configured twice.
func (o *Options) ProbePorts() error {
	s := &o.Config.Settings
	var problems []error
	var held []net.Listener
	hold := func(l net.Listener, err error) {
		problems = append(problems, err)
		if err == nil {
			held = append(held, l)
		}
	}

	if s.Console != config.Off {
		hold(listenConsole(s))
	}
	if s.AnyEmbedded() {
		if address, _ := s.ListenOn(); address != "" {
			l, err := listen.TCP(address, s.Credentials == "")
			hold(l, listenError("listen", err))
		}
	}
	if o.HasApp() {
		if err := supervisor.CheckPort(bundle.MainProcess, s.Port); err != nil {
			problems = append(problems, portConflict(err))
		}
	}

	for _, l := range held {
		problems = append(problems, l.Close())
	}
	return errors.Join(problems...)
}

func (o *Options) validateApp() (problems []error) {
	s := &o.Config.Settings
	if slices.ContainsFunc(s.Queues, runsHere) {
		function := app.Guard(s, supervisor.Process{Name: "function", Shell: "true"})
		_, err := supervisor.New([]supervisor.Process{function}, nil)
		problems = append(problems, err, refuseRoot(s, o.Bundle, "the function", isMachineRoot()))
	}

	if !o.HasApp() {
		return problems
	}
	web := supervisor.Process{Name: bundle.MainProcess, Argv: o.Command, Port: s.Port}
	if len(o.Command) == 0 {
		main, err := o.Bundle.Web()
		if err != nil {
			return problems // reported when the bundle was opened
		}
		web.Shell = main.Command
	}

	if s.Healthcheck != "" {
		web.Check, _ = supervisor.ParseCheck(s.Healthcheck) // reported by validateTargets
	}
	_, err := supervisor.New([]supervisor.Process{app.Guard(s, web)}, nil)
	if o.AppliesMachine() {
		problems = append(problems, refuseMachine(o.Bundle))
	}
	return append(problems, err, refuseRoot(s, o.Bundle, "the app", isMachineRoot()))
}

func (o *Options) validateTargets() (problems []error) {
	s := &o.Config.Settings
	codes, err := deliver.ParseStatusSet(s.SuccessCodes)
	if err != nil {
		problems = append(problems, fmt.Errorf("success codes %w", err))
	}

	for i := range s.Queues {
		q := &s.Queues[i]
		if _, err := terminalCodes(q); err != nil {
			problems = append(problems, err)
		}
		if q.ToFunction() || q.Target == "" {
			continue
		}
		client, err := deliver.NewClient(&deliver.Options{Target: q.Target, Path: q.HTTPPath, MimeType: q.MimeType,
			QueueName: q.Name, SuccessCodes: codes, Version: o.Version, TLS: targetFiles(q)})
		if err != nil {
			problems = append(problems, fmt.Errorf("app address: %w", err))
			continue
		}
		client.Close()
	}

	if s.Healthcheck != "" {
		_, err := supervisor.ParseCheck(s.Healthcheck)
		problems = append(problems, err)
	}
	return problems
}

func (o *Options) validatePaths() (problems []error) {
	s := &o.Config.Settings
	if s.Console != config.Off || s.AnyEmbedded() || o.QueuesOnly {
		problems = append(problems, checkCreatable("data-dir", s.DataDir))
	}
	if s.AppLogDir != "" && !o.QueuesOnly {
		problems = append(problems, checkCreatable("app-log-dir", s.AppLogDir))
	}
	if s.PIDFile != "" && !o.QueuesOnly {
		problems = append(problems, validatePIDFile(s.PIDFile))
	}

	if s.Credentials != "" && s.AnyEmbedded() {
		if _, err := access.ReadFile(s.Credentials); err != nil {
			problems = append(problems, fmt.Errorf("--credentials: %w", err))
		}
	}
	if s.TLSCert != "" && s.AnyEmbedded() {
		_, err := openCertificate("tls-cert", s.TLSCert, s.TLSKey, nil, nil)
		problems = append(problems, err)
	}
	if s.ConsoleTLSCert != "" && s.Console != config.Off {
		_, err := openCertificate("console-tls-cert", s.ConsoleTLSCert, s.ConsoleTLSKey, nil, nil)
		problems = append(problems, err)
	}
	return problems
}

func validatePIDFile(path string) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("pid-file %s: not a regular file; choose another path", path)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("pid-file %s: folder %s not found; choose a path in an existing folder", path, dir)
	}
	return checkCreatable("pid-file", dir)
}

func checkCreatable(option, dir string) error {
	existing, info, err := nearestExisting(dir)
	refuse := func(reason error) error {
		return fmt.Errorf("cannot write to %s (%s): %w; choose a path in a writable folder with --%s", existing, option,
			reason, option)
	}
	if err != nil {
		if wrong, ok := errors.AsType[*fs.PathError](err); ok {
			err = wrong.Err // the message already contains the path
		}
		return refuse(err)
	}
	if !info.IsDir() {
		return refuse(errors.New("not a folder"))
	}

	const writeAndSearch = 0x2 | 0x1
	if err := syscall.Access(existing, writeAndSearch); err != nil {
		return refuse(err)
	}
	return nil
}

func nearestExisting(dir string) (path string, info fs.FileInfo, err error) {
	path = dir
	info, err = os.Stat(path)
	for errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	return path, info, err
}

func (o *Options) validateTasks() error {
	path := o.CronFile()
	if path == "" {
		return nil
	}
	file, err := tasks.Read(path)
	if err != nil {
		if _, ok := errors.AsType[*periodic.Error](err); !ok {
			err = invalidSettings(err)
		}
		return err
	}

	var problems []error
	for i := range file.Tasks {
		t := &file.Tasks[i]
		if err := checkTaskQueue(&o.Config.Settings, t.Name, t.Queue); err != nil {
			problems = append(problems, invalidSettings(err))
		}
	}
	return errors.Join(problems...)
}

func checkTaskQueue(s *config.Settings, task, queue string) error {
	first := &s.Queues[0]
	isEmbedded := first.Backend == config.BackendEmbedded
	at := slices.IndexFunc(s.Queues, func(q config.QueueSettings) bool { return q.Name == queue })
	switch {
	case queue == "":
	case at >= 0 && (s.Queues[at].Backend == config.BackendEmbedded) != isEmbedded:
		return fmt.Errorf("task %s cannot use queue %s: scheduled runs are recorded with the first queue %s, and "+
			"only one of the two is embedded; name the other one first, or use another queue for the task",
			task, queue, first.Name)
	case at < 0 && isEmbedded && strings.Contains(queue, ":"):
		return fmt.Errorf("task %s: a queue of the embedded backend has only a name, not %s", task, queue)
	}
	return nil
}
