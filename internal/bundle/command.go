package bundle

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tendril/internal/config/yamlfile"
)

const maxCommands = 200

// Command is an entry of container_commands or commands. Exactly one of Argv and Shell is set.
type Command struct {
	Name  string
	Argv  []string
	Shell string
	// Dir is absolute, starts with "~", or is relative to the default directory; "" is the default directory.
	Dir string
	CommandRules
	Place
}

// CommandRules determine how a command is run.
type CommandRules struct {
	// Env contains NAME=VALUE. A container command adds it to the environment; a machine command replaces the
	// environment.
	Env []string
	// Test must succeed for the command to run; may be "".
	Test string
	// LeaderOnly commands run on one instance for each version. Elastic Beanstalk then ignores the test, so Test is
	// "".
	LeaderOnly   bool
	IgnoreErrors bool
}

// Text returns the command with its conditions, on one line. A command that may contain a password is hidden.
func (c *Command) Text() string {
	text := HideSecret("", strings.ReplaceAll(cmp.Or(c.Shell, strings.Join(c.Argv, " ")), "\n", "; "))
	if c.LeaderOnly {
		text += ", on one instance"
	}
	if c.Test != "" {
		text += ", after its test"
	}
	if c.IgnoreErrors {
		text += ", errors ignored"
	}
	return text
}

// FolderOf returns the command's working directory; usual is the default.
func (c *Command) FolderOf(usual string) string {
	below, isHome := strings.CutPrefix(c.Dir, "~")
	switch {
	case isHome && (below == "" || below[0] == '/'):
		home, err := os.UserHomeDir()
		if err != nil {
			home = "/"
		}
		return filepath.Join(home, below)
	case filepath.IsAbs(c.Dir):
		return c.Dir
	}
	return filepath.Join(usual, c.Dir)
}

func (d *document) readCommands(section yamlfile.Pair) (commands []Command) {
	for _, p := range d.entries(section) {
		if c, ok := d.readCommand(section.Key, p); ok {
			commands = append(commands, c)
		}
	}
	slices.SortStableFunc(commands, func(a, b Command) int { return cmp.Compare(a.Name, b.Name) })
	return commands
}

func (d *document) entries(section yamlfile.Pair) []yamlfile.Pair {
	n := section.Value
	switch {
	case n.Kind == yamlfile.Null:
		return nil
	case n.Kind != yamlfile.Mapping:
		d.refuseKey(section, `write "name:" and, indented below it, "key: value"`,
			"%s is not a map of names", section.Key)
		return nil
	case len(n.Pairs) > maxCommands:
		d.refuseKey(section, "combine several into one script",
			"%s has more than %d entries", section.Key, maxCommands)
		return nil
	}

	return n.Pairs
}

func (d *document) readCommand(section string, p yamlfile.Pair) (c Command, ok bool) {
	e := d.entry(section, p)
	c = Command{Name: p.Key, Place: e.place(p)}
	refuse := func() (Command, bool) {
		d.refuseKey(p, `write "command: ..." below it`, "%s %s has no command", section, yamlfile.Printable(p.Key))
		return c, false
	}
	if p.Key == "" || p.Value.Kind != yamlfile.Mapping {
		return refuse()
	}

	known := keys{
		"waitAfterCompletion": nil, // only on Windows
		"command":             func(v yamlfile.Pair) { c.Argv, c.Shell = e.program(v) },
		"env":                 into(&c.Env, e.variables),
		"cwd":                 into(&c.Dir, e.text),
		"test":                into(&c.Test, e.text),
		"ignoreErrors":        into(&c.IgnoreErrors, e.flag),
	}
	if section == "container_commands" {
		known["leader_only"] = into(&c.LeaderOnly, e.flag)
	}
	e.readKeys(p, known)

	if c.LeaderOnly {
		c.Test = ""
	}

	switch {
	case !e.isValid():
		return c, false
	case len(c.Argv) == 0 && c.Shell == "":
		return refuse()
	}

	return c, true
}

