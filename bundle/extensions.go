package bundle

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	extensionsName = ".ebextensions"
	// maxExtensions bounds how many configuration files are read.
	maxExtensions = 200
)

// readExtensions reads the configuration files of .ebextensions in the order
// of their names, so that the last setting of an option is the one in force.
func (o *opening) readExtensions() error {
	entries, err := os.ReadDir(filepath.Join(o.dir, extensionsName))
	if err != nil {
		return fmt.Errorf("listing the configuration files: %w", err)
	}
	read := 0
	for _, e := range entries {
		name := path.Join(extensionsName, e.Name())
		switch extension := path.Ext(e.Name()); {
		case e.IsDir():
			o.extensionsFolder(name)
		case extension == ".yaml" || extension == ".yml" || extension == ".json" || extension == ".conf" ||
			extension != ".config" && strings.EqualFold(extension, ".config"):
			o.aside(name, "this name is not read by Elastic Beanstalk either: its suffix must be .config")
		case extension != ".config":
		case read == maxExtensions:
			o.refuse(filepath.Join(o.dir, extensionsName),
				fmt.Sprintf("there are more than %d configuration files", maxExtensions), "join some of them")
			return nil
		default:
			read++
			if err := o.readExtension(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// extensionsFolder names a folder in .ebextensions that something is in for
// Elastic Beanstalk.
func (o *opening) extensionsFolder(name string) {
	switch path.Base(name) {
	case "nginx", "httpd":
		o.aside(name, noProxy)
		return
	}
	if inside, _ := filepath.Glob(filepath.Join(o.dir, filepath.FromSlash(name), "*.config")); len(inside) > 0 {
		o.aside(name, "configuration files in folders are not read: move them up into .ebextensions")
	}
}

// readExtension reads one configuration file.
func (o *opening) readExtension(name string) error {
	file := filepath.Join(o.dir, filepath.FromSlash(name))
	data, err := readFile(file, maxDocument)
	if err != nil {
		return o.keep(err)
	}
	d := &document{path: file, name: name}
	r := settingsReader{document: d, aboutNamespace: map[string]bool{}}
	if root := d.parse(data); root != nil {
		for _, p := range root.pairs {
			if p.key == "option_settings" {
				r.read(p, p.value)
			} else {
				d.section(p)
			}
		}
	}
	o.take(d, r.settings)
	return nil
}

// section names a section that is not acted on.
func (d *document) section(p pair) {
	why := section(p.key)
	switch known := meant(p.key); {
	case why == "" && known != "":
		d.refuse(p.line, p.column, fmt.Sprintf("%s is no section of a configuration file", printable(p.key)), "write "+known)
	case why == "":
		d.aside(p.line, fmt.Sprintf("%s is no section that Elastic Beanstalk knows: nothing is done about it",
			printable(p.key)))
	case p.value.kind == null:
	default:
		var names []string
		for _, inner := range p.value.pairs {
			names = append(names, printable(inner.key))
		}
		if len(names) > 0 {
			why += fmt.Sprintf(" (%s: %s)", p.key, list(names))
		}
		if len(names) > 0 || p.value.kind != mapping {
			d.aside(p.line, why)
		}
	}
}
