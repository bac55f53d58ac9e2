package bundle

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tendril/internal/config/yamlfile"
)

func (r *reader) readManifest() error {
	file := filepath.Join(r.dir, manifestName)
	data, err := readFile(file, maxDocument)
	if err != nil {
		return r.keepProblems(err)
	}
	d := &document{path: file, name: manifestName}
	for _, p := range d.keys(data) {
		d.readManifestKey(p, r.bundle)
	}
	r.addDocument(d)
	return nil
}

func (d *document) readManifestKey(p yamlfile.Pair, b *Bundle) {
	switch p.Key {
	case "EnvironmentName":
		if name, ok := d.environmentName(p); ok {
			b.Manifest = Manifest{Name: name, NameLine: p.Line}
		}
	case "EnvironmentTier":
		d.checkTier(p)
	case "OptionSettings":
		if p.Value.Kind == yamlfile.Sequence {
			d.refuseKey(p, `write "namespace:" and, indented below it, "option: value"`,
				"OptionSettings is a list")
			return
		}
		d.readSettings(p)
	case "EnvironmentLinks":
		b.Links = append(b.Links, d.environmentLinks(p)...)
	case "SolutionStack", "Platform", "PlatformArn":
		d.notUsed(p.Line, "no platform is installed: this machine's own runtimes are used")
	case "CName":
		d.notUsed(p.Line, "no domain name is created: a worker does not need one")
	case "Tags":
		d.notUsed(p.Line, "tendril creates nothing in AWS that could be tagged")
	case "Extensions", "Resources":
		d.notUsed(p.Line, "%s", reasonUnused("Resources"))
	case "AWSConfigurationTemplateVersion", "EnvironmentConfigurationMetadata", "Description", "DateCreated",
		"DateModified":
	default:
		known := misspelled(p.Key, "EnvironmentName", "EnvironmentTier", "OptionSettings", "EnvironmentLinks")
		if known != "" {
			d.refuseKey(p, "write "+known, "%s is not a key of env.yaml", yamlfile.Printable(p.Key))
			return
		}
		d.notUsed(p.Line, "%s is not a known key of env.yaml: it is ignored", yamlfile.Printable(p.Key))
	}
}

func misspelled(key string, known ...string) string {
	i := slices.IndexFunc(known, func(name string) bool { return plainName(name) == plainName(key) })
	if i < 0 {
		return ""
	}
	return known[i]
}

// environmentName omits a trailing "+", which Elastic Beanstalk replaces with the group's name; tendril has no groups.
func (d *document) environmentName(p yamlfile.Pair) (name string, ok bool) {
	switch {
	case p.Value.Kind != yamlfile.Scalar || strings.Trim(p.Value.Text, "+ ") == "":
		d.refuseKey(p, fmt.Sprintf("write %q", p.Key+": NAME"), "%s has a value that is not plain text", p.Key)
	case strings.ContainsFunc(p.Value.Text, yamlfile.IsControl) || len(p.Value.Text) > maxOption:
		d.refuseKey(p, "use letters, digits and hyphens", "%s is too long or is not text", p.Key)
	default:
		return strings.TrimSuffix(p.Value.Text, "+"), true
	}
	return "", false
}

func (d *document) checkTier(p yamlfile.Pair) {
	name := p.Value.Get("Name")
	if name == nil || name.Kind != yamlfile.Scalar {
		d.refuseKey(p, "write {Name: Worker, Type: SQS/HTTP}", "EnvironmentTier has no Name")
		return
	}

	switch name.Text {
	case "Worker":
	case "WebServer":
		d.notUsed(p.Line, "this manifest describes a web server environment; the app runs as a worker here, and gets "+
			"messages but no web traffic")
	default:
		d.refuseKey(p, "write {Name: Worker, Type: SQS/HTTP}", "%s is not a tier", yamlfile.Printable(name.Text))
		return
	}

	if kind := p.Value.Get("Type"); name.Text == "Worker" && kind != nil && kind.Text != "SQS/HTTP" {
		d.refuseKey(p, "write {Name: Worker, Type: SQS/HTTP}", "%s is not the type of a worker tier",
			yamlfile.Printable(kind.Text))
	}
}

func (d *document) environmentLinks(p yamlfile.Pair) (links []Link) {
	if p.Value.Kind == yamlfile.Null {
		return nil
	}

	if p.Value.Kind != yamlfile.Mapping {
		d.refuseKey(p, `write "VARIABLE: environment" below it`, "EnvironmentLinks is not a map")
		return nil
	}

	for _, link := range p.Value.Pairs {
		if link.Key == "" || strings.ContainsAny(link.Key, "=\x00") || strings.ContainsFunc(link.Key, yamlfile.IsControl) {
			d.refuseKey(link, `use letters, digits and "_"`,
				"%q is not a valid variable name", yamlfile.Printable(link.Key))
			continue
		}
		if name, ok := d.environmentName(link); ok {
			links = append(links, Link{Variable: link.Key, Environment: name, File: d.path, Line: link.Line})
		}
	}
	return links
}
