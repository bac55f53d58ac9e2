package config

import (
	"fmt"
	"slices"
	"strings"
)

// Groups returns the groups in page order.
func Groups() []string {
	return []string{"Queue", "Delivery", "Functions", "Timeouts", "Retries", "Limits", "App", "Scaling", "Embedded queue",
		"Periodic tasks", "Console", "Metrics", "Output", "Stop"}
}

// Reference returns docs/options.md, which documents every option.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	options := Options()
	for _, g := range Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n", g)
		if g == "Scaling" {
			b.WriteString(referenceScaling)
		}
		writeTable(&b, []string{"flag", "variable", "key", "Elastic Beanstalk", "default", "allowed", "meaning"},
			func(row func(...string)) {
				for _, o := range options {
					if o.Group == g {
						row(code("--"+o.Name), code(o.Variable), code(o.Key), code(o.Beanstalk), defaultCell(&o), o.AllowedText(),
							strings.TrimSpace(o.Help+" "+o.Detail))
					}
				}
			})
	}
	b.WriteString(referenceServe)
	var serve []string
	for _, o := range options {
		if o.Serve {
			serve = append(serve, code("--"+o.Name))
		}
	}
	b.WriteString(strings.Join(serve, ", ") + ".\n")
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
	b.WriteString("\nAnd, as they hold for all queues: " + strings.Join(perQueue, ", ") + ".\n")
	writeOtherNames(&b, options)
	b.WriteString(referenceDaemon)
	writeTable(&b, []string{"key", "is"}, func(row func(...string)) {
		for _, o := range options {
			if o.DaemonKey != "" {
				row(code(o.DaemonKey), code(o.Key))
			}
		}
		row("`http_url`, `http_port`", "`target`; where one is missing, `http://localhost` and `80`")
		row("`debug`", "`verbose`, where it is true")
	})
	b.WriteString(referenceDifferences)
	return b.String()
}

// writeOtherNames lists the names of options in other programs.
func writeOtherNames(b *strings.Builder, options []Option) {
	b.WriteString(referenceNames)
	writeTable(b, []string{"key", "other flags", "other variables", "variables of other daemons"},
		func(row func(...string)) {
			for _, o := range options {
				if len(o.Aliases)+len(o.OtherVariables)+len(o.cloneVariables) == 0 {
					continue
				}
				var flags []string
				for _, a := range o.Aliases {
					flags = append(flags, "--"+a)
				}
				row(code(o.Key), codes(flags), codes(o.OtherVariables), codes(o.cloneVariables))
			}
		})
}

func writeTable(b *strings.Builder, head []string, fill func(row func(...string))) {
	line := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head...)
	line(slices.Repeat([]string{"---"}, len(head))...)
	fill(line)
}

// defaultCell formats a fixed default as code, but not its note.
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

Every option has a default and can be set in four places, of which a later one overrides an earlier one:

1. the app's folder: its name, or the EnvironmentName of its env.yaml, becomes the environment's name, and the option settings of its bundle count,
2. the settings file,
3. the environment: ` + "`TENDRIL_…`" + `,
4. the command line.

` + "`tendril explain OPTION`" + ` tells the value in force and every place that set it; ` + "`tendril check`" + ` finds mistakes
without starting anything. A value is checked in whatever place it stands, also where another overrides it.

**Durations** are written ` + "`30s`, `5m`, `1h30m`, `4d`" + `; a bare number is seconds. **Sizes** are written ` + "`512B`, `8KiB`, `1MiB`" + `;
a bare number is bytes. **Rates** are written ` + "`10/s`, `600/m`, `36000/h`" + `; a bare number is messages per second. **Switches** take true and false (also yes, no, on, off, 1, 0). A variable that is set to nothing counts
as not set.
`

const referenceScaling = `The names MinSize, MaxSize and Cooldown are those of ` + "`aws:autoscaling:asg`, the others of `aws:autoscaling:trigger`" + `, where a bare Period or
BreachDuration is minutes. MinSize and MaxSize bound a group of instances; with ` + "`scale_target: processes`" + ` they bound the processes, unless
` + "`processes_min` and `processes_max`" + ` do. A measure of AWS's that is not measured here, such as NetworkOut, is not used, nor are its thresholds.

`

const referenceServe = `
## tendril serve

It serves the embedded queues alone, and takes these options: `

const referenceFile = `
## The settings file

