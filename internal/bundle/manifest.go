package bundle

import (
	"fmt"
	"path/filepath"
	"strings"

	"tendril/internal/config/yamlfile"
)

// readManifest reads env.yaml, which overrides .ebextensions like a saved configuration.
func (r *reader) readManifest() error {
	file := filepath.Join(r.dir, manifestName)
	data, err := readFile(file, maxDocument)
	if err != nil {
		return r.keepProblems(err)
	}
	m := manifestReader{document: &document{path: file, name: manifestName}}
	for _, p := range m.document.keys(data) {
		m.readKey(p)
	}

	r.bundle.Manifest, r.bundle.Links = m.manifest, m.links
	r.addDocument(m.document)
	return nil
}

type manifestReader struct {
	document *document
	manifest Manifest
	links    []Link
}

func (m *manifestReader) readKey(p yamlfile.Pair) {
	switch p.Key {
	case "EnvironmentName":
		if name, ok := m.text(p); ok {
			// Elastic Beanstalk replaces a trailing "+" with the group's name; tendril has no groups.
			m.manifest.Name, m.manifest.NameLine = strings.TrimSuffix(name, "+"), p.Line
		}
	case "EnvironmentTier":
		m.tier(p)
	case "OptionSettings":
		if p.Value.Kind == yamlfile.Sequence {
			m.document.refuseKey(p, `write "namespace:" and, indented below it, "option: value"`,
				"OptionSettings is a list")
			return
		}
		m.document.readSettings(p)
	case "EnvironmentLinks":
		m.environmentLinks(p)
	case "SolutionStack", "Platform", "PlatformArn":
		m.document.notUsed(p.Line, "no platform is installed: this machine's own runtimes are used")
	case "CName":
		m.document.notUsed(p.Line, "no domain name is created: a worker does not need one")
	case "Tags":
		m.document.notUsed(p.Line, "tendril creates nothing in AWS that could be tagged")
	case "Extensions", "Resources":
		m.document.notUsed(p.Line, "%s", reasonUnused("Resources"))
	case "AWSConfigurationTemplateVersion", "EnvironmentConfigurationMetadata", "Description", "DateCreated",
		"DateModified":
	default:
		if known := misspelled(p.Key); known != "" {
			m.document.refuseKey(p, "write "+known, "%s is not a key of env.yaml", yamlfile.Printable(p.Key))
			return
		}
		m.document.notUsed(p.Line, "%s is not a known key of env.yaml: it is ignored", yamlfile.Printable(p.Key))
	}
}

func misspelled(key string) string {
	for _, known := range []string{"EnvironmentName", "EnvironmentTier", "OptionSettings", "EnvironmentLinks"} {
		if plainName(known) == plainName(key) {
			return known
		}
	}
	return ""
}

func (m *manifestReader) text(p yamlfile.Pair) (string, bool) {
	switch {
	case p.Value.Kind != yamlfile.Scalar || strings.Trim(p.Value.Text, "+ ") == "":
		m.document.refuseKey(p, fmt.Sprintf("write %q", p.Key+": NAME"), "%s has a value that is not plain text", p.Key)
	case strings.ContainsFunc(p.Value.Text, yamlfile.IsControl) || len(p.Value.Text) > maxOption:
		m.document.refuseKey(p, "use letters, digits and hyphens", "%s is too long or is not text", p.Key)
	default:
		return p.Value.Text, true
	}
	return "", false
}

func (m *manifestReader) tier(p yamlfile.Pair) {
	name := p.Value.Get("Name")
	if p.Value.Kind != yamlfile.Mapping || name == nil || name.Kind != yamlfile.Scalar {
		m.document.refuseKey(p, "write {Name: Worker, Type: SQS/HTTP}", "EnvironmentTier has no Name")
		return
	}

	switch name.Text {
	case "Worker":
	case "WebServer":
		m.document.notUsed(p.Line, "this manifest describes a web server environment; the app runs as a worker here, and gets "+
			"messages but no web traffic")
	default:
		m.document.refuseKey(p, "write {Name: Worker, Type: SQS/HTTP}", "%s is not a tier", yamlfile.Printable(name.Text))
		return
	}

	if kind := p.Value.Get("Type"); name.Text == "Worker" && kind != nil && kind.Text != "SQS/HTTP" {
		m.document.refuseKey(p, "write {Name: Worker, Type: SQS/HTTP}", "%s is not the type of a worker tier",
			yamlfile.Printable(kind.Text))
	}
}

func (m *manifestReader) environmentLinks(p yamlfile.Pair) {
	if p.Value.Kind == yamlfile.Null {
		return
	}

	if p.Value.Kind != yamlfile.Mapping {
		m.document.refuseKey(p, `write "VARIABLE: environment" below it`, "EnvironmentLinks is not a map")
		return
	}

	for _, link := range p.Value.Pairs {
		if link.Key == "" || strings.ContainsAny(link.Key, "=\x00") || strings.ContainsFunc(link.Key, yamlfile.IsControl) {
			m.document.refuseKey(link, `use letters, digits and "_"`,
				"%q is not a valid variable name", yamlfile.Printable(link.Key))
			continue
		}
		if name, ok := m.text(link); ok {
			m.links = append(m.links, Link{Variable: link.Key, Environment: strings.TrimSuffix(name, "+"), File: m.document.path,
				Line: link.Line})
		}
	}
}
