package alarms

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/config/yamlfile"
)

// FileName is the file's name in a bundle's root directory.
const FileName = "alarms.yaml"

const maxFile = 64 << 10

// File contains the changes from alarms.yaml and a bundle. The zero value contains none.
type File struct {
	Notify
	NoDashboard bool

	changes map[string]change // by kind or kind/queue
	added   []Alarm           // from the bundle, with names that lack the prefix
	leftOut []string
}

// change changes an alarm. Nil fields leave it unchanged.
type change struct {
	Off                       bool
	Threshold                 *float64
	Period, EvaluationPeriods *int
	DatapointsToAlarm         *int
	MissingData               *string
	Muted                     *bool
	Notify
}

func (c *change) apply(a *Alarm) {
	replace(&a.Threshold, c.Threshold)
	replace(&a.Period, c.Period)
	replace(&a.EvaluationPeriods, c.EvaluationPeriods)
	if c.EvaluationPeriods != nil {
		a.DatapointsToAlarm = min(a.DatapointsToAlarm, a.EvaluationPeriods)
	}

	replace(&a.DatapointsToAlarm, c.DatapointsToAlarm)
	replace(&a.MissingData, c.MissingData)
	replace(&a.Muted, c.Muted)
	a.Notify = c.Notify.or(a.Notify)
}

func replace[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Error contains at least one problem.
type Error struct {
	Problems []yamlfile.Problem
}

// Error returns one line per problem, each followed by its hint.
func (e *Error) Error() string { return yamlfile.Join(e.Problems) }

// Read reads an alarms.yaml. queues contains the environment's queue names. If optional is set, a missing file counts
// as empty. Invalid contents return an [*Error].
func Read(path string, optional bool, queues []string) (*File, error) {
	data, _, err := yamlfile.ReadFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) && optional {
		return &File{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the alarms: %w", err)
	}
	return parse(path, data, queues)
}

func parse(path string, data []byte, queues []string) (*File, error) {
	r := fileReader{path: path, queues: queues, file: &File{changes: map[string]change{}}}
	root, fault := yamlfile.Read(data, &yamlfile.Options{
		PlainOnly: true, MaxBytes: maxFile, MaxTokens: 20000, MaxDepth: 6, Form: "list of alarms",
		HintTooMuch: "one entry for each kind of alarm and queue is enough",
		HintForm:    skeleton,
		HintSyntax:  `write one "key: value" per line, with a space after the colon and no tabs in front`,
	})
	switch {
	case fault != nil:
		r.refuse(fault.Line, fault.Text, fault.Hint)
	case root != nil:
		r.readRoot(root)
	}

	if len(r.problems) > 0 {
		return nil, &Error{r.problems}
	}

	return r.file, nil
}

const skeleton = `write "alarms:" and, indented below it, "queue-age: {threshold: 600}"`

type fileReader struct {
	path     string
	queues   []string
	file     *File
	problems []yamlfile.Problem
}

func (r *fileReader) refuse(line int, text, hint string) {
	r.problems = append(r.problems, yamlfile.Problem{Where: yamlfile.Place(r.path, line, 0), Text: text, Hint: hint})
}

func (r *fileReader) readRoot(n *yamlfile.Node) {
	seen := map[string]bool{}
	for _, p := range n.Pairs {
		if r.refuseRepeated(seen, p) {
			continue
		}
		switch p.Key {
		case "dashboard":
			r.file.NoDashboard = !r.readOn(p)
		case "alarms":
			r.readAlarms(p)
		default:
			if r.readNotify(&r.file.Notify, p) {
				continue
			}
			r.refuse(p.Line, "unknown key "+yamlfile.Shown(p.Key),
				"the keys are alarms, actions, ok_actions, insufficient_data_actions and dashboard")
		}
	}
}

func (r *fileReader) readNotify(n *Notify, p yamlfile.Pair) (known bool) {
	switch p.Key {
	case "actions":
		n.Actions = r.readActions(p)
	case "ok_actions":
		n.OKActions = r.readActions(p)
	case "insufficient_data_actions":
		n.MissingActions = r.readActions(p)
	default:
		return false
	}
	return true
}

func (r *fileReader) refuseRepeated(seen map[string]bool, p yamlfile.Pair) bool {
	if seen[p.Key] {
		r.refuse(p.Line, yamlfile.Shown(p.Key)+" is in the file twice", "delete one of them")
		return true
	}
	seen[p.Key] = true
	return false
}

func (r *fileReader) readAlarms(p yamlfile.Pair) {
	if p.Value.Kind == yamlfile.Null {
		return
	}
	if p.Value.Kind != yamlfile.Mapping {
		r.refuse(p.Line, "alarms is not a map", skeleton)
		return
	}
	seen := map[string]bool{}
	for _, entry := range p.Value.Pairs {
		if !r.refuseRepeated(seen, entry) && r.checkKind(entry) {
			r.file.changes[entry.Key] = r.readChange(entry)
		}
	}
}

func (r *fileReader) checkKind(p yamlfile.Pair) bool {
	kind, queue, ofQueue := strings.Cut(p.Key, "/")
	switch {
	case !slices.Contains(kinds(), kind):
		r.refuse(p.Line, "unknown alarm "+yamlfile.Shown(p.Key), "the alarms are "+strings.Join(kinds(), ", "))
	case ofQueue && (kind == healthKind || kind == leaderKind):
		r.refuse(p.Line, "the alarm "+kind+" does not belong to a queue", "write "+kind)
	case ofQueue && !slices.Contains(r.queues, queue):
		r.refuse(p.Line, "the environment has no queue "+yamlfile.Shown(queue),
			"its queues are "+strings.Join(r.queues, ", "))
	default:
		return true
	}
	return false
}

func (r *fileReader) readChange(entry yamlfile.Pair) (c change) {
	if entry.Value.Kind == yamlfile.Scalar {
		c.Off = !r.readOn(entry)
		return c
	}

	if entry.Value.Kind != yamlfile.Mapping {
		r.refuse(entry.Line, entry.Key+" is neither a map nor off", skeleton)
		return c
	}

	seen := map[string]bool{}
	for _, p := range entry.Value.Pairs {
		if !r.refuseRepeated(seen, p) {
			r.readProperty(&c, p)
		}
	}

	if c.DatapointsToAlarm != nil && (c.EvaluationPeriods == nil || *c.DatapointsToAlarm > *c.EvaluationPeriods) {
		r.refuse(entry.Line, "datapoints_to_alarm is more than evaluation_periods, or is set without it",
			"write evaluation_periods too, with at least the same number")
	}

	return c
}

func (r *fileReader) readProperty(c *change, p yamlfile.Pair) {
	switch p.Key {
	case "threshold":
		v, err := strconv.ParseFloat(p.Value.Text, 64)
		if p.Value.Kind != yamlfile.Scalar || err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			r.refuse(p.Line, "threshold is not a number", "write a number such as 600 or 0.15")
			return
		}
		c.Threshold = &v
	case "period":
		c.Period = r.readInteger(p, 86400, "10, 20, 30 or a multiple of 60 seconds, up to 86400", allowedPeriod)
	case "evaluation_periods":
		c.EvaluationPeriods = r.readInteger(p, 1440, "a whole number from 1 to 1440", nil)
	case "datapoints_to_alarm":
		c.DatapointsToAlarm = r.readInteger(p, 1440, "a whole number from 1 to 1440", nil)
	case "treat_missing_data":
		words := missingWords()
		if !slices.Contains(words, p.Value.Text) {
			r.refuse(p.Line, "invalid treat_missing_data", "use "+strings.Join(words, ", "))
			return
		}
		c.MissingData = &p.Value.Text
	case "actions_enabled":
		muted := !r.readOn(p)
		c.Muted = &muted
	default:
		if r.readNotify(&c.Notify, p) {
			return
		}
		r.refuse(p.Line, "unknown property "+yamlfile.Shown(p.Key), "the properties are threshold, period, "+
			"evaluation_periods, datapoints_to_alarm, treat_missing_data, actions_enabled, actions, ok_actions and "+
			"insufficient_data_actions")
	}
}