The first of these that exists is read; one that is named must exist:

1. the one given by ` + "`--config` or `TENDRIL_CONFIG`" + `
2. ` + "`tendril.yaml`" + ` in the working folder
3. ` + "`$XDG_CONFIG_HOME/tendril/config.yaml`, or `~/.config/tendril/config.yaml`" + `
4. ` + "`/etc/tendril/config.yaml`" + `

It is a map of the keys above, flat but for ` + "`queues`" + `. Options of the namespace ` + "`aws:elasticbeanstalk:sqsd`" + ` may be written by their Elastic
Beanstalk names below the key ` + "`sqsd`" + `, or as variables ` + "`TENDRIL_SQSD_<name>`" + `.

` + "```yaml" + `
queue_url: https://sqs.eu-west-1.amazonaws.com/123456789012/jobs
target: http://127.0.0.1:8080
success_codes: [200, 202-204]
sqsd:
  HttpPath: /jobs
  InactivityTimeout: 600
` + "```" + `

A key that is not known, or is there twice, is an error. The file may have 64 KiB; anchors, aliases, tags and merge keys are
not read. A relative path in it counts from the working folder. A file that nobody named is refused where another user owns it
or may write to it, or to the folder it is in: name it if it is to be trusted.
`

const referenceQueues = `
## Several queues

` + "`--queues`" + ` selects the queues in strict order of priority, or each with a weight:

` + "```sh" + `
tendril up --queues payments,submissions,default         # a later queue only while those before are empty
tendril up --queues payments:3,submissions:2,default:1   # looked at first in 50, 33 and 17 of 100 turns
` + "```" + `

A name is an embedded queue, or, with ` + "`--backend sqs` or `--function`" + `, one on Amazon SQS; a URL or an ARN is Amazon's. Both may be mixed. No two queues may
have the same name. In the settings file the queues may also be a list of maps, each with settings of its own, which count
before those that hold for all queues, wherever these were set:

` + "```yaml" + `
queues:
  - name: payments
    weight: 3
    http_path: /payments
    max: 10
  - arn: arn:aws:sqs:eu-west-1:123456789012:reports.fifo
    weight: 1
    function: make-report
` + "```" + `

Of ` + "`target`, `function` and `lambda`" + ` a queue has one; without any, its messages go to the app started by tendril.

`

const referenceNames = `
## Names of other programs

These count too. The variable ` + "`TENDRIL_…`" + ` overrides the others; those of other daemons cause a warning.

`

const referenceDaemon = `
## The settings file of aws-sqsd

A file given by ` + "`--config`" + ` is taken for one of aws-sqsd, and read unchanged, when it lies in a folder called ` + "`aws-sqsd.d`" + ` or
holds a key that only aws-sqsd has: ` + "`http_url`, `http_port`, `sqs_wait_time_seconds`, `drain_timeout`, `debug`, `cloudwatch_interval`" + `.
Keys that are not known there cause a warning, and keys without a value are passed over. The keys of tendril.yaml are understood as well.

`

const referenceDifferences = `
## Where the sources disagree

| option | the sources | here |
| --- | --- | --- |
| ` + "`inactivity_timeout`" + ` | default 180 or 299; up to 36000, on older platforms 1800 | default 180; up to 36000, with a warning above 1800 |
| ` + "`http_connections`" + ` | up to 100; Workerless has no bound | up to 1000, with a warning above 100 where messages go to an app |
| ` + "`batch_size`" + ` | Workerless invokes with one message; AWS's own trigger uses 10 | 1 |
| ` + "`error_visibility_timeout`" + ` | default unset or 2 | unset |
| ` + "`max_retries`" + ` | up to 100, on older platforms 1000 | up to 1000, with a warning above 100 |
| ` + "`shutdown_timeout`" + ` | aws-sqsd's ` + "`drain_timeout`" + ` is 600 | 30: service managers and container platforms send KILL soon after TERM; raise both together. A ` + "`drain_timeout`" + ` in aws-sqsd's file counts |
| ` + "`port`" + `, ` + "`target`" + ` | aws-sqsd posts to port 80, where a proxy listens | the app's own port, 5000; a target may be given |
| visibility | aws-sqsd lets it run out while the app works | it is extended, up to ` + "`inactivity_timeout` or `deadline`" + ` |
| options that neither Elastic Beanstalk nor Workerless has | | off, or without effect on a delivery, until they are set |
`
