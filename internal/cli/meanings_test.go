package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tendril/internal/cli/base"
)

func TestMeaningsExist(t *testing.T) {
	t.Parallel()
	root := NewRoot((&base.CLI{}))
	for _, m := range commandMeanings {
		if cmd, rest, err := root.Find(strings.Fields(m.name)); err != nil || len(rest) > 0 || cmd == root {
			t.Errorf("unknown command %q: %v", m.name, err)
		}
	}
	subcommands, flags := map[string]bool{}, map[string]bool{}
	everyCommand(root, nil, func(cmd *cobra.Command, words []string) {
		subcommands[cmd.Name()] = len(words) == 2 || subcommands[cmd.Name()]
		for _, m := range flagMeanings {
			flags[m.name] = flags[m.name] || cmd.Flags().Lookup(m.name) != nil
		}
	})
	for _, m := range subcommandMeanings {
		if !subcommands[m.name] {
			t.Errorf("no family has a command %q", m.name)
		}
	}
	for _, m := range flagMeanings {
		if !flags[m.name] {
			t.Errorf("no command has a flag --%s", m.name)
		}
	}
}
