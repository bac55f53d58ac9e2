package web

import (
	"encoding/json"
	"strconv"
	"strings"

	"tendril/api"
	"tendril/queue"
)

var queueScreens = []screen{
	{path: "/queues", entry: "Queues", view: "queues", load: func(v *visit) (any, error) { return withoutDead(v.queueRows()), nil }},
	{path: "/queues/{name}", entry: "Queues", view: "queue", load: (*visit).loadQueue},
}

var queueActs = []act{
	{"/queues/{name}/pause", (*visit).pause},
	{"/queues/{name}/resume", (*visit).resume},
	{"/queues/{name}/send", (*visit).send},
	{"/queues/{name}/purge", (*visit).purge},
	{"/queues/{name}/delete", func(v *visit) (string, error) {
		n, err := v.api.DeleteQueue(v.ctx, v.name("name"), v.field("confirm"))
		return v.name("name") + " was deleted with " + plural(n, "message") + ".", err
	}},
}

func (v *visit) pause() (string, error) {
	name := v.name("name")
	answer, err := v.api.Pause(v.ctx, name, api.Reason{Reason: v.field("reason")})
	return pausedText(name, "paused", answer) + " Messages in flight will finish.", err
}

func (v *visit) resume() (string, error) {
	name := v.name("name")
	answer, err := v.api.Resume(v.ctx, name, api.Reason{})
	return pausedText(name, "resumed", answer), err
}

func pausedText(name, change string, answer api.Paused) string {
	text := name + " is " + change
	if name == "" {
		text = "All queues are " + change
	}
	if answer.Revision > 0 {
		text += " on this instance, and on the others within half a minute; Instances shows which have applied it"
	}
	return text + "."
}

const pageSize = 50

type queuePage struct {
	Queue    queueRow
	Filter   api.Filter
	States   []choice
	Range    string
	Ranges   []choice
	Messages []api.Message
	First    string
	Next     string
}

type choice struct {
	Label, Path string
	Chosen      bool
	N           int64
}

func (v *visit) loadQueue() (any, error) {
	name := v.name("name")
	page := &queuePage{Filter: api.Filter{State: v.query("state"), After: v.query("after"), Limit: pageSize,
		Selection: api.Selection{Match: v.query("match")}}}
	v.title = name
	page.Range, page.Ranges = v.ranges()
	for _, row := range v.queueRows() {
		if row.Name == name {
			page.Queue = row
		}
	}

	switch {
	case page.Queue.Name == "":
		return nil, errNotFound("queue", name)
	case page.Queue.URL != "":
		return page, nil // reading messages on Amazon SQS would count as a receive
	}

	full, err := v.api.Queue(v.ctx, name)
	if err != nil {
		return nil, err
	}
	page.Queue.Queue = full
	page.addState(v, "All", "", full.Ledger.Live)
	page.addState(v, "Waiting", api.MessageVisible, full.Ledger.Visible)
	page.addState(v, "In flight", api.MessageInFlight, full.Ledger.InFlight)
	page.addState(v, "Delayed", api.MessageDelayed, full.Ledger.Delayed)
	if full.Ledger.Damaged > 0 {
		page.addState(v, "Damaged", api.MessageDamaged, full.Ledger.Damaged)
	}

	messages, next, err := v.api.Messages(v.ctx, name, page.Filter)
	page.Messages = messages
	page.First, page.Next = v.pageLinks(next)
	return page, err
}

func (p *queuePage) addState(v *visit, label, state string, n int64) {
	p.States = append(p.States, choice{Label: label, Path: v.pathWith("state", state), Chosen: p.Filter.State == state, N: n})
}

func errNotFound(kind, name string) error {
	return api.NotFound(kind+" "+strconv.Quote(name)+" not found", "choose one from the list")
}

func (v *visit) outgoing() (api.Outgoing, error) {
	// Browsers send line breaks in forms as CRLF.
	body := strings.ReplaceAll(v.r.PostFormValue("body"), "\r\n", "\n")
	out := api.Outgoing{Body: body, GroupID: v.field("group"), DedupID: v.field("dedup")}
	if text := v.field("message-attributes"); text != "" {
		if err := json.Unmarshal([]byte(text), &out.Attributes); err != nil {
			return out, invalid("message-attributes", `attributes must be JSON, such as {"tenant": "a", "tries": 3}`)
		}
	}
	return out, nil
}

func (v *visit) send() (string, error) {
	out, err := v.outgoing()
	if err != nil {
		return "", err
	}
	if v.field("delay") != "" {
		delay, err := v.number("delay")
		if err != nil {
			return "", err
		}
		out.DelaySeconds = &delay
	}

	sent, err := v.api.Send(v.ctx, v.name("name"), []queue.Outgoing{out.ToQueue()})
	if err != nil {
		return "", err
	}
	return "Sent as " + sent[0].ID + ".", sent[0].Err
}

func (v *visit) purge() (string, error) {
	name := v.name("name")
	if v.field("confirm") != name {
		return "", invalid("confirm", "nothing was removed: the typed name does not match the queue's; type "+name)
	}
	through, err := v.number("through")
	if err != nil {
		return "", err
	}
	n, err := v.api.Purge(v.ctx, name, v.field("confirm"), int64(through))
	return plural(n, "message") + " removed from " + name + ".", err
}
