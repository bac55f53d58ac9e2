package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/bundle"
	"tendril/internal/config/yamlfile"
)

func readBundle(l *loader) {
	b := l.src.Bundle
	if b == nil {
		return
	}
	if name := b.Name(); name != "" {
		l.assign(assignment{option: l.option("name"), origin: Origin{FromBundle, b.Dir}, name: "name", text: name})
	}

	if m := b.Manifest; m.Name != "" {
		l.assign(assignment{option: l.option("name"), name: "EnvironmentName", text: m.Name,
			origin: Origin{FromBundle, yamlfile.Place(filepath.Join(b.Dir, "env.yaml"), m.NameLine, 0)}})
	}

	for _, s := range b.Settings {
		readBundleSetting(l, s)
	}
}

func readBundleSetting(l *loader, s bundle.Setting) {
	origin := Origin{FromBundle, yamlfile.Place(s.File, s.Line, 0)}
	if s.Namespace == bundle.NamespaceWorker && s.Option == workerQueueURL {
		l.computedQueue = Origin{}
		if s.Computed {
			l.computedQueue = origin
		}
	}

	switch {
	case s.Computed:
		return
	case s.Namespace == bundle.NamespaceHealth:
		readHealthSetting(l, origin, s)
		return
	}

	if o := firstOption(l.rows, func(o *Option) bool { return o.isSetBy(s) }); o != nil {
		assignBundled(l, o, origin, s)
		return
	}
	switch s.Namespace {
	case bundle.NamespaceWorker, bundle.NamespaceGroup, bundle.NamespaceTrigger, bundle.NamespaceCommand:
		reportUnknownSetting(l, origin, s)
	}
}

func assignBundled(l *loader, o *Option, origin Origin, s bundle.Setting) {
	a := assignment{option: o, origin: origin, name: s.Option, text: s.Value, unit: defaultUnit(o, o.beanstalkMinutes)}
	switch {
	case s.Value != "":
		l.assign(a)
	case !l.isSet(o.Name):
	case o.Default == "":
		l.warnAt(origin.Where, o.Name, "delete one of the two",
			"%s has no value here and keeps the value from %s", s.Option, l.origin(o.Name).Where)
	default:
		a.text = o.Default
		l.assign(a)
	}
}

func reportUnknownSetting(l *loader, origin Origin, s bundle.Setting) {
	if s.Namespace == bundle.NamespaceGroup &&
		slices.Contains([]string{"Availability Zones", "Custom Availability Zones", "EnableCapacityRebalancing"}, s.Option) {
		l.warnAt(origin.Where, "", "", "%s has no effect: no instances are created", s.Option)
		return
	}

	var known []string
	for _, o := range l.rows {
		if o.Namespace == s.Namespace && o.Beanstalk != "" {
			known = append(known, o.Beanstalk)
		}
	}

	p := Problem{Where: origin.Where, Text: fmt.Sprintf("%s is not an option of Elastic Beanstalk's %s", shown(s.Option),
		s.Namespace), Hint: "its options are " + strings.Join(known, ", ")}
	if near := Nearest(s.Option, known); len(near) > 0 {
		p.Hint = "did you mean " + orList(near) + "?"
	}

	l.refuse(p)
}

// healthDocument is the supported part of the option ConfigDocument. Source: AWS Elastic Beanstalk Developer Guide,
// "Configuring enhanced health rules for an environment" and "Publishing custom metrics".
type healthDocument struct {
	CloudWatchMetrics map[string]map[string]any
	Rules             struct {
		Environment struct {
			Application struct {
				ApplicationRequests4xx healthRule
			}
			ELB map[string]any
		}
	}
}

type healthRule struct {
	Enabled *bool
}

func readHealthSetting(l *loader, origin Origin, s bundle.Setting) {
	switch s.Option {
	case "ConfigDocument":
		if s.Value != "" {
			readHealthDocument(l, origin, s.Value)
		}
	case "SystemType":
		if s.Value == "basic" {
			l.warnAt(origin.Where, "", "",
				"SystemType basic has no effect: health is always enhanced")
		}
	case "HealthCheckSuccessThreshold":
		l.warnAt(origin.Where, "", "use --healthcheck to define readiness",
			"HealthCheckSuccessThreshold has no effect: a new version receives messages when it is ready")
	case "EnhancedHealthAuthEnabled":
		l.warnAt(origin.Where, "", "",
			"EnhancedHealthAuthEnabled has no effect: no agent sends health to AWS")
	default:
		l.refuseAt(origin.Where, "", "its options are ConfigDocument, SystemType, HealthCheckSuccessThreshold, "+
			"EnhancedHealthAuthEnabled",
			"%s is not an option of Elastic Beanstalk's %s", shown(s.Option), s.Namespace)
	}
}

func readHealthDocument(l *loader, origin Origin, text string) {
	var doc healthDocument
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		l.refuseAt(origin.Where, "health-ignore-client-errors", "use a map, or JSON: "+
			`{"Rules": {"Environment": {"Application": {"ApplicationRequests4xx": {"Enabled": false}}}}, "Version": 1}`,
			"invalid ConfigDocument: %s", strings.TrimPrefix(err.Error(), "json: "))
		return
	}

	if enabled := doc.Rules.Environment.Application.ApplicationRequests4xx.Enabled; enabled != nil {
		l.assign(assignment{option: l.option("health-ignore-client-errors"), origin: origin, name: "ConfigDocument",
			text: strconv.FormatBool(!*enabled)})
	}

	if len(doc.Rules.Environment.ELB) > 0 {
		l.warnAt(origin.Where, "", "",
			"the ELB rules of ConfigDocument have no effect: a worker has no load balancer")
	}

	for _, metrics := range doc.CloudWatchMetrics {
		if len(metrics) > 0 {
			l.warnAt(origin.Where, "", "tendril publishes its own metrics with --cloudwatch on",
				"the CloudWatchMetrics of ConfigDocument are not published")
			break
		}
	}
}
