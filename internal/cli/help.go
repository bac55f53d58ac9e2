package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tendril/internal/cli/base"
	"tendril/internal/config"
)

// Maximum widths of the help.
const (
	helpWidth  = 100
	helpColumn = 34 // flags
	helpProse  = 92 // paragraphs
)

type flagSection struct {
	title string
	flags []*pflag.Flag
}

// flagSections lists only the essential options of each topic unless all is true. left is the number of others.
func flagSections(flags *pflag.FlagSet, all bool) (sections []flagSection, left int) {
	var own []*pflag.Flag
	options := map[string]*pflag.Flag{}
	flags.VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden:
		case base.IsSetting(f):
			options[f.Name] = f
		default:
			own = append(own, f)
		}
	})

	topics := map[string][]*pflag.Flag{}
	for _, o := range base.OptionTable() {
		f := options[o.Name]
		switch {
		case f == nil:
		case len(options) <= base.FewSettings:
			own = append(own, f)
		case all || o.Essential():
			topics[o.Group] = append(topics[o.Group], f)
		default:
			left++
		}
	}

	slices.SortFunc(own, func(a, b *pflag.Flag) int { return cmp.Compare(a.Name, b.Name) })
	if len(own) > 0 {
		sections = append(sections, flagSection{"Flags", own})
	}
	for _, topic := range config.Topics() {
		if list := topics[topic]; len(list) > 0 {
			sections = append(sections, flagSection{topic, list})
		}
	}
	return sections, left
}

func printHelp(cmd *cobra.Command, _ []string) {
	text := reflow(cmp.Or(cmd.Long, cmd.Short))
	cmd.Println(text + "\n\n" + strings.TrimSuffix(cmd.UsageString(), "\n"))
}

func reflow(text string) string {
	var blocks []string
	inParagraph := false
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(line, " \n")
		isProse := line != "" && line[0] != ' '
		if isProse && inParagraph {
			blocks[len(blocks)-1] += " " + line
		} else {
			blocks = append(blocks, line)
		}
		inParagraph = isProse
	}

	for i, block := range blocks {
		if !strings.HasPrefix(block, " ") {
			blocks[i] = strings.Join(wrap(block, helpProse), "\n")
		}
	}
	return strings.Join(blocks, "\n")
}

func printUsage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() && cmd.HasParent() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}

	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	}

	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAliases:\n  %s\n", cmd.NameAndAliases())
	}

	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}

	printCommands(&b, cmd)
	cmd.InheritedFlags() // makes cobra merge the parents' flags
	all, _ := cmd.Flags().GetBool(base.HelpAll)
	sections, left := flagSections(cmd.Flags(), all)
	printFlags(&b, sections)
	if left > 0 {
		fmt.Fprintf(&b, "\n'%s --%s' shows %d more options by topic.\n'tendril explain OPTION' explains one. Each is "+
			"also a TENDRIL_ variable and a key of tendril.yaml.\n", cmd.CommandPath(), base.HelpAll, left)
	}

	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n'%s COMMAND --help' explains one command.\n", cmd.CommandPath())
	}

	_, err := io.WriteString(cmd.OutOrStderr(), b.String())
	return err
}

func printCommands(b *strings.Builder, cmd *cobra.Command) {
	list := func(title, group string) {
		var lines []string
		for _, sub := range cmd.Commands() {
			if sub.GroupID == group && sub.IsAvailableCommand() {
				lines = append(lines, fmt.Sprintf("  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short))
			}
		}
		if len(lines) > 0 {
			fmt.Fprintf(b, "\n%s:\n%s", title, strings.Join(lines, ""))
		}
	}

	for _, group := range cmd.Groups() {
		list(group.Title, group.ID)
	}

	if len(cmd.Groups()) > 0 {
		list("More", "")
	} else {
		list("Commands", "")
	}
}

func printFlags(b *strings.Builder, sections []flagSection) {
	column := 0
	for _, s := range sections {
		for _, f := range s.flags {
			if n := len(flagText(f)); n <= helpColumn {
				column = max(column, n)
			}
		}
	}

	for _, s := range sections {
		fmt.Fprintf(b, "\n%s:\n", s.title)
		for _, f := range s.flags {
			printFlag(b, f, column)
		}
	}
}

func flagText(f *pflag.Flag) string {
	text := "    --" + f.Name
	if f.Shorthand != "" {
		text = "-" + f.Shorthand + ", --" + f.Name
	}
	if kind := kindOf(f); kind != "" {
		return text + " " + kind
	}
	return text
}

func kindOf(f *pflag.Flag) string {
	kind, _ := pflag.UnquoteUsage(f)
	switch kind {
	case "switch":
		return ""
	case "string", "stringArray":
		return "text"
	case "strings":
		return "list"
	case "int":
		return "integer"
	}
	return kind
}

func printFlag(b *strings.Builder, f *pflag.Flag, column int) {
	_, help := pflag.UnquoteUsage(f)
	if value := defaultOf(f); value != "" && !strings.Contains(help, "default") {
		help += " (default " + value + ")"
	}
	text := flagText(f)
	indent := 2 + column + 2
	if len(text) > column {
		fmt.Fprintf(b, "  %s\n", text)
		text = ""
	}
	for _, line := range wrap(help, helpWidth-indent) {
		fmt.Fprintf(b, "  %-*s  %s\n", column, text, line)
		text = ""
	}
}

func defaultOf(f *pflag.Flag) string {
	if d, err := time.ParseDuration(f.DefValue); err == nil && f.Value.Type() == "duration" && d > 0 {
		return config.HumanDuration(d)
	}
	switch f.DefValue {
	case "", "0", "0s", "false", "[]", "<nil>":
		return ""
	}
	return f.DefValue
}

func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
