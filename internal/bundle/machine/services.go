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

	if with.isSystemd && !a.reloaded && slices.ContainsFunc(a.changed, isUnit) {
		if err := a.run(ctx, "systemctl", "daemon-reload"); err != nil {
			return unchanged, err
		}
		a.reloaded = true
	}

	did := false
	do := func(argv []string) error {
		did = true
		return a.run(ctx, argv...)
	}
	if s.Enabled != nil {
		if a.holds(ctx, with.isEnabled...) != *s.Enabled {
			argv := with.enable
			if !*s.Enabled {
				argv = with.disable
			}
			if err := do(argv); err != nil {
				return changedIf(did), err
			}
		}
	}

	isRunning := a.holds(ctx, with.control("status")...)
	isStale := slices.ContainsFunc(s.RestartFor, func(title string) bool { return slices.Contains(a.changed, title) })
	switch {
	case s.Running != nil && *s.Running && !isRunning:
		err = do(with.control("start"))
	case s.Running != nil && !*s.Running && isRunning:
		err = do(with.control("stop"))
	case isRunning && isStale:
		err = do(with.control("restart"))
	}

	return changedIf(did), err
}

func isUnit(title string) bool { return strings.HasPrefix(title, "files /etc/systemd/") }

type manager struct {
	isSystemd                  bool
	isEnabled, enable, disable []string
	control                    func(verb string) []string
}

// managerOf also returns systemd for sysvinit scripts if systemd manages the machine.
func (a *Applier) managerOf(s *bundle.Service) (manager, error) {
	switch {
	case s.IsSystemd && !a.system.Has("systemctl"):
		return manager{}, fmt.Errorf("this machine has no systemctl: service %s cannot be managed", s.Name)
	case s.IsSystemd || a.isSystemd():
		return manager{
			isSystemd: true, isEnabled: []string{"systemctl", "is-enabled", "--quiet", s.Name},
			enable: []string{"systemctl", "enable", s.Name}, disable: []string{"systemctl", "disable", s.Name},
			control: func(verb string) []string {
				if verb == "status" {
					return []string{"systemctl", "is-active", "--quiet", s.Name}
				}
				return []string{"systemctl", verb, s.Name}
			},
		}, nil
	}

	m := manager{control: func(verb string) []string { return []string{"/etc/init.d/" + s.Name, verb} }}
	if !a.system.Has("/etc/init.d/" + s.Name) {
		return m, fmt.Errorf("service %s not found on this machine: no program /etc/init.d/%[1]s", s.Name)
	}

	switch {
	case a.system.Has("chkconfig"):
		m.isEnabled, m.enable = []string{"chkconfig", s.Name}, []string{"chkconfig", s.Name, "on"}
		m.disable = []string{"chkconfig", s.Name, "off"}
	case a.system.Has("update-rc.d"):
		m.isEnabled = []string{"sh", "-c", `ls /etc/rc[2345].d/S[0-9][0-9]"$0"`, s.Name}
		m.enable = []string{"update-rc.d", s.Name, "defaults"}
		m.disable = []string{"update-rc.d", s.Name, "remove"}
	case s.Enabled != nil:
		return m, fmt.Errorf("this machine has neither chkconfig nor update-rc.d: service %s cannot be enabled", s.Name)
	}

	return m, nil
}

// isSystemd also checks that systemd runs, because a container may have only its programs.
func (a *Applier) isSystemd() bool {
	return a.system.Has("systemctl") && a.system.Has("/run/systemd/system")
}
