package base

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/config/yamlfile"
)

const (
	// FewSettings are shown among a command's own flags; more are grouped by topic.
	FewSettings = 3
	// HelpAll is the flag that shows the options beyond the essential ones.
	HelpAll = "help-all"
)

// TextValue is a flag whose text goes to package config as it was typed, so
// that flags, variables and files are checked by the same rules.
type TextValue struct {
	kind string
	text string
}

// String returns the text of the flag.
func (v *TextValue) String() string { return v.text }

// Set reads the flag; package config checks it later.
func (v *TextValue) Set(s string) error { v.text = s; return nil }

// Type names the kind of value in the help.
func (v *TextValue) Type() string { return v.kind }

// OptionTable is the table of options, made once for the many commands that have options of it.
var OptionTable = sync.OnceValue(config.Options)

// AddSettings gives a command the flags of the options that include selects.
func AddSettings(cmd *cobra.Command, include func(config.Option) bool) {
	added := 0
	for _, o := range OptionTable() {
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
	if added > FewSettings {
		cmd.Flags().Bool(HelpAll, false, "Show all options, by topic.")
	}
}

func addSetting(flags *pflag.FlagSet, o config.Option, name string, hidden bool) {
	help := o.Help + " (default: " + o.DefaultText() + ")"
	if o.Default != "" {
		help = o.Help + " (default " + o.DefaultText() + ")"
	}
	f := flags.VarPF(&TextValue{kind: o.Kind()}, name, "", help)
	f.Hidden = hidden
	if o.IsSwitch() {
		f.NoOptDefVal = "true"
	}
}

// LoadSettings reads all settings for a command: its flags, the environment, files and the bundle.
func (c *CLI) LoadSettings(cmd *cobra.Command, b *bundle.Bundle) (*config.Config, error) {
	return c.ReadSettings(cmd, b, nil)
}

// ReadSettings is loadSettings with a settings file that may not be on disk yet; nil for the one that is found.
func (c *CLI) ReadSettings(cmd *cobra.Command, b *bundle.Bundle, file *config.File) (*config.Config, error) {
	given := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, ok := f.Value.(*TextValue); ok {
			given[f.Name] = f.Value.String()
		}
	})
	return config.Load(config.Sources{Flags: given, Environ: c.Environ, Bundle: b, File: file,
		Root: os.Geteuid() == 0, Free: c.Free})
}

// PrintWarnings prints problems that do not end the command.
func (c *CLI) PrintWarnings(warnings ...yamlfile.Problem) {
	for _, w := range warnings {
		c.PrintErrf("warning: %s\n", Plain(w.String()))
		if w.Hint != "" {
			c.PrintErrf("hint: %s\n", Plain(w.Hint))
		}
	}
}

// BundleWarnings are what is done with a bundle in spite of a flaw, and the parts of it that are not used.
func BundleWarnings(b *bundle.Bundle, unused []bundle.Finding) []bundle.Problem {
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

// SingleDash turns the long flags of Workerless that were written with one
// dash ("-concurrency=5") into tendril's own form.
func SingleDash(args []string) (fixed []string, noticed bool) {
	for i, a := range args {
		if a == "--" {
			return append(fixed, args[i:]...), noticed
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(a, "-"), "=")
		if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && len(name) > 1 && IsFlag(name) {
			a, noticed = "-"+a, true
		}
		fixed = append(fixed, a)
	}
	return fixed, noticed
}

// IsFlag reports whether an option or an alias of one has this name.
func IsFlag(name string) bool {
	o, found := config.Lookup(name)
	return found && (o.Name == name || slices.Contains(o.Aliases, name))
}

// OriginOf says which layer set a value, and where.
func OriginOf(v api.OptionValue) config.Origin {
	return config.Origin{Layer: config.ParseLayer(v.Layer), Where: v.Where}
}

// IsSetting reports whether a flag sets an option of the table.
func IsSetting(f *pflag.Flag) bool {
	_, ok := f.Value.(*TextValue)
	return ok
}
