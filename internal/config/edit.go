package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/config/yamlfile"
)

// EditedLine is a line that an edit removed or added.
type EditedLine = yamlfile.EditedLine

// Edited is an edited settings file that has not been written to disk.
type Edited struct {
	File File
	// Lines are in file order, with secrets redacted.
	Lines []EditedLine
}

// EditFile changes options in a settings file, preserving comments, order and formatting. The keys of set are option
// names, or "NAME of QUEUE"; nil removes the option. Values are not validated; see [Sources.File]. The error is an
// [*Error].
func EditFile(file File, set map[string]*string) (*Edited, error) {
	if entries, _ := parseDocument(file.Path, file.Data); isDaemonFile(file.Path, entries) {
		return nil, &Error{Problems: []Problem{{Where: file.Path, Text: "this is a settings file of aws-sqsd, which " +
			"tendril does not change", Hint: "edit it by hand, or use a tendril.yaml with --config"}}}
	}

	e := fileEditor{file: file, options: table(&Settings{})}
	e.root, _ = yamlfile.Read(file.Data, fileForm()) // Apply reports the errors
	for _, name := range slices.Sorted(maps.Keys(set)) {
		e.add(name, set[name])
	}
	if len(e.problems) > 0 {
		return nil, &Error{Problems: e.problems}
	}

	data, lines, fault := yamlfile.Apply(file.Data, fileForm(), e.edits)
	if fault != nil {
		return nil, &Error{Problems: []Problem{{Where: yamlfile.Place(file.Path, fault.Line, 0), Text: fault.Text,
			Hint: fault.Hint}}}
	}

	for i := range lines {
		lines[i].Text = redactLine(lines[i].Text, e.secretKeys[lines[i].Edit])
	}
	return &Edited{File{file.Path, data, file.Shared}, lines}, nil
}

type fileEditor struct {
	file    File
	root    *yamlfile.Node
	options []*Option

	edits      []yamlfile.Edit
	secretKeys []string // of each edit; "" if its value is not secret
	problems   []Problem
}

func (e *fileEditor) add(name string, value *string) {
	path, o, problem := e.place(name)
	if problem != nil {
		e.problems = append(e.problems, *problem)
		return
	}

	secretKey := ""
	if o.IsSecret() {
		secretKey = path[len(path)-1]
	}
	e.edits = append(e.edits, yamlfile.Edit{Path: path, Value: value})
	e.secretKeys = append(e.secretKeys, secretKey)
}

func (e *fileEditor) place(name string) ([]string, *Option, *Problem) {
	option, queue, ofOne := strings.Cut(name, ofOneQueue)
	if ofOne {
		return e.placeOfQueue(name, option, queue)
	}

	o := findByName(e.options, option)
	if o == nil {
		return nil, nil, unknownOptionProblem(name, option)
	}
	if o.Key == "" {
		return nil, nil, &Problem{Option: o.Name, Text: "the settings file cannot name itself", Hint: o.Lock(Origin{})}
	}

	if o.Key == queuesKey && len(e.queues()) > 0 {
		return nil, nil, &Problem{Where: e.file.Path, Option: o.Name,
			Text: "the queues have their own settings in this file",
			Hint: "use 'http-path of NAME', or edit the file by hand"}
	}

	if name := e.beanstalkKey(o); name != "" {
		return []string{sqsdSection, name}, o, nil
	}
	return []string{o.Key}, o, nil
}

func unknownOptionProblem(name, option string) *Problem {
	return &Problem{Option: name, Text: UnknownOption(option).Error(), Hint: "'tendril config show' lists them"}
}

func (e *fileEditor) beanstalkKey(o *Option) string {
	if e.root == nil {
		return ""
	}
	section := e.root.Get(sqsdSection)
	if section == nil {
		return ""
	}
	for _, name := range o.workerNames() {
		if section.Get(name) != nil {
			return name
		}
	}
	return ""
}

func (e *fileEditor) queues() (maps []*yamlfile.Node) {
	if e.root == nil {
		return nil
	}
	if list := e.root.Get(queuesKey); list != nil && slices.ContainsFunc(list.Items, isMap) {
		return list.Items
	}
	return nil
}

func (e *fileEditor) placeOfQueue(name, option, queue string) ([]string, *Option, *Problem) {
	refuse := func(text, hint string) ([]string, *Option, *Problem) {
		return nil, nil, &Problem{Where: e.file.Path, Option: name, Text: text, Hint: hint}
	}
	key := strings.ReplaceAll(option, "-", "_")
	o := findByKey(queueKeys(&QueueSettings{}), key)
	switch {
	case o != nil && key != "weight" && key != "max":
		return refuse(shown(name)+" cannot be changed by a command or in the console: it decides which queue this is",
			`edit this queue's "`+key+`" under "`+queuesKey+`" in the settings file`)
	case o == nil:
		o = findByName(e.options, option)
		if o == nil {
			return nil, nil, unknownOptionProblem(name, option)
		}
		if !o.PerQueue {
			return refuse(shown(option)+" is not a per-queue setting", "it applies to all queues: remove \" of "+queue+"\"")
		}
	}

	if e.file.Shared {
		return []string{o.Key + ofOneQueue + queue}, o, nil
	}
	for number, item := range e.queues() {
		if isMap(item) && queueOf(item) == queue {
			return []string{queuesKey, strconv.Itoa(number), o.Key}, o, nil
		}
	}

	return refuse("the queue "+shown(queue)+" has no settings of its own in this file",
		"add '- name: "+queue+"' below "+queuesKey+", or set "+option+" for all queues")
}

func queueOf(item *yamlfile.Node) string {
	for _, key := range []string{"name", "url", "arn"} {
		if n := item.Get(key); n != nil {
			return lastSegment(n.Text)
		}
	}
	return ""
}

func redactLine(line, secretKey string) string {
	key, _, found := strings.Cut(line, ":")
	switch {
	case secretKey != "" && found && strings.Trim(key, " \"'") == secretKey:
		return key + ": " + hidden
	case secretKey != "": // a further line of the value
		return hidden
	}

	line = WithoutQuery(line)
	_, value, found := strings.Cut(line, ":")
	if text := strings.TrimSpace(value); found && withoutSecret(text) == hidden {
		return key + ": " + hidden
	}
	return withoutSecret(line)
}
