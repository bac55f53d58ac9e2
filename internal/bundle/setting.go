package bundle

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"tendril/internal/config/yamlfile"
)

// The namespaces of option settings that tendril uses.
const (
	NamespaceWorker      = "aws:elasticbeanstalk:sqsd"
	NamespaceEnvironment = "aws:elasticbeanstalk:application:environment" // the app's variables; the default namespace
	NamespaceGroup       = "aws:autoscaling:asg"
	NamespaceTrigger     = "aws:autoscaling:trigger"
	NamespaceCommand     = "aws:elasticbeanstalk:command"
	NamespaceHealth      = "aws:elasticbeanstalk:healthreporting:system"
	namespacePython      = "aws:elasticbeanstalk:container:python" // how to start an app without a Procfile
)

const (
	maxSettings = 2000 // per file
	maxOption   = 256  // bytes, of a namespace or an option name
)

// Shown returns the value for display, hidden if it is probably secret.
func (s Setting) Shown() string {
	if s.Computed {
		return "(computed by CloudFormation)"
	}
	return HideSecret(s.Option, s.Value)
}

// String returns "file:line: namespace option = value".
func (s Setting) String() string {
	return fmt.Sprintf("%s:%d: %s %s = %s", s.File, s.Line, s.Namespace, s.Option, s.Shown())
}

// Setting returns an option's setting in force, or false if it is unset or computed.
func (b *Bundle) Setting(namespace, option string) (Setting, bool) {
	for _, s := range slices.Backward(b.Settings) {
		if s.Namespace == namespace && s.Option == option {
			return s, !s.Computed
		}
	}
	return Setting{}, false
}

// Environment returns the app's variables in force, sorted by name, without computed ones.
func (b *Bundle) Environment() []Setting {
	return slices.DeleteFunc(b.InForce(), func(s Setting) bool {
		return s.Namespace != NamespaceEnvironment || s.Computed
	})
}

// InForce returns the settings in force, sorted by namespace and option.
func (b *Bundle) InForce() []Setting {
	type key struct{ namespace, option string }
	last := map[key]Setting{}
	for _, s := range b.Settings {
		last[key{s.Namespace, s.Option}] = s
	}
	return slices.SortedFunc(maps.Values(last), func(a, b Setting) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Option, b.Option))
	})
}

// Named returns an option's settings in all namespaces, in the order of Settings.
func (b *Bundle) Named(option string) (found []Setting) {
	for _, s := range b.Settings {
		if s.Option == option {
			found = append(found, s)
		}
	}
	return found
}

const settingForm = `write "namespace:" and, indented below it, "option: value"; or a list of "- namespace: ..., option_name: ..., value: ..."`

func (d *document) readSettings(key yamlfile.Pair) {
	switch n := key.Value; n.Kind {
	case yamlfile.Null:
	case yamlfile.Sequence:
		for _, item := range n.Items {
			d.readSettingItem(item)
		}
	case yamlfile.Mapping:
		for _, p := range n.Pairs {
			d.readNamespace(p)
		}
	default:
		d.refuseKey(key, settingForm, "%s is neither a list nor a map", key.Key)
	}
}

func (d *document) readNamespace(p yamlfile.Pair) {
	switch {
	case p.Value.Kind == yamlfile.Null:
	case p.Value.Kind != yamlfile.Mapping:
		d.refuseKey(p, settingForm+"; put variables of the app below "+NamespaceEnvironment,
			"%s is not a namespace with options below it", yamlfile.Printable(p.Key))
	default:
		for _, option := range p.Value.Pairs {
			d.addSetting(p.Key, option.Key, option)
		}
	}
}

func (d *document) readSettingItem(n *yamlfile.Node) {
	if n.Kind != yamlfile.Mapping {
		d.refuse(n.Line, n.Column, settingForm, "this list item is not a map")
		return
	}

	namespace, option := NamespaceEnvironment, ""
	var value *yamlfile.Pair
	for _, p := range n.Pairs {
		switch p.Key {
		case "namespace", "option_name":
			if p.Value.Kind != yamlfile.Scalar {
				d.refuseKey(p, settingForm, "%s is not plain text", p.Key)
				return
			}
			if p.Key == "namespace" {
				namespace = p.Value.Text
			} else {
				option = p.Value.Text
			}
		case "value":
			value = &p
		case "resource_name": // names a CloudFormation resource, which tendril ignores
		default:
			d.refuseKey(p, "the keys are namespace, option_name and value", "%s is not a key of an option setting",
				yamlfile.Printable(p.Key))
			return
		}
	}

	switch {
	case option == "":
		d.refuse(n.Line, n.Column, settingForm, "this entry has no option_name")
	case value == nil:
		d.refuse(n.Line, n.Column, `write "value: ..." beside the option_name; "value: ''" for an empty one`,
			"%s has no value", yamlfile.Printable(option))
	default:
		d.addSetting(namespace, option, *value)
	}
}

func (d *document) addSetting(namespace, option string, p yamlfile.Pair) {
	name := yamlfile.Printable(option)
	n := p.Value
	computed := holdsFunction(n)
	if computed {
		d.notUsed(p.Line, "the value of %s is computed by CloudFormation and unknown here, so it is not set; write "+
			"the value itself", name)
		n = &yamlfile.Node{Kind: yamlfile.Null, Line: p.Line, Column: p.Column}
	}
	if !d.admitSetting(namespace, option, p, n) {
		return
	}
	value, err := valueOf(n)
	if err != nil {
		d.refuseKey(p, "put data into files of the app", "the value of %s %v", name, err)
		return
	}

	isFirst := !slices.ContainsFunc(d.settings, func(s Setting) bool { return s.Namespace == namespace })
	if why := NoEffect(namespace); why != "" && isFirst {
		d.notUsed(p.Line, "settings of %s have no effect: %s", yamlfile.Printable(namespace), why)
	}
	d.settings = append(d.settings,
		Setting{Namespace: namespace, Option: option, Value: value, Computed: computed, File: d.path, Line: p.Line})
}

