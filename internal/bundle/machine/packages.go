package machine

import (
	"context"
	"fmt"
	"strings"

	"tendril/internal/bundle"
)

func (a *Applier) install(ctx context.Context, p *bundle.Package) (Outcome, error) {
	versions := p.Versions
	if len(versions) == 0 {
		versions = []string{""}
	}
	did := false
	for _, version := range versions {
		one, err := a.installOne(ctx, p, version)
		did = did || one
		if err != nil {
			return changedIf(did), err
		}
	}
	return changedIf(did), nil
}

func (a *Applier) installOne(ctx context.Context, p *bundle.Package, version string) (did bool, err error) {
	switch p.Manager {
	case "rpm":
		id, ok := a.query(ctx, "rpm", "-qp", "--nosignature", "--qf", "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}", version)
		if ok && a.holds(ctx, "rpm", "-q", id) {
			return false, nil
		}
		return true, a.run(ctx, "rpm", "-U", "--nosignature", "--replacepkgs", version)
	case "yum":
		name := joined(p.Name, "-", version)
		if a.holds(ctx, "rpm", "-q", "--whatprovides", name) || a.holds(ctx, "rpm", "-q", name) {
			return false, nil
		}
		manager, err := a.first("yum", "dnf")
		if err != nil {
			return false, err
		}
		return true, a.run(ctx, manager, "-y", "install", name)
	case "apt":
		return a.installDebian(ctx, p.Name, version)
	case "rubygems":
		query, install := []string{"gem", "list", "-i", "-e", p.Name}, []string{"gem", "install", "--no-document", p.Name}
		if version != "" {
			query, install = append(query, "-v", version), append(install, "-v", version)
		}
		if a.holds(ctx, query...) {
			return false, nil
		}
		return true, a.run(ctx, install...)
	case "python":
		found, ok := a.query(ctx, "python3", "-m", "pip", "show", p.Name)
		if ok && (version == "" || hasLine(found, "Version: "+version)) {
			return false, nil
		}
		return true, a.run(ctx, "python3", "-m", "pip", "install", joined(p.Name, "==", version))
	}

	return false, fmt.Errorf("unknown package manager %s", p.Manager)
}

func (a *Applier) installDebian(ctx context.Context, name, version string) (did bool, err error) {
	found, ok := a.query(ctx, "dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", name)
	if current, installed := strings.CutPrefix(found, "installed "); ok && installed && (version == "" || version == current) {
		return false, nil
	}

	if !a.updated {
		a.updated = true
		if err := a.run(ctx, "apt-get", "-q", "-y", "update"); err != nil {
			return false, err
		}
	}

	call := Call{Argv: []string{"apt-get", "-q", "-y", "install", joined(name, "=", version)},
		Env: []string{"DEBIAN_FRONTEND=noninteractive"}}
	if _, err := a.system.Run(ctx, &call); err != nil {
		return true, fmt.Errorf("apt-get install: %w", err)
	}

	return true, nil
}

func (a *Applier) holds(ctx context.Context, argv ...string) bool {
	_, ok := a.query(ctx, argv...)
	return ok
}

func (a *Applier) first(programs ...string) (string, error) {
	for _, program := range programs {
		if a.system.Has(program) {
			return program, nil
		}
	}
	return "", fmt.Errorf("%s not found on this machine: use its own package manager", strings.Join(programs, " or "))
}

func joined(name, sign, version string) string {
	if version == "" {
		return name
	}
	return name + sign + version
}

func hasLine(text, line string) bool {
	for one := range strings.Lines(text) {
		if strings.TrimSpace(one) == line {
			return true
		}
	}
	return false
}
