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
	// FewSettings is the maximum number of options listed among a command's own flags; more are grouped by topic.
	FewSettings = 3
	// HelpAll is the flag that shows all options in the help.
	HelpAll = "help-all"
)

// textValue stores a flag's value as text, so that package config applies the same rules to flags, variables and files.
type textValue struct {
	kind string
	text string
}

func (v *textValue) String() string { return v.text }

func (v *textValue) Set(s string) error { v.text = s; return nil }

func (v *textValue) Type() string { return v.kind }

// OptionTable returns the table of all options, computed once.
var OptionTable = sync.OnceValue(config.Options)

// AddSettings adds flags for the named options, or for all options if there are no names.
func AddSettings(cmd *cobra.Command, names ...string) {
	AddSettingsOf(cmd, func(o config.Option) bool { return len(names) == 0 || slices.Contains(names, o.Name) })
}

// AddSettingsOf adds flags for the options selected by include.
func AddSettingsOf(cmd *cobra.Command, include func(config.Option) bool) {
	added := 0
	for _, o := range OptionTable() {
		if !include(o) {
			continue
		}
		addSetting(cmd.Flags(), o, o.Name, false)
		for _, alias := range o.Aliases {
			addSetting(cmd.Flags(), o, alias, true)
		}
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
	f := flags.VarPF(&textValue{kind: o.Kind()}, name, "", help)
	f.Hidden = hidden
	if o.IsSwitch() {
		f.NoOptDefVal = "true"
	}
}

// LoadSettings loads a command's settings from flags, environment, files and bundle.
func (c *CLI) LoadSettings(cmd *cobra.Command, b *bundle.Bundle) (*config.Config, error) {
	return c.ReadSettings(cmd, config.Sources{Bundle: b})
}

// ReadSettings is like LoadSettings, with the Bundle, File and Registry of src.
func (c *CLI) ReadSettings(cmd *cobra.Command, src config.Sources) (*config.Config, error) {
	src.Flags = map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if IsSetting(f) {
			src.Flags[f.Name] = f.Value.String()
		}
	})
	src.Environ = c.Environ
	src.Root = os.Geteuid() == 0
	src.Free = c.Free
	return config.Load(src)
}

// PrintWarnings prints problems that are not fatal.
func (c *CLI) PrintWarnings(warnings ...yamlfile.Problem) {
	for _, w := range warnings {
		c.PrintErrf("warning: %s\n", Plain(w.String()))
		if w.Hint != "" {
			c.PrintErrf("hint: %s\n", Plain(w.Hint))
		}
	}
}

// NewWarnings returns the warnings that have not been returned before.
func (c *CLI) NewWarnings(warnings []yamlfile.Problem) []yamlfile.Problem {
	fresh := slices.DeleteFunc(slices.Clone(warnings), func(w yamlfile.Problem) bool { return slices.Contains(c.warned, w) })
	c.warned = append(c.warned, fresh...)
	return fresh
}

// BundleWarnings returns warnings about a bundle, including its unused parts.
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

// SingleDash adds a dash to long flags with a single one, as in Workerless ("-concurrency=5").
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

// IsFlag reports whether name is the name or alias of an option.
func IsFlag(name string) bool {
	o, found := config.Lookup(name)
	return found && (o.Name == name || slices.Contains(o.Aliases, name))
}

// OriginOf returns the origin of an option's value.
func OriginOf(v api.OptionValue) config.Origin {
	return config.Origin{Layer: config.ParseLayer(v.Layer), Where: v.Where}
}

// IsSetting reports whether a flag sets an option.
func IsSetting(f *pflag.Flag) bool {
	_, ok := f.Value.(*textValue)
	return ok
}
