package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tendril/internal/bundle"
)

func (a *Applier) install(ctx context.Context, p *bundle.Package) (Outcome, error) {
	versions := p.Versions
	if len(versions) == 0 {
		versions = []string{""} // any
	}
	outcome := unchanged
	for _, version := range versions {
		if a.isInstalled(ctx, p, version) {
			continue
		}
		outcome = Changed
		if err := a.installVersion(ctx, p, version); err != nil {
			return outcome, err
		}
	}
	return outcome, nil
}

func (a *Applier) isInstalled(ctx context.Context, p *bundle.Package, version string) bool {
	switch p.Manager {
	case "rpm":
		id, ok := a.query(ctx, "rpm", "-qp", "--nosignature", "--qf", "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}", version)
		return ok && a.holds(ctx, "rpm", "-q", id)
	case "yum":
		name := joined(p.Name, "-", version)
		return a.holds(ctx, "rpm", "-q", "--whatprovides", name) || a.holds(ctx, "rpm", "-q", name)
	case "apt":
		found, ok := a.query(ctx, "dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", p.Name)
		current, installed := strings.CutPrefix(found, "installed ")
		return ok && installed && (version == "" || version == current)
	case "rubygems":
		return a.holds(ctx, gem(version, "list", "-i", "-e", p.Name)...)
	case "python":
		found, ok := a.query(ctx, "python3", "-m", "pip", "show", p.Name)
		return ok && (version == "" || slices.Contains(strings.Split(found, "\n"), "Version: "+version))
	}
	return false
}

func (a *Applier) installVersion(ctx context.Context, p *bundle.Package, version string) error {
	switch p.Manager {
	case "rpm":
		return a.run(ctx, "rpm", "-U", "--nosignature", "--replacepkgs", version)
	case "yum":
		for _, manager := range []string{"yum", "dnf"} {
			if a.system.Has(manager) {
				return a.run(ctx, manager, "-y", "install", joined(p.Name, "-", version))
			}
		}
		return errors.New("yum or dnf not found on this machine: use its own package manager")
	case "apt":
		return a.installDebian(ctx, joined(p.Name, "=", version))
	case "rubygems":
		return a.run(ctx, gem(version, "install", "--no-document", p.Name)...)
	case "python":
		return a.run(ctx, "python3", "-m", "pip", "install", joined(p.Name, "==", version))
	}
	return fmt.Errorf("unknown package manager %s", p.Manager)
}

func gem(version string, arguments ...string) []string {
	argv := append([]string{"gem"}, arguments...)
	if version != "" {
		argv = append(argv, "-v", version)
	}
	return argv
}

func (a *Applier) installDebian(ctx context.Context, name string) error {
	if !a.aptUpdated {
		a.aptUpdated = true
		if err := a.run(ctx, "apt-get", "-q", "-y", "update"); err != nil {
			return err
		}
	}

	call := Call{Argv: []string{"apt-get", "-q", "-y", "install", name}, Env: []string{"DEBIAN_FRONTEND=noninteractive"}}
	if _, err := a.system.Run(ctx, &call); err != nil {
		return fmt.Errorf("apt-get install: %w", err)
	}
	return nil
}

func (a *Applier) holds(ctx context.Context, argv ...string) bool {
	_, ok := a.query(ctx, argv...)
	return ok
}

func joined(name, sign, version string) string {
	if version == "" {
		return name
	}
	return name + sign + version
}
