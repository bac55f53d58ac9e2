package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the formats for nfpm.Get
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// The packages do not start the service, because the settings that name the app do not exist yet.
func (r *release) writePackages(context.Context) error {
	for _, t := range r.linux() {
		for _, format := range []string{"deb", "rpm"} {
			if err := r.writePackage(t, format); err != nil {
				return fmt.Errorf("%s for %s: %w", format, t, err)
			}
		}
	}
	return nil
}

func (r *release) writePackage(t target, format string) error {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	info, err := r.packageInfo(t, format)
	if err != nil {
		return err
	}

	file, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := packager.Package(info, file); err != nil {
		return err
	}
	return file.Close()
}

var installed = []struct{ from, to string }{
	{"deploy/systemd/tendril.sysusers.conf", "/usr/lib/sysusers.d/tendril.conf"},
	{"deploy/systemd/tendril.tmpfiles.conf", "/usr/lib/tmpfiles.d/tendril.conf"},
	{"deploy/systemd/app.conf", "/usr/share/doc/tendril/systemd/app.conf"},
	{"deploy/systemd/beside.conf", "/usr/share/doc/tendril/systemd/beside.conf"},
	{"CHANGELOG.md", "/usr/share/doc/tendril/CHANGELOG.md"},
	{"LICENSE", "/usr/share/doc/tendril/copyright"},
}

var completionPaths = map[string]string{
	"tendril.bash": "/usr/share/bash-completion/completions/tendril",
	"tendril.zsh":  "/usr/share/zsh/vendor-completions/_tendril",
	"tendril.fish": "/usr/share/fish/vendor_completions.d/tendril.fish",
}

func (r *release) packageInfo(t target, format string) (*nfpm.Info, error) {
	var contents files.Contents
	add := func(from, to, kind string, mode os.FileMode) {
		contents = append(contents, &files.Content{Source: from, Destination: to, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.time}})
	}
	add(r.binary[t], "/usr/bin/tendril", files.TypeFile, 0o755)
	unit, err := r.packagedUnit()
	if err != nil {
		return nil, err
	}
	add(unit, "/usr/lib/systemd/system/tendril.service", files.TypeFile, 0o644)
	// The file may contain keys.
	add(filepath.Join(r.root, "deploy/systemd/tendril.env"), "/etc/tendril/tendril.env", files.TypeConfigNoReplace, 0o600)
	for _, f := range installed {
		add(filepath.Join(r.root, f.from), f.to, files.TypeFile, 0o644)
	}

	for from, to := range completionPaths {
		if format == "rpm" {
			to = strings.Replace(to, "vendor-completions", "site-functions", 1)
		}
		add(filepath.Join(r.work, "completions", from), to, files.TypeFile, 0o644)
	}

	pages, err := r.compressPages()
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		add(page, "/usr/share/man/man1/"+filepath.Base(page), files.TypeFile, 0o644)
	}
	scripts, err := r.packageScripts()
	if err != nil {
		return nil, err
	}
	return nfpm.WithDefaults(&nfpm.Info{
		Name: "tendril", Arch: t.arch, Platform: t.os, Version: r.version, MTime: r.time,
		Section: "admin", Priority: "optional", License: "Apache-2.0",
		Maintainer:  "The tendril authors <tendril@localhost>",
		Description: "A complete worker environment: a queue, a worker, an app.",
		Overridables: nfpm.Overridables{Contents: contents, Scripts: scripts,
			Deb: nfpm.Deb{Compression: "gzip"},
			RPM: nfpm.RPM{Compression: "gzip", BuildHost: "localhost", Packager: "The tendril authors"}},
	}), nil
}

func (r *release) packagedUnit() (string, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "deploy/systemd/tendril.service"))
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(string(text), "\n")
	if !found || !strings.HasPrefix(string(text), "# tendril as a service") {
		return "", fmt.Errorf("the first line of deploy/systemd/tendril.service is not the one expected")
	}
	path := filepath.Join(r.work, "tendril.service")
	return path, os.WriteFile(path, []byte("# tendril as a service\n"+rest), 0o644)
}

// After an upgrade, the scripts restart a running service, which drains first.
func (r *release) packageScripts() (nfpm.Scripts, error) {
	scripts := map[string]string{
		"postinstall": `#!/bin/sh
set -e
if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers tendril.conf
  systemd-tmpfiles --create tendril.conf || true
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart tendril.service
fi
`,
		"preremove": `#!/bin/sh
set -e
# "remove" is dpkg's word, 0 is rpm's: an upgrade keeps the service.
if [ "$1" = remove ] || [ "$1" = 0 ]; then
  if [ -d /run/systemd/system ]; then
    systemctl disable --now tendril.service
  fi
fi
`,
		"postremove": `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
`,
	}
	for name, text := range scripts {
		path := filepath.Join(r.work, name+".sh")
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			return nfpm.Scripts{}, err
		}
		scripts[name] = path
	}
	return nfpm.Scripts{PostInstall: scripts["postinstall"], PreRemove: scripts["preremove"],
		PostRemove: scripts["postremove"]}, nil
}
