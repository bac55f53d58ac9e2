package cli

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tendril/internal/cli/base"
	"tendril/internal/config"
)

func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	var out, talk bytes.Buffer
	c := &base.CLI{In: strings.NewReader(""), Out: &out, Err: &talk}
	if code := Execute(c, args); code != 0 || talk.Len() > 0 {
		t.Fatalf("tendril %s: exit %d: %s", strings.Join(args, " "), code, &talk)
	}
	return out.String()
}

func everyCommand(cmd *cobra.Command, words []string, do func(cmd *cobra.Command, words []string)) {
	do(cmd, words)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			everyCommand(sub, append(slices.Clone(words), sub.Name()), do)
		}
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	t.Parallel()
	manySeconds := regexp.MustCompile(`\b\d{3,}s\b`)
	everyCommand(NewRoot((&base.CLI{})), nil, func(cmd *cobra.Command, words []string) {
		pages := []string{helpOf(t, append(slices.Clone(words), "--help")...)}
		if cmd.HasParent() && cmd.Flags().Lookup(base.HelpAll) != nil {
			pages = append(pages, helpOf(t, append(slices.Clone(words), "--"+base.HelpAll)...))
		}
		if strings.HasPrefix(cmd.CommandPath(), "tendril completion") {
			return // one of cobra's own commands
		}
		for _, page := range pages {
			for line := range strings.Lines(page) {
				line = strings.TrimSuffix(line, "\n")
				if n := len([]rune(line)); n > helpWidth || strings.TrimRight(line, " ") != line {
					t.Errorf("%s: a line of %d characters:\n%s", cmd.CommandPath(), n, line)
				}
				if found := manySeconds.FindString(line); found != "" {
					t.Errorf("%s: %s is no duration that people read:\n%s", cmd.CommandPath(), found, line)
				}
			}
		}
	})
}

func sectionsOf(page string) (byTitle map[string][]string, titles []string) {
	byTitle = map[string][]string{}
	title, flag := "", regexp.MustCompile(`^ {2}(?:-\w, | {4})--([a-z0-9-]+)`)
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasSuffix(line, ":") && !strings.HasPrefix(line, " ") {
			title = strings.TrimSuffix(line, ":")
			titles = append(titles, title)
		} else if m := flag.FindStringSubmatch(line); m != nil {
			byTitle[title] = append(byTitle[title], m[1])
		}
	}
	return byTitle, titles
}

func TestHelpGroupsOptionsByTopic(t *testing.T) {
	t.Parallel()
	all, titles := sectionsOf(helpOf(t, "up", "--help-all"))
	short, _ := sectionsOf(helpOf(t, "up", "--help"))
	want := map[string][]string{}
	shown := 0
	for _, o := range config.Options() {
		want[o.Group] = append(want[o.Group], o.Name)
		if o.Essential() {
			shown++
			if !slices.Contains(short[o.Group], o.Name) {
				t.Errorf("'up --help' lacks --%s in %s", o.Name, o.Group)
			}
		}
	}
	for _, topic := range config.Topics() {
		if !slices.Equal(all[topic], want[topic]) {
			t.Errorf("%s is %v, want %v", topic, all[topic], want[topic])
		}
		shown -= len(short[topic])
	}
	if shown != 0 {
		t.Errorf("'up --help' shows %d more options than the essential ones", -shown)
	}
	if topics := titles[len(titles)-len(config.Topics()):]; !slices.Equal(topics, config.Topics()) {
		t.Errorf("the topics are %v", topics)
	}
	if page := helpOf(t, "--help-all"); page != helpOf(t, "up", "--help-all") {
		t.Error("without a command, --help-all shows something else than the options of up")
	}
	if few, _ := sectionsOf(helpOf(t, "status", "--help")); !slices.Contains(few["Flags"], "data-dir") || len(few) != 1 {
		t.Errorf("'status --help' shows %v", few)
	}
	helpOf(t, "check", "a", "b", "c", "--help-all")
}
