package config

import (
	"cmp"
	"net/url"
	"slices"

	"tendril/internal/config/yamlfile"
)

func readDaemonFile(l *loader, path string, entries []entry) {
	d := daemonReader{loader: l, path: path, topLevel: map[string]entry{}}
	for _, e := range entries {
		if e.sqsd {
			d.assignEntry(e)
			continue
		}
		if first, twice := d.topLevel[e.key]; twice {
			l.refuseAt(yamlfile.Place(path, e.line, 0), "", "keep only one of the two lines",
				"%s is already set on line %d", shown(e.key), first.line)
			continue
		}
		d.topLevel[e.key] = e
		if !slices.Contains([]string{"http_url", "http_port", "debug"}, e.key) {
			d.assignEntry(e)
		}
	}
	d.assignTarget()
	d.assignVerbose()
}

type daemonReader struct {
	loader   *loader
	path     string
	topLevel map[string]entry
}

func (d *daemonReader) assignEntry(e entry) {
	switch {
	case e.null:
	case e.items != nil:
		assignQueues(d.loader, d.path, e)
	default:
		o := d.byDaemonKey(e)
		if o == nil {
			where := yamlfile.Place(d.path, e.line, 0)
			d.loader.warnAt(where, "", "", "unknown key %s; it has no effect", shown(e.key))
			return
		}
		d.loader.assign(assignment{option: o, origin: inFile(d.path, e.line), name: e.key, text: e.text,
			unit: defaultUnit(o, false)})
	}
}

func (d *daemonReader) byDaemonKey(e entry) *Option {
	o := firstOption(d.loader.rows, func(o *Option) bool { return !e.sqsd && o.DaemonKey == e.key && e.key != "" })
	return cmp.Or(o, findByEntry(d.loader, e))
}

func (d *daemonReader) value(key string) (e entry, found bool) {
	e, found = d.topLevel[key]
	return e, found && !e.null
}

func (d *daemonReader) assignTarget() {
	const defaultURL, defaultPort = "http://localhost", "80"
	base, hasURL := d.value("http_url")
	port, hasPort := d.value("http_port")
	switch {
	case !hasURL && !hasPort:
		return
	case !hasURL:
		base = entry{key: "http_port", text: defaultURL, line: port.line}
	case !hasPort:
		port.text = defaultPort
	}

	if !isPort(port.text, 1) {
		d.loader.refuseAt(yamlfile.Place(d.path, port.line, 0), "target", "use http_port: "+defaultPort,
			"http_port %s is not a port; allowed: 1 to 65535", shown(port.text))
		return
	}

	text := base.text
	if u, err := url.Parse(text); err == nil && u.Host != "" && u.Port() == "" && (hasPort || u.Scheme == "http") {
		u.Host += ":" + port.text
		text = u.String()
	}

	d.loader.assign(assignment{option: d.loader.option("target"), origin: inFile(d.path, base.line),
		name: base.key, text: text})
}

func (d *daemonReader) assignVerbose() {
	e, found := d.value("debug")
	if !found {
		return
	}
	o := d.loader.option("verbose")
	on, err := parseSwitch(e.text)
	a := assignment{option: o, origin: inFile(d.path, e.line), name: e.key, text: e.text}
	switch {
	case err != nil:
		d.loader.refuse(refusal(a, err))
	case on:
		d.loader.assign(a)
	}
}
