package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
)

// textValue is a flag whose text goes to package config as it was typed, so
// that flags, variables and files are checked by the same rules.
type textValue struct {
	kind string
	text string
}

func (v *textValue) String() string     { return v.text }
func (v *textValue) Set(s string) error { v.text = s; return nil }
func (v *textValue) Type() string       { return v.kind }

// optionTable is the table of options, made once for the many commands that have options of it.
var optionTable = sync.OnceValue(config.Options)

// addSettings gives a command the flags of the options that include selects.
func addSettings(cmd *cobra.Command, include func(config.Option) bool) {
	added := 0
	for _, o := range optionTable() {
		if !include(o) {
			continue
		}
		addSetting(cmd.Flags(), o, o.Name, false)
		for _, alias := range o.Aliases {
			addSetting(cmd.Flags(), o, alias, true)
		}
		completeOption(cmd, &o)
		added++
	}
	if added > fewSettings {
		cmd.Flags().Bool(helpAll, false, "Show all options, by topic.")
	}
}

func addSetting(flags *pflag.FlagSet, o config.Option, name string, hidden bool) {
	help := o.Help + " (default: " + o.DefaultText() + ")"
	if o.Default != "" {
		help = o.Help + " (default " + o.DefaultText() + ")"
	}
	f := flags.VarPF(&textValue{kind: o.Kind()}, name, "", help)
	f.Hidden = hidden
	if o.IsSwitch() {
		f.NoOptDefVal = "true"
	}
}

// loadSettings reads all settings for a command: its flags, the environment, files and the bundle.
func (c *cli) loadSettings(cmd *cobra.Command, b *bundle.Bundle) (*config.Config, error) {
	return c.readSettings(cmd, b, nil)
}

// readSettings is loadSettings with a settings file that may not be on disk yet; nil for the one that is found.
func (c *cli) readSettings(cmd *cobra.Command, b *bundle.Bundle, file *config.File) (*config.Config, error) {
	given := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, ok := f.Value.(*textValue); ok {
			given[f.Name] = f.Value.String()
		}
	})
	return config.Load(config.Sources{Flags: given, Environ: c.environ, Bundle: b, File: file,
		Root: os.Geteuid() == 0, Free: c.free})
}

func (c *cli) warn(warnings ...yamlfile.Problem) {
	for _, w := range warnings {
		fmt.Fprintf(c.err, "warning: %s\n", plain(w.String()))
		if w.Hint != "" {
			fmt.Fprintf(c.err, "hint: %s\n", plain(w.Hint))
		}
	}
}

// bundleWarnings are what is done with a bundle in spite of a flaw, and the parts of it that are not used.
func bundleWarnings(b *bundle.Bundle, unused []bundle.Finding) []bundle.Problem {
	if b == nil {
		return nil
	}
	warnings := slices.Clone(b.Warnings)
	for _, f := range unused {
		warnings = append(warnings, bundle.Problem{
			Where: yamlfile.Place(filepath.Join(b.Dir, f.File), f.Line, 0), Text: f.What,
		})
	}
	return warnings
}

// singleDash turns the long flags of Workerless that were written with one
// dash ("-concurrency=5") into tendril's own form.
func singleDash(args []string) (fixed []string, noticed bool) {
	for i, a := range args {
		if a == "--" {
			return append(fixed, args[i:]...), noticed
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(a, "-"), "=")
		if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && len(name) > 1 && isFlag(name) {
			a, noticed = "-"+a, true
		}
		fixed = append(fixed, a)
	}
	return fixed, noticed
}

func isFlag(name string) bool {
	o, found := config.Lookup(name)
	return found && (o.Name == name || slices.Contains(o.Aliases, name))
}
