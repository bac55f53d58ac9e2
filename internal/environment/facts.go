package environment

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"tendril/internal/bundle"
	"tendril/internal/bundle/getconfig"
	"tendril/internal/config"
	"tendril/internal/supervisor"
)

type facts struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	queues   *queues
	programs *programs
	getconfig.Folder
}

// startFacts is the version at startup; app versions have higher numbers.
const startFacts = 0

func (f *facts) open(context.Context) error {
	s := f.settings.now()
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the get-config program: %w", err)
	}
	dir := s.DataDir
	if !f.queues.ownsDataDir() {
		dir = ""
	}
	uid, gid, err := readerIDs(s)
	if err != nil {
		return err
	}

	f.life.closeOnStop("get-config", f.Folder.Close)
	if err := f.Create(dir, program, uid, gid); err != nil {
		return err
	}
	if err := f.Publish(startFacts, f.opts.Bundle, nil); err != nil {
		return err
	}
	return f.Serve(startFacts)
}

// readerIDs returns the IDs of the app's user; -1 means this process's ID.
func readerIDs(s *config.Settings) (uid, gid int, err error) {
	if os.Geteuid() != 0 || s.AppUser == "" {
		return -1, -1, nil
	}
	if uid, gid, err = supervisor.IDsOf(s.AppUser); err != nil {
		return -1, -1, fmt.Errorf("%w: --app-user: %w", ErrSettings, err)
	}
	if uid == 0 {
		uid = -1
	}
	return uid, gid, nil
}

// Publish uses the current settings if s is nil.
func (f *facts) Publish(version int, b *bundle.Bundle, s *config.Settings) error {
	if s == nil {
		s = f.settings.now()
	}
	return f.Folder.Publish(version, f.describe(b, s))
}

func (f *facts) describe(b *bundle.Bundle, s *config.Settings) *getconfig.Facts {
	properties := f.properties(b)
	daemon := s.Daemon()
	daemon["queue_url"] = f.queues.home().url

	port := strconv.Itoa(s.Port)
	container := map[string]any{"app_user": appUser(s.AppUser), "environment_name": s.Name, "instance_port": port,
		"proxy_server": noProxy, "xray_enabled": "false"}
	general := map[string]string{"AppUser": appUser(s.AppUser), "ProxyServer": noProxy, "DefaultInstancePort": port}
	if b != nil {
		container["app_deploy_dir"], container["app_staging_dir"] = b.Dir, b.Dir
		general["AppDeployDir"], general["AppStagingDir"] = b.Dir+"/", b.Dir+"/"
	}
	if s.AppLogDir != "" {
		container["app_log_dir"] = s.AppLogDir
	}

	return &getconfig.Facts{
		Environment: properties, OptionSettings: f.optionSettings(b, s, properties), Container: container,
		Meta: map[string]any{"sqsdconfig": daemon, "region": s.Region},
		PlatformConfig: map[string]map[string]string{"GeneralConfig": general,
			"PlatformSpecificConfig": {"ApplicationPort": port}},
	}
}

func (f *facts) optionSettings(b *bundle.Bundle, s *config.Settings, properties map[string]string,
) map[string]map[string]string {
	options := map[string]map[string]string{}
	set := func(namespace, option, value string) {
		if options[namespace] == nil {
			options[namespace] = map[string]string{}
		}
		options[namespace][option] = value
	}

	inForce := map[[2]string]string{}
	for _, known := range s.Bundled() {
		inForce[[2]string{known.Namespace, known.Option}] = known.Value
		if known.Namespace == bundle.NamespaceWorker {
			set(known.Namespace, known.Option, known.Value)
		}
	}
	set(bundle.NamespaceWorker, "WorkerQueueURL", f.queues.home().url)
	if b == nil {
		return options
	}

	for _, written := range b.InForce() {
		value, known := inForce[[2]string{written.Namespace, written.Option}]
		switch {
		case written.Computed || written.Namespace == bundle.NamespaceWorker:
			continue
		case written.Namespace == bundle.NamespaceEnvironment:
			value = properties[written.Option]
		case !known:
			value = written.Value
		}
		set(written.Namespace, written.Option, value)
	}
	return options
}

// noProxy is Elastic Beanstalk's value for an environment without a proxy server.
const noProxy = "none"

// properties omits inherited variables unless the bundle or tendril sets them, because they may contain secrets that
// must not be stored.
func (f *facts) properties(b *bundle.Bundle) map[string]string {
	inBundle := map[string]bool{}
	if b != nil {
		for _, p := range b.Environment() {
			inBundle[p.Option] = true
		}
		for _, link := range b.Links {
			inBundle[link.Variable] = true
		}
	}
	inherited := map[string]bool{}
	for _, entry := range f.opts.AppEnv {
		name, _, _ := strings.Cut(entry, "=")
		inherited[name] = true
	}

	all := map[string]string{}
	for _, entry := range f.programs.environ(b, f.settings.now().Port) {
		name, value, _ := strings.Cut(entry, "=")
		if inBundle[name] || !inherited[name] || isProvided(name) {
			all[name] = value
		}
	}
	return all
}

// isProvided reports whether tendril may replace an inherited variable.
func isProvided(name string) bool {
	switch name {
	case "PORT", "TENDRIL_QUEUE", "TENDRIL_QUEUE_URL", "AWS_ENDPOINT_URL_SQS":
		return true
	}
	return false
}

func appUser(setting string) string {
	if name, _, _ := strings.Cut(setting, ":"); name != "" {
		return name
	}
	if self, err := user.Current(); err == nil {
		return self.Username
	}
	return strconv.Itoa(os.Geteuid())
}
