package bundle

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tendril/internal/config/yamlfile"
)

func (r *reader) readExtensions() error {
	entries, err := readDir(filepath.Join(r.dir, extensionsName))
	if err != nil {
		return fmt.Errorf("listing the configuration files: %w", err)
	}

	read := 0
	for _, e := range entries {
		name := path.Join(extensionsName, e.Name())
		switch extension := path.Ext(e.Name()); {
		case e.IsDir():
			r.reportExtensionsFolder(name)
		case isMistakenExtension(extension):
			r.notUsed(name, "Elastic Beanstalk ignores this file too: its suffix must be .config")
		case extension != ".config":
		case read == maxExtensions:
			r.refuse(filepath.Join(r.dir, extensionsName),
				fmt.Sprintf("there are more than %d configuration files", maxExtensions), "merge some of them")
			return nil
		default:
			read++
			if err := r.readExtension(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func isMistakenExtension(extension string) bool {
	switch extension {
	case ".yaml", ".yml", ".json", ".conf":
		return true
	}
	return extension != ".config" && strings.EqualFold(extension, ".config")
}

func (r *reader) reportExtensionsFolder(name string) {
	switch path.Base(name) {
	case "nginx", "httpd":
		r.notUsed(name, noProxy)
		return
	}
	if r.hasConfiguration(name) {
		r.notUsed(name, "configuration files in subfolders are not read: move them into .ebextensions")
	}
}

func (r *reader) hasConfiguration(folder string) bool {
	entries, _ := readDir(filepath.Join(r.dir, folder))
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return path.Ext(e.Name()) == ".config" })
}

func (r *reader) readExtension(name string) error {
	file := filepath.Join(r.dir, name)
	data, err := readFile(file, maxDocument)
	if err != nil {
		return r.keepProblems(err)
	}

	d := &document{path: file, name: name}
	var ofMachine []yamlfile.Pair
	for _, p := range d.keys(data) {
		switch {
		case p.Key == "option_settings":
			d.readSettings(p)
		case p.Key == "Resources":
			resources, unused := d.readResources(p)
			r.bundle.Resources = append(r.bundle.Resources, resources...)
			d.reportSection(unused)
		case p.Key == "container_commands":
			r.bundle.ContainerCommands = append(r.bundle.ContainerCommands, d.readCommands(p)...)
		case isMachineSection(p.Key):
			ofMachine = append(ofMachine, p)
		default:
			d.reportSection(p)
		}
	}

	if len(ofMachine) > 0 {
		r.bundle.Machine.read(d, data, ofMachine)
	}

	r.addDocument(d)
	return nil
}

// readResources also returns the section without its alarms, which tendril uses.
func (d *document) readResources(p yamlfile.Pair) (found []Resource, unused yamlfile.Pair) {
	if p.Value.Kind != yamlfile.Mapping {
		return nil, p
	}

	var alarms []string
	others := *p.Value
	others.Pairs = nil
	for _, entry := range p.Value.Pairs {
		r := Resource{Name: entry.Key, Properties: entry.Value.Get("Properties"), File: d.path, Line: entry.Line}
		if kind := entry.Value.Get("Type"); kind != nil {
			r.Type = kind.Text
		}
		if r.Type == TypeAlarm {
			alarms = append(alarms, yamlfile.Printable(r.Name))
		} else {
			others.Pairs = append(others.Pairs, entry)
		}
		found = append(found, r)
	}

	if len(alarms) > 0 {
		d.notUsed(p.Line, "alarms are not created: deploy the template that 'tendril generate alarms' prints (Resources: %s)", list(alarms))
	}

	p.Value = &others
	return found, p
}

func (d *document) reportSection(p yamlfile.Pair) {
	why := reasonUnused(p.Key)
	if why == "" {
		d.reportUnknownSection(p)
		return
	}
	if p.Value.Kind == yamlfile.Null {
		return
	}

	var names []string
	for _, inner := range p.Value.Pairs {
		names = append(names, yamlfile.Printable(inner.Key))
	}
	if len(names) > 0 {
		why += fmt.Sprintf(" (%s: %s)", p.Key, list(names))
	}
	if len(names) > 0 || p.Value.Kind != yamlfile.Mapping {
		d.notUsed(p.Line, "%s", why)
	}
}

func (d *document) reportUnknownSection(p yamlfile.Pair) {
	var known []string
	for _, s := range sections {
		if s.why != noStack {
			known = append(known, s.name)
		}
	}
	if known := misspelled(p.Key, known...); known != "" {
		d.refuseKey(p, "write "+known, "%s is not a section of a configuration file", yamlfile.Printable(p.Key))
		return
	}
	d.notUsed(p.Line, "%s is not a section of Elastic Beanstalk: it is ignored", yamlfile.Printable(p.Key))
}

var sections = []struct{ name, why string }{
	{"option_settings", ""},
	{"packages", "packages are not installed: install them on this machine, or in a script in .platform/hooks/prebuild" +
		orApply},
	{"sources", "archives are not downloaded: add their content to the bundle, or download them in a script in " +
		".platform/hooks/prebuild" + orApply},
	{"files", "files are not written: add them to the bundle, or write them in a script in .platform/hooks/prebuild" +
		orApply},
	{"commands", "commands are not run: move them into a script in .platform/hooks/prebuild" + orApply},
	{"container_commands", ""},
	{"users", "users and groups are not created: create them on this machine" + orApply},
	{"groups", "users and groups are not created: create them on this machine" + orApply},
	{"services", "services are not started: start them with this machine's init system, or add a line to the Procfile" +
		orApply},
	{"Resources", "resources are not created: create them with CloudFormation, and pass their names to the app in " +
		NamespaceEnvironment},
	{"Outputs", noStack}, {"Mappings", noStack}, {"Parameters", noStack}, {"Conditions", noStack}, {"Metadata", noStack},
}

const orApply = "; or add --machine-sections=apply"

const noStack = "nothing is created by CloudFormation"

func reasonUnused(name string) string {
	for _, s := range sections {
		if s.name == name {
			return s.why
		}
	}
	return ""
}

func plainName(s string) string {
	s = strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
	return strings.TrimSuffix(s, "s")
}
