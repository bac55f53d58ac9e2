package config

import (
	"fmt"
	"slices"
	"strings"
)

// Groups returns the option groups in page order.
func Groups() []string {
	return []string{"Queue", "Delivery", "Functions", "Timeouts", "Retries", "Limits", "App", "Scaling", "Embedded queue",
		"Periodic tasks", "Fleet", "Console", "Metrics", "Output", "Stop"}
}

func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	options := Options()
	for _, g := range Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n", g)
		if g == "Scaling" {
			b.WriteString(referenceScaling)
		}
		writeTable(&b, []string{"flag (Elastic Beanstalk)", "default", "allowed", "meaning"},
			func(row func(...string)) {
				for _, o := range options {
					if o.Group == g {
						row(flagCell(&o), defaultCell(&o), allowedCell(&o), strings.TrimSpace(o.Help+" "+o.Detail))
					}
				}
			})
	}
	b.WriteString(referenceServe)
	b.WriteString(referenceFile)
	b.WriteString(referenceQueues)
	writeTable(&b, []string{"key", "allowed", "meaning"}, func(row func(...string)) {
		for _, o := range queueKeys(&QueueSettings{}) {
			row(code(o.Key), o.AllowedText(), o.Help)
		}
	})
	var perQueue []string
	for _, o := range options {
		if o.PerQueue {
			perQueue = append(perQueue, code(o.Key))
		}
	}
	b.WriteString("\nAlso, with the same meaning as for all queues: " + strings.Join(perQueue, ", ") + ".\n")
	writeOtherNames(&b, options)
	b.WriteString(referenceDaemon)
	var same []string
	for _, o := range options {
		if o.DaemonKey != "" && o.DaemonKey == o.Key {
			same = append(same, code(o.Key))
		}
	}
	b.WriteString("These keys have the same name in both: " + strings.Join(same, ", ") + ".\n\n")
	writeTable(&b, []string{"key", "is"}, func(row func(...string)) {
		for _, o := range options {
			if o.DaemonKey != "" && o.DaemonKey != o.Key {
				row(code(o.DaemonKey), code(o.Key))
			}
		}
		row("`http_url`, `http_port`", "`target`; by default `http://localhost` and `80`")
		row("`debug`", "`verbose`, if true")
	})
	return b.String()
}

func writeOtherNames(b *strings.Builder, options []Option) {
	b.WriteString(referenceNames)
	writeTable(b, []string{"key", "other names"}, func(row func(...string)) {
		for _, o := range options {
			var names []string
			for _, a := range o.Aliases {
				names = append(names, "--"+a)
			}
			names = slices.Concat(names, o.OtherVariables, o.cloneVariables)
			if len(names) > 0 {
				row(code(o.Key), codes(names))
			}
		}
	})
}

func writeTable(b *strings.Builder, head []string, fill func(row func(...string))) {
	line := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head...)
	b.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
	fill(line)
}

func flagCell(o *Option) string {
	if o.Beanstalk == "" {
		return code("--" + o.Name)
	}
	return code("--"+o.Name) + " (" + code(o.Beanstalk) + ")"
}

func defaultCell(o *Option) string {
	switch {
	case o.Default == "":
		return o.DefaultNote
	case o.DefaultNote == "":
		return code(o.human(o.Default))
	default:
		return code(o.human(o.Default)) + ", " + o.DefaultNote
	}
}

func allowedCell(o *Option) string {
	allowed := o.AllowedText()
	switch strings.TrimSuffix(strings.TrimPrefix(allowed, "a "), ", or off") {
	case "true or false", "file path", "folder path":
		return ""
	}
	return allowed
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func codes(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = code(s)
	}
	return strings.Join(quoted, ", ")
}

const referenceHead = `# Options

<!-- Generated from the table in package config. Change that, then: go test ./internal/config -update -->

Set an option in one of five places. Later ones override earlier ones:

1. the app's bundle, whose folder or EnvironmentName names the environment
2. the [settings file](#the-settings-file): the key of ` + "`--max-wait` is `max_wait`" + `
3. the registry, for [all instances of a fleet](fleet.md)
4. an environment variable: ` + "`TENDRIL_MAX_WAIT`" + `. An empty one counts as unset
5. the command line

` + "`tendril explain OPTION`" + ` shows the value in force and every place that set it. ` + "`tendril check`" + ` finds mistakes
without starting anything.

**Durations** are ` + "`30s`, `5m`, `1h30m`, `4d`" + `; a bare number is seconds. **Sizes** are ` + "`512B`, `8KiB`, `1MiB`" + `;
a bare number is bytes. **Rates** are ` + "`10/s`, `600/m`, `36000/h`" + `; a bare number is messages per second.
**Switches** are true or false (also yes, no, on, off, 1, 0).

Certificates, their keys and ` + "`--credentials`" + ` are read again when the file changes. Secrets in files are read at startup and
at each reload, without trailing line breaks.
`

const referenceScaling = `MinSize, MaxSize and Cooldown belong to ` + "`aws:autoscaling:asg`, the others to `aws:autoscaling:trigger`" + `, where a bare Period or
BreachDuration is minutes. See [scaling.md](scaling.md).

`

const referenceServe = `
## tendril serve

It serves only the embedded queues. ` + "`tendril serve --help`" + ` lists its options.
`

const referenceFile = `
## The settings file

The first of these files is read:

1. the one named by ` + "`--config` or `TENDRIL_CONFIG`" + `
2. ` + "`tendril.yaml`" + ` in the working folder
3. ` + "`$XDG_CONFIG_HOME/tendril/config.yaml`, or `~/.config/tendril/config.yaml`" + `
4. ` + "`/etc/tendril/config.yaml`" + `

Its keys are the flags with ` + "`_` instead of `-`" + `, without ` + "`config`" + `. Elastic Beanstalk names of the namespace ` + "`aws:elasticbeanstalk:sqsd`" + ` go below
the key ` + "`sqsd`" + `, or into variables ` + "`TENDRIL_SQSD_<name>`" + `.

` + "```yaml" + `
queue_url: https://sqs.eu-west-1.amazonaws.com/123456789012/jobs
target: http://127.0.0.1:8080
success_codes: [200, 202-204]
sqsd:
  HttpPath: /jobs
  InactivityTimeout: 600
` + "```" + `

Unknown and repeated keys are errors. The file may have 64 KiB, without anchors, aliases, tags and merge keys. Paths are
relative to the working folder. A file that another user owns or can change must be named explicitly.
`

const referenceQueues = `
## Several queues

A queue's own settings, in a list below ` + "`queues`" + ` in the settings file, override those for all queues. [queues.md](queues.md)
has an example and explains priorities.

Of ` + "`target`, `function` and `lambda`" + ` a queue has at most one; by default, messages go to the app that tendril starts.

`

const referenceNames = `
## Names of other programs

The variable ` + "`TENDRIL_…`" + ` overrides the others. Variables ` + "`SQSD_…`" + ` of other daemons cause a warning.

`

const referenceDaemon = `
## The settings file of aws-sqsd

A file given by ` + "`--config`" + ` is read as one of aws-sqsd if its folder is called ` + "`aws-sqsd.d`" + ` or
if it has a key of the table below. Unknown keys cause a warning. Keys of tendril.yaml work too.

`
