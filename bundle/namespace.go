package bundle

import "strings"

// NoEffect says why the settings of a namespace change nothing; "" for those
// that do.
func NoEffect(namespace string) string {
	switch namespace {
	case NamespaceWorker, NamespaceEnvironment, NamespaceGroup, NamespaceTrigger, NamespaceHealth, namespacePython:
		return ""
	}
	for _, n := range []struct{ prefix, why string }{
		{"aws:elbv2:", noBalancer},
		{"aws:elb:", noBalancer},
		{"aws:rds:", "no database is created: create it, and give the app its address in " + NamespaceEnvironment},
		{"aws:ec2:", noInstances},
		{"aws:autoscaling:launchconfiguration", noInstances},
		{"aws:autoscaling:",
			"no Auto Scaling group is created: sizes belong in " + NamespaceGroup + ", what they follow in " + NamespaceTrigger},
		{"aws:elasticbeanstalk:environment:process:", noBalancer},
		{"aws:elasticbeanstalk:environment:proxy", noProxy},
		{"aws:elasticbeanstalk:environment", noInstances},
		{"aws:elasticbeanstalk:command", "this machine is deployed to, and no fleet in batches"},
		{"aws:elasticbeanstalk:managedactions", "no platform is updated: update this machine as you always do"},
		{"aws:elasticbeanstalk:cloudwatch:logs",
			"no logs are sent to CloudWatch: they go to standard output, for whatever collects them on this machine"},
		{"aws:elasticbeanstalk:hostmanager", "no logs are published: they go to standard output"},
		{"aws:elasticbeanstalk:sns:topics", "no notifications are sent: watch the metrics or the health"},
		{"aws:elasticbeanstalk:xray", "no X-Ray daemon is started: start it on this machine"},
		{"aws:elasticbeanstalk:application:environmentsecrets",
			"secrets are not fetched: give the app these variables through tendril's own environment"},
		{"aws:elasticbeanstalk:application", "checks of the app are set with --healthcheck"},
		{"aws:elasticbeanstalk:container:",
			"no platform is installed: this machine's own runtime starts what the Procfile says"},
		{"aws:elasticbeanstalk:customoption", "custom options are for resources, and none are created"},
	} {
		if strings.HasPrefix(namespace, n.prefix) {
			return n.why
		}
	}
	return "tendril knows no such namespace; the options of the worker belong in " + NamespaceWorker
}

const (
	noBalancer  = "a worker has no load balancer"
	noProxy     = "there is no proxy in front of the app: messages are posted to its port"
	noInstances = "no instances are created: everything runs on this machine"
)

// section says what a section of a configuration file that is not run was
// for, and what to do instead; "" for a name that is no section.
func section(name string) string {
	switch name {
	case "packages":
		return "packages are not installed: install them on this machine or in a script in .platform/hooks/prebuild"
	case "sources":
		return "archives are not downloaded: make what is in them part of the bundle, or fetch it in a script in " +
			".platform/hooks/prebuild"
	case "files":
		return "files are not written: make them part of the bundle, or write them in a script in .platform/hooks/prebuild"
	case "commands":
		return "commands are not run: move them into a script in .platform/hooks/prebuild"
	case "container_commands":
		return "container commands are not run: move them into a script in .platform/hooks/predeploy"
	case "users", "groups":
		return "users and groups are not created: create them on this machine"
	case "services":
		return "services are not started: let this machine's init do it, or give them a line in the Procfile"
	case "Resources":
		return "resources are not created: create them with CloudFormation, and give the app their names in " +
			NamespaceEnvironment
	case "Outputs", "Mappings", "Parameters", "Conditions", "Metadata":
		return "nothing is created by CloudFormation"
	}
	return ""
}

// sections are the names that section knows, with the one that is acted on.
func sections() []string {
	return []string{"option_settings", "packages", "sources", "files", "commands", "container_commands", "users",
		"groups", "services", "Resources"}
}

// meant returns the section that a mistyped name stands for, by case, blanks
// and plural; "" when there is none.
func meant(name string) string {
	for _, s := range sections() {
		if plainName(s) == plainName(name) {
			return s
		}
	}
	return ""
}

func plainName(s string) string {
	s = strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
	return strings.TrimSuffix(s, "s")
}
