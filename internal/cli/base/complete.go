package base

import (
	"strings"

	"github.com/spf13/cobra"

	"tendril/internal/config"
)

// Complete registers words as completions of a flag's value.
func Complete(cmd *cobra.Command, flag string, words ...string) {
	// Registering fails only if the flag is unknown or already has completions.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// Described returns a completion with a description.
func Described(word, description string) string {
	return word + "\t" + strings.NewReplacer("\t", " ", "\n", " ").Replace(Plain(description))
}

func completeOption(cmd *cobra.Command, o *config.Option) {
	directive := cobra.ShellCompDirectiveNoFileComp
	switch {
	case strings.HasPrefix(o.Allowed(), "a folder path"):
		directive = cobra.ShellCompDirectiveFilterDirs
	case strings.HasPrefix(o.Allowed(), "a file path"):
		directive = cobra.ShellCompDirectiveDefault
	}
	_ = cmd.RegisterFlagCompletionFunc(o.Name, cobra.FixedCompletions(valuesOf(o), directive))
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
