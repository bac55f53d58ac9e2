package environment

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"

	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/host/trust"
)

func isMachineRoot() bool {
	read := func(path string) (string, bool) {
		text, err := os.ReadFile(path)
		return string(text), err == nil
	}
	return os.Geteuid() == 0 && containerMark(read, os.Getenv) == ""
}

// refuseRoot returns an error if code that other users can change would run as root outside a container, unless the
// settings name a user or allow it. A bundle whose commands every user can change is always rejected.
func refuseRoot(s *config.Settings, b *bundle.Bundle, what string, root bool) error {
	if !root {
		return nil
	}
	if wrong := controlledByOthers(b); wrong != nil && wrong.AllUsers {
		return fmt.Errorf("%w: %w, and its commands would run as root: type '%s'", ErrSettings, wrong, wrong.Fix)
	}
	if isRootIntended(s) {
		return nil
	}

	err := changeableByOthers(b)
	if err == nil {
		return nil
	}
	fix := ""
	if wrong, ok := errors.AsType[*trust.Error](err); ok {
		fix = "type '" + wrong.Fix + "', "
	}
	return fmt.Errorf("%w: tendril runs as root, and so would %s, which others can change: %w: %sset its user with "+
		"--app-user, or allow this with --allow-root", ErrSettings, what, err, fix)
}

func warnOfRoot(log *slog.Logger, s *config.Settings, b *bundle.Bundle, root bool) {
	if !root {
		return
	}
	if wrong := controlledByOthers(b); wrong != nil {
		log.Warn("commands run as root can be changed by another user", "component", "bundle", "path", wrong.Path,
			"err", wrong, "hint", "type '"+wrong.Fix+"'")
	}
	if !isRootIntended(s) {
		log.Warn("app runs as root", "component", "app", "hint",
			"set its user with --app-user, or allow this with --allow-root")
	}
}

func isRootIntended(s *config.Settings) bool { return s.AppUser != "" || s.AllowRoot }

func controlledByOthers(b *bundle.Bundle) *trust.Error {
	if b == nil {
		return nil
	}
	wrong, _ := errors.AsType[*trust.Error](b.Trusted())
	return wrong
}

func changeableByOthers(b *bundle.Bundle) error {
	if b == nil {
		dir, err := os.Getwd()
		return cmp.Or(err, trust.Folder(dir, "."))
	}
	return cmp.Or(b.Trusted(), trust.Folder(b.Dir, "."))
}

var (
	containerGroup = regexp.MustCompile(
		`[/:-](docker|kubepods|libpod|crio|cri-containerd|containerd|lxc|lxc\.payload\.[^/]*|ecs|actions_job|buildkit|garden)([/.-]|$)`)
	// Container engines bind-mount these files from their own folders.
	containerMount = regexp.MustCompile(
		`(?m)^\S+ \S+ \S+ (\S*/(?:docker/containers|containers/storage|overlay-containers|kubelet/pods|nerdctl|io\.containerd[^/]*|buildkit)/\S*) /etc/(?:hosts|hostname|resolv\.conf) `)
)

func containerMark(read func(path string) (string, bool), getenv func(string) string) string {
	for _, path := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, found := read(path); found {
			return path
		}
	}
	for _, name := range []string{"KUBERNETES_SERVICE_HOST", "ECS_CONTAINER_METADATA_URI_V4",
		"ECS_CONTAINER_METADATA_URI"} {
		if getenv(name) != "" {
			return name
		}
	}

	systemd, _ := read("/run/systemd/container")
	environ, _ := read("/proc/1/environ")
	_, first, _ := strings.Cut("\x00"+environ, "\x00container=")
	first, _, _ = strings.Cut(first, "\x00")
	engine := cmp.Or(getenv("container"), strings.TrimSpace(systemd), first)
	if engine != "" && engine != "wsl" { // WSL is not a container
		return "container=" + engine
	}

	groups, _ := read("/proc/1/cgroup")
	if found := containerGroup.FindStringSubmatch(groups); found != nil {
		return "control group " + found[1]
	}
	mounts, _ := read("/proc/self/mountinfo")
	if found := containerMount.FindStringSubmatch(mounts); found != nil {
		return "mount of " + found[1]
	}
	return ""
}