func (d *document) admitSetting(namespace, option string, p yamlfile.Pair, value *yamlfile.Node) bool {
	name := yamlfile.Printable(option)
	isStructure := value.Kind == yamlfile.Sequence || value.Kind == yamlfile.Mapping
	switch {
	case isStructure && !allowsStructure(namespace):
		d.refuseKey(p, "write one value; separate the items of a list with commas", "the value of %s is not "+
			"plain text", name)
	case namespace == "" || option == "" || len(namespace) > maxOption || len(option) > maxOption:
		d.refuseKey(p, settingForm, "a namespace and an option's name have 1 to %d characters", maxOption)
	case namespace == NamespaceEnvironment && strings.ContainsAny(option, "=\x00\r\n"):
		d.refuseKey(p, `use letters, digits and "_"`, "%s is not a valid variable name", name)
	case strings.ContainsRune(value.Text, 0):
		d.refuseKey(p, "environment variables cannot contain it: encode it, for example as base64",
			"the value of %s contains a NUL byte", name)
	case len(d.settings) == maxSettings:
		d.refuseKey(p, "put data into files of the app", "there are more than %d settings", maxSettings)
	default:
		return true
	}
	return false
}

func allowsStructure(namespace string) bool {
	return namespace == NamespaceHealth || NoEffect(namespace) != ""
}

// embeddedFunction matches JSON in backquotes, which a shell would run as a command.
var embeddedFunction = regexp.MustCompile("(?s)`\\s*\\{\\s*[\"']?(Ref|Fn::[A-Za-z:]+)[\"']?\\s*:.*?\\}\\s*`")

func fromCloudFormation(n *yamlfile.Node) bool {
	if n.Tag != "" && !strings.HasPrefix(n.Tag, "!!") {
		return true
	}
	if n.Kind == yamlfile.Mapping {
		return len(n.Pairs) == 1 && (n.Pairs[0].Key == "Ref" || strings.HasPrefix(n.Pairs[0].Key, "Fn::"))
	}
	return embeddedFunction.MatchString(n.Text)
}

func holdsFunction(n *yamlfile.Node) bool {
	seen := map[*yamlfile.Node]bool{} // aliases share nodes
	var search func(*yamlfile.Node) bool
	search = func(n *yamlfile.Node) bool {
		if seen[n] {
			return false
		}
		seen[n] = true
		return fromCloudFormation(n) || slices.ContainsFunc(n.Items, search) ||
			slices.ContainsFunc(n.Pairs, func(p yamlfile.Pair) bool { return search(p.Value) })
	}
	return search(n)
}

// NoEffect explains why a namespace's settings have no effect; "" if they have one.
func NoEffect(namespace string) string {
	switch namespace {
	case NamespaceWorker, NamespaceEnvironment, NamespaceGroup, NamespaceTrigger, NamespaceHealth, NamespaceCommand, namespacePython:
		return ""
	}

	for _, n := range []struct{ prefix, why string }{
		{"aws:elbv2:", noBalancer},
		{"aws:elb:", noBalancer},
		{"aws:rds:", "no database is created: create it, and give the app its address in " + NamespaceEnvironment},
		{"aws:ec2:", noInstances},
		{"aws:autoscaling:launchconfiguration", noInstances},
		{"aws:autoscaling:",
			"no Auto Scaling group is created: sizes belong in " + NamespaceGroup + ", triggers in " + NamespaceTrigger},
		{"aws:elasticbeanstalk:environment:process:", noBalancer},
		{"aws:elasticbeanstalk:environment:proxy", noProxy},
		{"aws:elasticbeanstalk:environment", noInstances},
		{"aws:elasticbeanstalk:managedactions", "the platform is not updated: update this machine yourself"},
		{"aws:elasticbeanstalk:cloudwatch:logs",
			"no logs are sent to CloudWatch: they go to standard output, where a log collector can read them"},
		{"aws:elasticbeanstalk:hostmanager", "no logs are published: they go to standard output"},
		{"aws:elasticbeanstalk:sns:topics",
			"no notifications are sent: only 'tendril generate alarms' uses the Notification Topic ARN"},
		{"aws:elasticbeanstalk:xray", "no X-Ray daemon is started: start it on this machine"},
		{"aws:elasticbeanstalk:application:environmentsecrets",
			"secrets are not fetched: set these variables in tendril's own environment"},
		{"aws:elasticbeanstalk:application", "set the app's health check with --healthcheck"},
		{"aws:elasticbeanstalk:container:",
			"no platform is installed: this machine's own runtime starts the processes of the Procfile"},
		{"aws:elasticbeanstalk:customoption", "custom options are for resources, which tendril does not create"},
	} {
		if strings.HasPrefix(namespace, n.prefix) {
			return n.why
		}
	}

	return "unknown namespace; put the options of the worker in " + NamespaceWorker
}

const (
	noBalancer  = "a worker has no load balancer"
	noProxy     = "no proxy in front of the app: messages are posted to its port"
	noInstances = "no instances are created: everything runs on this machine"
)
