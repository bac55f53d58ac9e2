package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tendril/internal/bundle"
)

func (a *Applier) service(ctx context.Context, s *bundle.Service) (Outcome, error) {
	with, err := a.managerOf(s)
	if err != nil {
		return unchanged, err
	}
	if with.isSystemd {
		if err := a.reloadUnits(ctx); err != nil {
			return unchanged, err
		}
	}

	outcome := unchanged
	if s.Enabled != nil && a.holds(ctx, with.isEnabled...) != *s.Enabled {
		outcome = Changed
		argv := with.disable
		if *s.Enabled {
			argv = with.enable
		}
		if err := a.run(ctx, argv...); err != nil {
			return outcome, err
		}
	}

	if verb := a.verbFor(s, a.holds(ctx, with.isRunning...)); verb != "" {
		return Changed, a.run(ctx, with.control(verb)...)
	}
	return outcome, nil
}

// reloadUnits makes systemd read the unit files that changed since the last call.
func (a *Applier) reloadUnits(ctx context.Context) error {
	isUnit := func(title string) bool { return strings.HasPrefix(title, "files /etc/systemd/") }
	if !slices.ContainsFunc(a.changed[a.unitsLoaded:], isUnit) {
		return nil
	}
	if err := a.run(ctx, "systemctl", "daemon-reload"); err != nil {
		return err
	}
	a.unitsLoaded = len(a.changed)
	return nil
}

func (a *Applier) verbFor(s *bundle.Service, isRunning bool) string {
	isStale := slices.ContainsFunc(s.RestartFor, func(title string) bool { return slices.Contains(a.changed, title) })
	switch {
	case s.Running != nil && *s.Running && !isRunning:
		return "start"
	case s.Running != nil && !*s.Running && isRunning:
		return "stop"
	case isRunning && isStale:
		return "restart"
	}
	return ""
}

type manager struct {
	isSystemd            bool
	isEnabled, isRunning []string
	enable, disable      []string
	control              func(verb string) []string
}

func (a *Applier) managerOf(s *bundle.Service) (manager, error) {
	switch {
	case s.IsSystemd && !a.system.Has("systemctl"):
		return manager{}, fmt.Errorf("this machine has no systemctl: service %s cannot be managed", s.Name)
	case s.IsSystemd || a.isSystemd():
		return systemdManager(s.Name), nil
	case !a.system.Has("/etc/init.d/" + s.Name):
		return manager{}, fmt.Errorf("service %s not found on this machine: no program /etc/init.d/%[1]s", s.Name)
	}
	return a.sysvManager(s)
}

func systemdManager(name string) manager {
	control := func(verb string) []string { return []string{"systemctl", verb, name} }
	return manager{isSystemd: true, control: control, enable: control("enable"), disable: control("disable"),
		isEnabled: []string{"systemctl", "is-enabled", "--quiet", name},
		isRunning: []string{"systemctl", "is-active", "--quiet", name}}
}

func (a *Applier) sysvManager(s *bundle.Service) (manager, error) {
	control := func(verb string) []string { return []string{"/etc/init.d/" + s.Name, verb} }
	m := manager{control: control, isRunning: control("status")}
	switch {
	case a.system.Has("chkconfig"):
		m.isEnabled, m.enable = []string{"chkconfig", s.Name}, []string{"chkconfig", s.Name, "on"}
		m.disable = []string{"chkconfig", s.Name, "off"}
	case a.system.Has("update-rc.d"):
		m.isEnabled = []string{"sh", "-c", `ls /etc/rc[2345].d/S[0-9][0-9]"$0"`, s.Name}
		// defaults creates missing links, and enable changes the links of a disabled service.
		m.enable = []string{"sh", "-c", `update-rc.d "$0" defaults && update-rc.d "$0" enable`, s.Name}
		m.disable = []string{"update-rc.d", s.Name, "disable"}
	case s.Enabled != nil:
		return manager{}, fmt.Errorf("this machine has neither chkconfig nor update-rc.d: service %s cannot be enabled", s.Name)
	}

	return m, nil
}

// isSystemd also checks that systemd runs, because a container may only have systemd's programs.
func (a *Applier) isSystemd() bool {
	return a.system.Has("systemctl") && a.system.Has("/run/systemd/system")
}