type entryReader struct {
	document         *document
	section, name    string
	refused, leftOut bool
}

// Computed values are read as empty, so they are not checked.
func (e *entryReader) refuse(p yamlfile.Pair, hint, what string) {
	if e.leftOut {
		return
	}
	e.refused = true
	e.document.refuseKey(p, hint, "%s of %s %s %s", yamlfile.Printable(p.Key), e.section, yamlfile.Printable(e.name),
		what)
}

// Unknown keys are ignored with a finding, but misspelled ones are rejected.
func (e *entryReader) unknown(p yamlfile.Pair, known keys) {
	for name, read := range known {
		if read != nil && plainName(name) == plainName(p.Key) {
			e.refuse(p, "write "+name, "is misspelled")
			return
		}
	}
	e.document.notUsed(p.Line, "%s is not a key of %s: it is ignored (%s)", yamlfile.Printable(p.Key), e.section,
		yamlfile.Printable(e.name))
}

func (e *entryReader) skipComputed(p yamlfile.Pair) bool {
	if !fromCloudFormation(p.Value) {
		return false
	}
	e.leaveComputedOut(p)
	return true
}

func (e *entryReader) leaveComputedOut(p yamlfile.Pair) {
	if !e.leftOut {
		e.document.notUsed(p.Line, "%s of %s %s is computed by CloudFormation and unknown here, so the entry is left "+
			"out; write the value itself", yamlfile.Printable(p.Key), e.section, yamlfile.Printable(e.name))
	}
	e.leftOut = true
}

func (e *entryReader) text(p yamlfile.Pair) string { return strings.TrimSpace(e.untrimmedText(p)) }

func (e *entryReader) untrimmedText(p yamlfile.Pair) string {
	switch {
	case e.skipComputed(p):
	case p.Value.Kind == yamlfile.Mapping || p.Value.Kind == yamlfile.Sequence:
		e.refuse(p, "write text", "is not plain text")
	case strings.ContainsRune(p.Value.Text, 0):
		e.refuse(p, "put it into a script", "contains a NUL byte")
	default:
		return p.Value.Text
	}
	return ""
}

func (e *entryReader) flag(p yamlfile.Pair) bool {
	switch strings.ToLower(e.text(p)) {
	case "true", "yes", "on", "1":
		return true
	case "false", "no", "off", "0", "":
	default:
		e.refuse(p, "write true or false", "is neither true nor false")
	}
	return false
}

func (e *entryReader) list(p yamlfile.Pair) (texts []string) {
	if p.Value.Kind != yamlfile.Sequence {
		if text := e.text(p); text != "" {
			texts = append(texts, text)
		}
		return texts
	}
	for _, item := range p.Value.Items {
		one := p
		one.Value = item
		texts = append(texts, e.text(one))
	}
	return texts
}

func (e *entryReader) program(p yamlfile.Pair) (argv []string, shell string) {
	if p.Value.Kind != yamlfile.Sequence {
		return nil, e.text(p)
	}
	if argv = e.list(p); len(argv) == 0 || argv[0] == "" {
		e.refuse(p, "write the program first, then its arguments", "names no program")
	}
	return argv, ""
}

func (e *entryReader) variables(p yamlfile.Pair) (env []string) {
	switch p.Value.Kind {
	case yamlfile.Null:
		return nil
	case yamlfile.Mapping:
	default:
		e.refuse(p, `write "NAME: value" below it`, "is not a map of variables")
		return nil
	}

	if e.skipComputed(p) {
		return nil
	}

	for _, v := range p.Value.Pairs {
		if v.Key == "" || strings.ContainsAny(v.Key, "=\x00\r\n") {
			e.refuse(v, `use letters, digits and "_"`, "is not a valid variable name")
			continue
		}
		env = append(env, v.Key+"="+e.untrimmedText(v))
	}

	return env
}
