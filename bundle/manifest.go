package bundle

import (
	"fmt"
	"path/filepath"
	"strings"
)

const manifestName = "env.yaml"

// Manifest is what the bundle's env.yaml says about the environment. The zero
// value is that of a bundle without one.
type Manifest struct {
	// Name is the environment's name, without the "+" of a group; "" for none.
	Name string
	// Group tells that the name ends in "+": a group's name is to be appended.
	Group bool
	// NameLine is where the name stands, from 1; 0 when there is none.
	NameLine int
	// Tier is "Worker" or "WebServer"; "" when the file names none.
	Tier string
}

// Link is one variable through which the app is told of another environment.
type Link struct {
	// Variable is the name of the environment variable, never "".
	Variable string
	// Environment is the name of the environment that it leads to, without the
	// "+" of a group; never "". A link to a worker gives its queue.
	Environment string
	// Group tells that the name ends in "+".
	Group bool
	// File is the path as the bundle was opened with.
	File string
	// Line is where the link stands, from 1.
	Line int
}

// readManifest reads env.yaml. Its settings come after those of .ebextensions
// and override them, as those of a saved configuration do.
func (o *opening) readManifest() error {
	file := filepath.Join(o.dir, manifestName)
	data, err := readFile(file, maxDocument)
	if err != nil {
		return o.keep(err)
	}
	m := manifestReader{settingsReader: settingsReader{document: &document{path: file, name: manifestName},
		aboutNamespace: map[string]bool{}}}
	if root := m.parse(data); root != nil {
		for _, p := range root.pairs {
			m.key(p)
		}
	}
	o.bundle.Manifest, o.bundle.Links = m.manifest, m.links
	o.take(m.document, m.settings)
	return nil
}

// manifestReader reads one env.yaml.
type manifestReader struct {
	settingsReader
	manifest Manifest
	links    []Link
}

// key takes one key of the file.
func (m *manifestReader) key(p pair) {
	switch p.key {
	case "EnvironmentName":
		if name, ok := m.text(p); ok {
			m.manifest.Name, m.manifest.Group, m.manifest.NameLine = strings.TrimSuffix(name, "+"),
				strings.HasSuffix(name, "+"), p.line
		}
	case "EnvironmentTier":
		m.tier(p)
	case "OptionSettings":
		if p.value.kind == sequence {
			m.refuse(p.line, p.column, "OptionSettings is a list",
				`write "namespace:" and below it, further to the right, "option: value"`)
			return
		}
		m.read(p, p.value)
	case "EnvironmentLinks":
		m.environmentLinks(p)
	case "SolutionStack", "Platform", "PlatformArn":
		m.aside(p.line, "no platform is installed: this machine's own runtimes are used")
	case "CName":
		m.aside(p.line, "no domain name is made: a worker needs none")
	case "Tags":
		m.aside(p.line, "nothing is created on Amazon's side that could be tagged")
	case "Extensions", "Resources":
		m.aside(p.line, section("Resources"))
	case "AWSConfigurationTemplateVersion", "EnvironmentConfigurationMetadata", "Description", "DateCreated",
		"DateModified":
	default:
		for _, known := range []string{"EnvironmentName", "EnvironmentTier", "OptionSettings", "EnvironmentLinks"} {
			if plainName(known) == plainName(p.key) {
				m.refuse(p.line, p.column, printable(p.key)+" is no key of env.yaml", "write "+known)
				return
			}
		}
		m.aside(p.line, printable(p.key)+" is no key of env.yaml that is known: nothing is done about it")
	}
}

// text returns a plain value that must not be empty.
func (m *manifestReader) text(p pair) (string, bool) {
	switch {
	case p.value.kind != scalar || strings.Trim(p.value.text, "+ ") == "":
		m.refuse(p.line, p.column, p.key+" has no plain text for a value", fmt.Sprintf("write %q", p.key+": NAME"))
	case strings.ContainsFunc(p.value.text, isControl) || len(p.value.text) > maxOption:
		m.refuse(p.line, p.column, p.key+" is too long or holds bytes that are no text", "use letters, digits and hyphens")
	default:
		return p.value.text, true
	}
	return "", false
}

func (m *manifestReader) tier(p pair) {
	name := p.value.get("Name")
	if p.value.kind != mapping || name == nil || name.kind != scalar {
		m.refuse(p.line, p.column, "EnvironmentTier has no Name", "write {Name: Worker, Type: SQS/HTTP}")
		return
	}
	switch m.manifest.Tier = name.text; name.text {
	case "Worker":
	case "WebServer":
		m.aside(p.line, "this is the manifest of a web server: no web traffic is routed here; the app is run as a worker "+
			"and gets messages")
	default:
		m.refuse(p.line, p.column, fmt.Sprintf("%s is no tier", printable(name.text)), "write {Name: Worker, Type: SQS/HTTP}")
		return
	}
	if kind := p.value.get("Type"); name.text == "Worker" && kind != nil && kind.text != "SQS/HTTP" {
		m.refuse(p.line, p.column, fmt.Sprintf("%s is no type of a worker", printable(kind.text)),
			"write {Name: Worker, Type: SQS/HTTP}")
	}
}

func (m *manifestReader) environmentLinks(p pair) {
	if p.value.kind == null {
		return
	}
	if p.value.kind != mapping {
		m.refuse(p.line, p.column, "EnvironmentLinks is no map", `write "VARIABLE: environment" below it`)
		return
	}
	for _, link := range p.value.pairs {
		if link.key == "" || strings.ContainsAny(link.key, "=\x00") || strings.ContainsFunc(link.key, isControl) {
			m.refuse(link.line, link.column, fmt.Sprintf("%q is no name for a variable", printable(link.key)),
				`a name holds letters, digits and "_", and no "="`)
			continue
		}
		if name, ok := m.text(link); ok {
			m.links = append(m.links,
				Link{Variable: link.key, Environment: strings.TrimSuffix(name, "+"), Group: strings.HasSuffix(name, "+"),
					File: m.path, Line: link.line})
		}
	}
}
