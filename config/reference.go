package config

import (
	"fmt"
	"slices"
	"strings"
)

// Groups returns the groups in the order in which they are shown.
func Groups() []Group {
	return []Group{GroupQueue, GroupDelivery, GroupTimeouts, GroupRetries, GroupApp, GroupEmbedded, GroupPeriodic, GroupConsole, GroupOutput, GroupStop}
}

// Reference returns the page that documents every option, in Markdown:
// docs/options.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	options := Options()
	for _, g := range Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n", g)
		writeTable(&b, []string{"flag", "variable", "key", "Elastic Beanstalk", "default", "allowed", "meaning"}, func(row func(...string)) {
			for _, o := range options {
				if o.Group == g {
					row(code("--"+o.Name), code(o.Variable), code(o.Key), code(o.Beanstalk), defaultCell(&o), o.Allowed, o.Help)
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
		for _, key := range []string{"cloudwatch_interval", "via_sns"} {
			row(code(key), "no effect in this release, with a warning: "+notYet(key))
		}
	})
	b.WriteString(referenceDifferences)
	return b.String()
}

// writeOtherNames lists the names that other programs have for an option.
func writeOtherNames(b *strings.Builder, options []Option) {
	b.WriteString(referenceNames)
	writeTable(b, []string{"key", "other flags", "other variables", "variables of other daemons"}, func(row func(...string)) {
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

// writeTable writes a Markdown table; fill calls row for each line of it.
func writeTable(b *strings.Builder, head []string, fill func(row func(...string))) {
	line := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head...)
	line(slices.Repeat([]string{"---"}, len(head))...)
	fill(line)
}

// defaultCell sets a fixed default apart from words about one.
func defaultCell(o *Option) string {
	switch {
	case o.Default == "":
		return o.DefaultNote
	case o.DefaultNote == "":
		return code(o.Default)
	default:
		return code(o.Default) + ", " + o.DefaultNote
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

<!-- Generated from the table in package config. Change that, then: go test ./config -update -->

Every option has a default and can be set in four places, of which a later one overrides an earlier one:

1. the app's folder (its name becomes the environment's name),
2. the settings file,
3. the environment: ` + "`TENDRIL_…`" + `,
4. the command line.

` + "`tendril explain OPTION`" + ` tells the value in force and every place that set it; ` + "`tendril check`" + ` finds mistakes
without starting anything. A value is checked in whatever place it stands, also where another overrides it.

**Durations** are written ` + "`30s`, `5m`, `1h30m`, `4d`" + `; a bare number is seconds. **Sizes** are written ` + "`512B`, `8KiB`, `1MiB`" + `;
a bare number is bytes. **Switches** take true and false (also yes, no, on, off, 1, 0). A variable that is set to nothing counts
as not set.
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

It is a flat map of the keys above. Options of the namespace ` + "`aws:elasticbeanstalk:sqsd`" + ` may be written by their Elastic
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
not read. A relative path in it counts from the working folder.
`

const referenceNames = `
## Names of other programs

These count too. The variable ` + "`TENDRIL_…`" + ` overrides the others; those of other daemons cause a warning.

`

const referenceDaemon = `
## The settings file of aws-sqsd

A file given by ` + "`--config`" + ` is taken for one of aws-sqsd, and read unchanged, when it lies in a folder called ` + "`aws-sqsd.d`" + ` or
holds a key that only aws-sqsd has: ` + "`http_url`, `http_port`, `environment_name`, `sqs_wait_time_seconds`, `drain_timeout`, `debug`, `cloudwatch_interval`, `via_sns`" + `.
Keys that are not known there cause a warning, and keys without a value are passed over. The keys of tendril.yaml are understood as well.

`

const referenceDifferences = `
## Where the sources disagree

| option | the sources | here |
| --- | --- | --- |
| ` + "`inactivity_timeout`" + ` | default 180 or 299; up to 36000, on older platforms 1800 | default 180; up to 36000, with a warning above 1800 |
| ` + "`error_visibility_timeout`" + ` | default unset or 2 | unset |
| ` + "`max_retries`" + ` | up to 100, on older platforms 1000 | up to 1000, with a warning above 100 |
| ` + "`shutdown_timeout`" + ` | aws-sqsd's ` + "`drain_timeout`" + ` is 600 | 30: service managers and container platforms send KILL soon after TERM; raise both together. A ` + "`drain_timeout`" + ` in aws-sqsd's file counts |
| ` + "`port`" + `, ` + "`target`" + ` | aws-sqsd posts to port 80, where a proxy listens | the app's own port, 5000; a target may be given |
| visibility | aws-sqsd lets it run out while the app works | it is extended, up to ` + "`inactivity_timeout` or `deadline`" + ` |
| options that neither Elastic Beanstalk nor Workerless has | | off, or without effect on a delivery, until they are set |
`
