package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tendril/internal/cli"
	"tendril/internal/cli/base"
)

func docs(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	add := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages[path] = string(text)
	}
	add("../../README.md")
	for _, dir := range []string{"../../docs", "../../examples"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".md") {
				add(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pages
}

var typed = regexp.MustCompile("(?m)(?:^    |^|`|[|] )(?:go run \\./cmd/)?tendril ((?:[a-z]|--)[^`\n]*)")

func TestDocumentedCommandsExist(t *testing.T) {
	t.Parallel()
	found := 0
	for page, text := range docs(t) {
		for _, m := range typed.FindAllStringSubmatch(code(text), -1) {
			found++
			if problem := tryCommand(words(m[1])); problem != "" {
				t.Errorf("%s: tendril %s: %s", page, m[1], problem)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d command lines were found: the pattern misses them", found)
	}
}

var (
	linkTarget  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingLine = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages := docs(t)
	anchors := map[string]map[string]bool{}
	for path, text := range pages {
		anchors[path] = map[string]bool{}
		for _, m := range headingLine.FindAllStringSubmatch(text, -1) {
			name := notInAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
			anchors[path][strings.ReplaceAll(name, " ", "-")] = true
		}
	}
	found := 0
	for path, text := range pages {
		for _, m := range linkTarget.FindAllStringSubmatch(text, -1) {
			file, anchor, hasAnchor := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			found++
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			} else if hasAnchor && strings.HasSuffix(target, ".md") && anchors[target] != nil && !anchors[target][anchor] {
				t.Errorf("%s links to %s: there is no such heading", path, m[1])
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d links were found: the pattern misses them", found)
	}
}

func TestListOfPagesIsComplete(t *testing.T) {
	t.Parallel()
	pages := docs(t)
	for path := range pages {
		name := filepath.Base(path)
		if filepath.Dir(path) == "../../docs" && name != "README.md" &&
			!strings.Contains(pages["../../docs/README.md"], "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

func code(page string) string {
	var kept []string
	fenced := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    ") || strings.Contains(line, "`tendril "):
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func words(line string) []string {
	var out []string
	for _, w := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		if w == "#" || w == "|" || w == ">" || w == "…" || w == "..." || w == "&" {
			break
		}
		out = append(out, strings.Trim(w, "'"))
	}
	return out
}

func tryCommand(args []string) string {
	c := &base.CLI{In: strings.NewReader(""), Out: new(bytes.Buffer), Err: new(bytes.Buffer)}
	root := cli.NewRoot(c)
	if len(args) > 0 && args[0] == "completion" {
		return ""
	}
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err.Error()
	}
	if cmd == root && (len(rest) == 0 || !strings.HasPrefix(rest[0], "--")) {
		return "there is no such subcommand"
	}
	cmd.Flags().SetInterspersed(true)
	cmd.InitDefaultHelpFlag()
	if cmd == root {
		cmd.InitDefaultVersionFlag()
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if cmd.HasSubCommands() && cmd != root && cmd.ValidateArgs(cmd.Flags().Args()) != nil {
		return "there is no such subcommand of " + cmd.Name()
	}
	return ""
}
