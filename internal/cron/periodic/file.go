package periodic

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"tendril/internal/config/yamlfile"
)

const maxTasks = 1000

// File is the content of a cron.yaml.
type File struct {
	Tasks    []Task
	Warnings []Problem
}

// ParseFile parses a cron.yaml: the version, 1, and a list of tasks under the key cron. Errors are [*Error]. Unknown
// keys are warnings.
func ParseFile(name string, data []byte) (*File, error) {
	r := &reader{file: name}
	f := &File{}
	if root := r.parse(data); root != nil {
		f.Tasks = r.readFile(root)
	}
	f.Warnings = r.warnings
	if len(r.problems) == 0 {
		return f, nil
	}

	if line := tasksWithoutKey(data); line > 0 {
		// Elastic Beanstalk's documentation omitted this key in 2015.
		r.problems, r.label = nil, ""
		r.refuse(line, "cron", `the key "cron" is missing above the tasks`,
			`write "cron:" on a line of its own above the first task`)
	}
	return nil, &Error{Problems: r.problems}
}

var (
	cronLine = regexp.MustCompile(`(?m)^["']?cron["']?\s*:`)
	taskLine = regexp.MustCompile(`(?m)^\s*-\s+["']?(name|url|schedule)["']?\s*:`)
)

func tasksWithoutKey(data []byte) int {
	at := taskLine.FindIndex(data)
	if at == nil || cronLine.Match(data) {
		return 0
	}
	return 1 + bytes.Count(data[:at[1]], []byte("\n"))
}

func (r *reader) readFile(root *yamlfile.Node) []Task {
	seen := map[string]int{}
	var list *yamlfile.Pair
	for i := range root.Pairs {
		pair := &root.Pairs[i]
		key, line := pair.Key, pair.Line
		switch {
		case !r.checkUnique(seen, key, line):
		case key == "version":
			r.checkVersion(pair)
		case key == "cron":
			list = pair
		default:
			r.warn(line, key, yamlfile.Shown(key)+" is unknown and was ignored", "the file has the keys version and cron")
		}
	}

	if seen["version"] == 0 {
		r.refuse(root.Line, "version", "no version", `write "version: 1" above the tasks`)
	}

	if list == nil {
		r.refuse(root.Line, "cron", "no list of tasks",
			`write "cron:" and below it one "- name: ..." for each task`)
		return nil
	}
	return r.readTasks(list)
}

func (r *reader) checkUnique(seen map[string]int, key string, line int) bool {
	if first := seen[key]; first > 0 {
		r.refuse(line, key, fmt.Sprintf("%s is set twice, first on line %d", yamlfile.Shown(key), first),
			"keep one of them")
		return false
	}
	seen[key] = line
	return true
}

func (r *reader) checkVersion(pair *yamlfile.Pair) {
	text, ok := scalar(pair.Value)
	if !ok {
		text = "this"
	}
	if strings.TrimSpace(text) != "1" {
		r.refuse(pair.Line, "version", yamlfile.Shown(text)+" is not a known version", `write "version: 1"`)
	}
}

func (r *reader) readTasks(pair *yamlfile.Pair) []Task {
	list := pair.Value
	switch {
	case list.Kind == yamlfile.Null, list.Kind == yamlfile.Sequence && len(list.Items) == 0:
		r.warn(pair.Line, "cron", "no tasks", "")
		return nil
	case list.Kind != yamlfile.Sequence:
		r.refuse(pair.Line, "cron", "cron is not a list", `write one "- name: ..." per task, with the "-"`)
		return nil
	}

	var tasks []Task
	names := map[string]int{}
	for i, node := range list.Items {
		if i == maxTasks {
			r.refuse(node.Line, "cron", fmt.Sprintf("there are more than %d tasks", maxTasks),
				"combine several tasks into one")
			break
		}
		r.label = taskLabel(node, i+1)
		t, ok := r.readTask(node)
		r.label = ""
		if !ok {
			continue
		}

		if first := names[t.Name]; t.Name != "" && first > 0 {
			r.refuse(t.Line, "name", fmt.Sprintf("two tasks have the name %s, the first is on line %d",
				yamlfile.Shown(t.Name), first), "names must be unique")
		} else {
			names[t.Name] = t.Line
		}
		tasks = append(tasks, t)
	}
	return tasks
}

func taskLabel(node *yamlfile.Node, number int) string {
	for _, pair := range node.Pairs {
		if name, ok := scalar(pair.Value); ok && pair.Key == "name" && strings.TrimSpace(name) != "" &&
			checkName(name) == nil {
			return yamlfile.Shown(name)
		}
	}
	return fmt.Sprintf("number %d", number)
}

func (r *reader) readTask(node *yamlfile.Node) (t Task, ok bool) {
	if node.Kind != yamlfile.Mapping {
		r.refuse(node.Line, "cron", "this item is not a task",
			"write name, url and schedule below it, each on a line of its own")
		return Task{}, false
	}
	t = Task{Line: node.Line}
	keys := taskReader{reader: r, task: &t, lines: map[string]int{}}
	for i := range node.Pairs {
		if pair := &node.Pairs[i]; r.checkUnique(keys.lines, pair.Key, pair.Line) {
			keys.readPair(pair)
		}
	}
	keys.finish()
	return t, true
}
