package web

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"tendril/console"
)

var messageScreens = []screen{{path: "/messages/{id}", entry: "Queues", view: "message", load: (*visit).message}}

var messageActs = []act{
	{"/messages/{id}/delete", func(v *visit) (string, error) {
		n, err := v.api.Delete(v.ctx, v.field("queue"), []string{v.name("id")})
		if err == nil && n == 0 {
			return "", &console.Error{Status: http.StatusNotFound, Message: "the message is gone already"}
		}
		return "The message was deleted.", err
	}},
}

// messagePage is one message and the forms in which its body can be seen.
type messagePage struct {
	console.Message
	Forms    []choice
	Text     string // the body in the form that was chosen
	Form     string
	MaxTries int // receives before it is dead-lettered; 0 without a dead-letter queue
	Dead     bool
	// Curl and Send are commands that post the body to the app, and put it into the queue again.
	Curl, Send string
}

func (v *visit) message() (any, error) {
	m, err := v.findMessage(v.query("queue"), v.name("id"))
	if err != nil {
		return nil, err
	}
	v.title = "Message " + m.ID
	page := &messagePage{Message: m, Form: v.query("as")}
	indented := new(bytes.Buffer)
	isJSON := json.Indent(indented, []byte(m.Body), "", "  ") == nil
	if page.Form == "" && isJSON {
		page.Form = "json"
	}
	switch page.Form {
	case "json":
		page.Text = indented.String() // numbers as they were written
	case "hex":
		page.Text = hex.Dump([]byte(m.Body))
	default:
		page.Form, page.Text = "raw", m.Body
	}
	for _, form := range []struct {
		name, label string
		offered     bool
	}{{"json", "JSON", isJSON}, {"raw", "Text", true}, {"hex", "Hex", true}} {
		if form.offered {
			page.Forms = append(page.Forms, choice{Label: form.label, Path: v.with("as", form.name),
				Chosen: page.Form == form.name})
		}
	}
	page.Dead = deadLetterQueues(v.status.Queues)[m.Queue]
	target := ""
	for _, q := range v.status.Queues {
		if q.Name == m.Queue {
			page.MaxTries = q.MaxReceives
		}
	}
	for _, w := range v.status.Workers {
		if w.Queue == m.Queue || target == "" {
			target = w.Target
		}
	}
	if u, err := url.Parse(target); err == nil && strings.HasPrefix(u.Scheme, "http") {
		page.Curl = "curl -i --data-binary " + quoted(m.Body) + " " + quoted(target)
	}
	page.Send = "tendril send --queue " + quoted(m.Queue) + " " + quoted(m.Body)
	return page, nil
}

// findMessage returns a message of one queue, or of whichever has it when name is "".
func (v *visit) findMessage(name, id string) (m console.Message, err error) {
	if name != "" {
		return v.api.Message(v.ctx, name, id)
	}
	for _, q := range v.status.Queues {
		m, err = v.api.Message(v.ctx, q.Name, id)
		refused := (*console.Error)(nil)
		if err == nil || !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
			return m, err
		}
	}
	return m, &console.Error{Status: http.StatusNotFound, Message: "there is no message " + id,
		Hint: "it was delivered, deleted or has expired"}
}

// quoted is a text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
