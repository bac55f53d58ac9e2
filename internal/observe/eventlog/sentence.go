package eventlog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"tendril/internal/observe/event"
)

// Sentence returns a sentence such as "owner paused queue payments". rest contains the remaining fields, except a
// console action's method, path and status.
func (e *Event) Sentence() (text string, rest map[string]string) {
	rest = maps.Clone(e.Fields)
	take := func(name string) string {
		value := rest[name]
		delete(rest, name)
		return value
	}

	switch action := take("action"); {
	case action != "":
		text = actionSentence(cmp.Or(take("who"), "a caller without a token"), action, take("subject"), take("messages"),
			e.Text == rejectedText)
		for _, name := range []string{"method", "path", "status"} {
			delete(rest, name)
		}
	case strings.HasPrefix(e.Text, "messages ") && rest["messages"] != "":
		text = counted(take("messages")) + strings.TrimPrefix(e.Text, "messages")
		if queue := take("queue"); queue != "" {
			text += " from " + queue
		}
	default:
		text = e.Text
		if noun, verb, _ := strings.Cut(text, " "); rest[noun] != "" {
			text = noun + " " + take(noun) + " " + verb
		}
		if was := take("was"); was != "" {
			text += " from " + was + " to " + take("status")
		}
	}
	if reason := cmp.Or(take("reason"), take("err")); reason != "" {
		text += ": " + reason
	}
	return text, rest
}

const rejectedText = "console action rejected"

var prepositions = map[string]string{"sent": "to", "moved": "from", "received": "from"}

func actionSentence(who, action, subject, messages string, rejected bool) string {
	words := strings.Fields(action)
	at := slices.IndexFunc(words, func(word string) bool {
		return strings.HasSuffix(strings.Trim(word, ","), "ed") || strings.HasPrefix(word, "read") || word == "sent"
	})
	if rejected || at < 0 {
		text := who + ": " + action
		if subject != "" {
			text += ", " + subject
		}
		if rejected {
			text += ", failed"
		}
		return text
	}

	verb := strings.Trim(words[at], ",")
	object := strings.Join(words[:at], " ")
	rest := words[at+1:]
	if object == "messages" && messages != "" {
		object, messages = counted(messages), ""
	}

	if subject != "" {
		switch words[0] {
		case "queue", "task", "process", "message":
			object += " " + subject
		default:
			object += " " + cmp.Or(prepositions[verb], "in") + " " + subject
		}
	}

	text := strings.Join(append([]string{who, verb, object}, rest...), " ")
	if messages != "" && words[0] != "message" {
		text += " (" + counted(messages) + ")"
	}

	return text
}

func counted(messages string) string {
	if messages == "1" {
		return "1 message"
	}
	return messages + " messages"
}

const causedWithin = 2 * time.Second

// OnePerAction merges events that repeat an action into it. The events must be newest first.
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
	noun, _, _ := strings.Cut(e.Text, " ")
	for i := range slices.Backward(later) {
		a := &later[i]
		if a.At.Sub(e.At) > causedWithin {
			break
		}
		isSame := a.Fields["action"] == e.Text && a.Fields["subject"] == e.Fields[noun]
		isAll := a.Fields["action"] == "all "+strings.Replace(e.Text, "queue", "queues", 1)
		if a.Kind == string(event.Act) && a.Text != rejectedText && e.Kind == string(event.Pause) && (isSame || isAll) {
			return a
		}
	}
	return nil
}