func missingWords() []string { return []string{"missing", notBreaching, breaching, "ignore"} }

func allowedPeriod(n int) bool { return n == 10 || n == 20 || n == 30 || n%60 == 0 }

func (r *fileReader) readInteger(p yamlfile.Pair, most int, allowed string, ok func(int) bool) *int {
	n, err := strconv.Atoi(p.Value.Text)
	inRange := p.Value.Kind == yamlfile.Scalar && err == nil && n >= 1 && n <= most
	if !inRange || ok != nil && !ok(n) {
		r.refuse(p.Line, p.Key+" is out of range", "use "+allowed)
		return nil
	}
	return &n
}

func (r *fileReader) readOn(p yamlfile.Pair) bool {
	switch strings.ToLower(p.Value.Text) {
	case "on", "true", "yes":
		return true
	case "off", "false", "no":
	default:
		r.refuse(p.Line, p.Key+" is neither on nor off", "write on or off")
	}
	return false
}

// maxActions is CloudWatch's limit per state.
const maxActions = 5

// readActions never returns nil, because an empty list removes the actions.
func (r *fileReader) readActions(p yamlfile.Pair) []string {
	found := []string{}
	items := p.Value.Items
	if p.Value.Kind == yamlfile.Scalar {
		items = []*yamlfile.Node{p.Value}
	}
	for _, item := range items {
		if item.Kind != yamlfile.Scalar || CheckAction(item.Text) != nil {
			r.refuse(item.Line, "this action is not an ARN", "use one such as "+exampleARN)
			continue
		}
		found = append(found, item.Text)
	}
	if len(found) > maxActions {
		r.refuse(p.Line, fmt.Sprintf("%s has more than %d actions", p.Key, maxActions), "use one topic for several receivers")
	}
	return found
}

const exampleARN = "arn:aws:sns:eu-west-1:123456789012:on-call"

// CheckAction returns an error if text is not an ARN.
func CheckAction(text string) error {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || parts[1] == "" || parts[2] == "" || parts[5] == "" ||
		strings.ContainsAny(text, " \t\r\n") {
		return fmt.Errorf("invalid action %q: use the ARN of an SNS topic, such as %s", text, exampleARN)
	}
	return nil
}
