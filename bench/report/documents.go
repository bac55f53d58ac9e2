package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

var markers = regexp.MustCompile(`(?s)<!-- report: ([\w./=@-]+) -->\n.*?<!-- end of report -->`)

func writeDocuments(folder string, all *results) error {
	pages, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		return err
	}

	for _, page := range pages {
		before, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		after, err := fill(string(before), all)
		if err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		if after != string(before) {
			if err := os.WriteFile(page, []byte(after), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// A marker names a table of tables.go, or a benchmark ("broker.Groups") for a table of all its results.
func fill(page string, all *results) (string, error) {
	parts := map[string]string{"conditions": conditions(all) + "\n"}
	for _, t := range tables {
		parts[t.name] = t.markdown(all)
	}
	var unknown error
	filled := markers.ReplaceAllStringFunc(page, func(old string) string {
		name := markers.FindStringSubmatch(old)[1]
		part, ok := parts[name]
		if t, measured := everything(all, name); measured && !ok {
			part, ok = t.markdown(all), true
		}
		if !ok {
			unknown = cmp.Or(unknown, fmt.Errorf("no table and no measured benchmark is named %q, as its markers are", name))
			return old
		}
		return "<!-- report: " + name + " -->\n\n" + part + "\n<!-- end of report -->"
	})
	return filled, unknown
}

// quiet is the processor use of other programs, in percent, up to which figures count as reliable.
const quiet = 3

func conditions(all *results) string {
	date := all.facts["date"]
	if day, err := time.Parse(time.DateOnly, date); err == nil {
		date = day.Format("2 January 2006")
	}
	text := fmt.Sprintf("Measured on %s at commit %s, on %s, with %s. ", date, all.facts["commit"], all.facts["machine"],
		all.facts["go"])

	if n := all.rounds(); n > 1 {
		text += fmt.Sprintf("Figures are medians of %d rounds, or of one round. Ranges wider than a fifth of the median are "+
			"in brackets; bench/results.txt has all. ", n)
	} else {
		text += "Figures are of one round. "
	}

	switch others := all.others(); {
	case len(others) == 0:
		text += "Whether the machine was quiet is not known."
	case others.highest() <= quiet:
		text += fmt.Sprintf("The machine was quiet: other programs used at most %s %% of the processors during a step.",
			number(others.highest()))
	default:
		n := 0
		for _, share := range others {
			if share > quiet {
				n++
			}
		}
		text += fmt.Sprintf("**The figures are provisional**: during %d of %d steps other programs used more than %d %% of "+
			"the processors, %s %% in the median and up to %s %%.", n, len(others), quiet, number(others.median()),
			number(others.highest()))
	}

	if peers := all.facts["peers"]; peers != "" {
		text += " Compared with " + peers + "."
	}
	return wrap(text, 118)
}

func wrap(text string, columns int) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case at+1+n > columns && word != "%":
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}
