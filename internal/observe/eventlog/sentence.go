package eventlog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"tendril/internal/observe/event"
)

// Sentence returns a sentence such as "owner paused queue payments", and the other fields, without an action's method,
// path and status.
func (e *Event) Sentence() (text string, rest map[string]string) {
	f := fields(maps.Clone(e.Fields))
	if action := f.take("action"); action != "" {
		text = f.actionText(action, e.Text == rejectedText)
	} else if strings.HasPrefix(e.Text, "messages ") && f["messages"] != "" {
		text = f.messagesText(e.Text)
	} else {
		text = f.changeText(e.Text)
	}
	reason := f.take("reason")
	if reason == "" {
		reason = f.take("err")
	}
	if reason != "" {
		text += ": " + reason
	}
	return text, f
}

type fields map[string]string

func (f fields) take(name string) string {
	value := f[name]
	delete(f, name)
	return value
}

func (f fields) actionText(action string, rejected bool) string {
	for _, name := range []string{"method", "path", "status"} {
		delete(f, name)
	}
	who := cmp.Or(f.take("who"), "a caller without a token")
	return actionSentence(who, action, f.take("subject"), f.take("messages"), rejected)
}

func (f fields) messagesText(text string) string {
	text = counted(f.take("messages")) + strings.TrimPrefix(text, "messages")
	if queue := f.take("queue"); queue != "" {
		text += " from " + queue
	}
	return text
}

func (f fields) changeText(text string) string {
	if noun, verb, _ := strings.Cut(text, " "); f[noun] != "" {
		text = noun + " " + f.take(noun) + " " + verb
	}
	if f["version"] != "" {
		if verb, found := strings.CutPrefix(text, "deployment "); found {
			text = "deployment of version " + f.take("version") + " " + verb
		} else if verb, found := strings.CutPrefix(text, "new version "); found {
			text = "version " + f.take("version") + " " + verb
		}
	}
	if was := f.take("was"); was != "" {
		text += " from " + was + " to " + f.take("status")
	}
	return text
}

const rejectedText = "console action rejected"

var prepositions = map[string]string{"sent": "to", "moved": "from", "received": "from"}

var articles = map[string]string{
	"app": "the app", "deployment": "the deployment", "settings": "the settings", "settings change": "a settings change",
	"login link": "a login link", "drain": "a drain", "redrive": "a redrive", "task run": "a run of task",
}

func actionSentence(who, action, subject, messages string, rejected bool) string {
	words := strings.Fields(action)
	at := slices.IndexFunc(words, isVerb)
	if at < 0 {
		return strings.TrimSuffix(who+": "+action+", "+subject, ", ")
	}

	verb := strings.Trim(words[at], ",")
	object := strings.Join(words[:at], " ")
	if object == "messages" && messages != "" {
		object, messages = counted(messages), ""
	}
	if !rejected {
		object = cmp.Or(articles[object], object)
	}
	if subject != "" {
		switch words[0] {
		case "queue", "task", "process", "message":
			object += " " + subject
		default:
			object += " " + cmp.Or(prepositions[verb], "in") + " " + subject
		}
	}

	parts := []string{who, verb, object}
	if rejected {
		parts = []string{who + ":", object, "not", verb}
	}
	text := strings.Join(append(parts, words[at+1:]...), " ")
	if messages != "" && words[0] != "message" {
		text += " (" + counted(messages) + ")"
	}
	return text
}

func isVerb(word string) bool {
	return strings.HasSuffix(strings.Trim(word, ","), "ed") || strings.HasPrefix(word, "read") || word == "sent"
}

func counted(messages string) string {
	if messages == "1" {
		return "1 message"
	}
	return messages + " messages"
}

const causedWithin = 2 * time.Second

// OnePerAction merges the events of one action. events must be newest first.
func OnePerAction(events []Event) []Event {
	var kept []Event
	for i := range events {
		e := events[i]
		if action := findAction(kept, &e); action != nil {
			if reason := e.Fields["reason"]; reason != "" && action.Fields["reason"] == "" {
				action.Fields = maps.Clone(action.Fields)
				action.Fields["reason"] = reason
			}
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

func findAction(later []Event, e *Event) *Event {
	for i := range slices.Backward(later) {
		if later[i].At.Sub(e.At) > causedWithin {
			break
		}
		if SameAction(e, &later[i]) {
			return &later[i]
		}
	}
	return nil
}

// SameAction reports whether action, which is recorded later, caused the pause or resume in change.
func SameAction(change, action *Event) bool {
	isAct := action.Kind == string(event.Act) && action.Text != rejectedText
	if !isAct || change.Kind != string(event.Pause) || action.At.Sub(change.At) > causedWithin {
		return false
	}

	noun, _, _ := strings.Cut(change.Text, " ")
	isSame := action.Fields["action"] == change.Text && action.Fields["subject"] == change.Fields[noun]
	isAll := action.Fields["action"] == "all "+strings.Replace(change.Text, "queue", "queues", 1)
	return isSame || isAll
}
