package base

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tendril/internal/config"
)

// completionWords is the annotation of a flag that has a fixed set of values.
const completionWords = "tendril_words"

// Complete offers words as values of a flag.
func Complete(cmd *cobra.Command, flag string, words ...string) {
	f := cmd.Flag(flag)
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[completionWords] = words
}

// CompleteFlags registers the completions of [Complete] and of the options. Call it only for a command line that asks for
// completions: cobra keeps registered flags, and with them the command, until the process ends.
func CompleteFlags(cmd *cobra.Command) {
	complete := func(f *pflag.Flag) {
		if words, fixed := f.Annotations[completionWords]; fixed {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	cmd.Flags().VisitAll(complete)
	cmd.PersistentFlags().VisitAll(complete)

	for _, o := range OptionTable() {
		for _, name := range append([]string{o.Name}, o.Aliases...) {
			if f := cmd.Flags().Lookup(name); f != nil && IsSetting(f) {
				completeOption(cmd, name, &o)
			}
		}
	}
}

// Described returns a completion with a description.
func Described(word, description string) string {
	return word + "\t" + strings.NewReplacer("\t", " ", "\n", " ").Replace(Plain(description))
}

func completeOption(cmd *cobra.Command, flag string, o *config.Option) {
	directive := cobra.ShellCompDirectiveNoFileComp
	switch {
	case strings.HasPrefix(o.Allowed(), "a folder path"):
		directive = cobra.ShellCompDirectiveFilterDirs
	case strings.HasPrefix(o.Allowed(), "a file path"):
		directive = cobra.ShellCompDirectiveDefault
	}
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(valuesOf(o), directive))
}

// CompleteOptions offers the names of all options.
func CompleteOptions(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
	for _, o := range OptionTable() {
		names = append(names, Described(o.Name, o.Help))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// CompleteAssignment completes OPTION=VALUE: first the option's name, then the values of a choice or switch.
func CompleteAssignment(_ *cobra.Command, _ []string, typed string) (lines []string, _ cobra.ShellCompDirective) {
	name, _, named := strings.Cut(typed, "=")
	if o, found := config.Lookup(name); named && found {
		for _, word := range valuesOf(&o) {
			lines = append(lines, name+"="+word)
		}
		return lines, cobra.ShellCompDirectiveNoFileComp
	}
	for _, o := range OptionTable() {
		lines = append(lines, Described(o.Name+"=", o.Help))
	}
	return lines, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func valuesOf(o *config.Option) []string {
	if o.IsSwitch() {
		return []string{"true", "false"}
	}
	return o.Choices()
}
