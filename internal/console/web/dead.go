package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/api"
	"tendril/queue"
)

var deadScreens = []screen{
	{path: "/dead", entry: "Dead letters", view: "dead", load: loadDeadLetters},
	{path: "/dead/{name}/redrive", entry: "Dead letters", view: "bulk", load: loadBulk(false), still: true},
	{path: "/dead/{name}/delete", entry: "Dead letters", view: "bulk", load: loadBulk(true), still: true},
	{path: "/messages/{id}/edit", entry: "Dead letters", view: "edit", load: loadEdit, still: true},
}

var deadActs = []act{
	{"/dead/redrive", redrive},
	{"/dead/cancel", func(v *visit) (string, error) {
		task, err := v.api.CancelRedrive(v.ctx, v.field("queue"))
		return "Cancelled after " + plural(task.Moved, "message") + ".", err
	}},
	{"/dead/{name}/delete", deleteDead},
	{"/messages/{id}/edit", sendEdited},
}

type deadPage struct {
	Queue    string
	Queues   []choice
	Targets  []string
	Task     *api.MoveTask
	Groups   []reasonGroup
	Filter   deadFilter
	Messages []api.Message
	Total    api.Total
	Through  int64 // newest message when the page was rendered
	Hidden   bool
	Show     string
	First    string
	Next     string
	OnSQS    bool
}

type reasonGroup struct {
	api.ReasonGroup
	Path   string
	Chosen bool
	Bars   []hourBar
}

type hourBar struct{ X, Y, Height int }

type deadFilter struct {
	Match, Attribute, Since, Until string
	// ByReason distinguishes the group of messages without a reason from no group.
	Reason   string
	ByReason bool
	Bodies   bool
}

func readDeadFilter(values url.Values) deadFilter {
	text := func(name string) string { return strings.TrimSpace(values.Get(name)) }
	return deadFilter{Match: text("match"), Attribute: text("attribute"), Since: text("since"), Until: text("until"),
		Reason: values.Get("reason"), ByReason: values.Has("reason"), Bodies: text("body") == "1"}
}

func (f deadFilter) Any() bool { return f.ByReason || f.Search() }

// Search reports whether anything besides the group is filtered.
func (f deadFilter) Search() bool { return f.Match+f.Attribute+f.Since+f.Until != "" }

func (f deadFilter) selection() (sel api.Selection, err error) {
	sel.Match = f.Match
	sel.Attribute, sel.Value, _ = strings.Cut(f.Attribute, "=")
	if f.ByReason {
		sel.Reason = &f.Reason
	}
	if sel.DeadSince, err = utcTime(f.Since); err == nil {
		sel.DeadUntil, err = utcTime(f.Until)
	}
	return sel, err
}

func utcTime(text string) (at time.Time, err error) {
	if text == "" {
		return at, nil
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339, time.DateOnly} {
		if at, err = time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return at, api.BadRequest(strconv.Quote(text)+" is not a time",
		"write it as 2006-01-02T15:04, in UTC")
}

func (f deadFilter) query(queue string) string {
	query := url.Values{"queue": {queue}}
	for name, value := range map[string]string{"match": f.Match, "attribute": f.Attribute, "since": f.Since,
		"until": f.Until} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.ByReason {
		query.Set("reason", f.Reason)
	}
	if f.Bodies {
		query.Set("body", "1")
	}
	return query.Encode()
}

func loadDeadLetters(v *visit) (any, error) {
	page := &deadPage{Queue: v.query("queue"), Filter: readDeadFilter(v.r.URL.Query()),
		OnSQS: v.status.Backend == api.BackendSQS}
	page.chooseQueue(v.status.Queues)
	if page.Queue == "" || page.OnSQS {
		return page, nil // reading messages on Amazon SQS would be a receive
	}

	sel, err := page.Filter.selection()
	if err != nil {
		return nil, err
	}

	task, err := v.api.RedriveTask(v.ctx, page.Queue)
	if err == nil {
		page.Task = &task
	} else if !api.HasStatus(err, http.StatusNotFound) {
		return nil, err
	}

	groups, err := v.api.Reasons(v.ctx, page.Queue)
	if err != nil {
		return nil, err
	}

	page.group(groups)
	if page.Total.N, page.Total.Exact = page.countGroup(); !page.Total.Exact {
		counted := sel
		counted.Through = page.Through
		if page.Total, err = v.api.Count(v.ctx, page.Queue, counted, 0); err != nil {
			return nil, err
		}
	}

	next := ""
	page.Messages, next, err = v.api.Messages(v.ctx, page.Queue,
		api.Filter{Selection: sel, After: v.query("after"), Limit: pageSize})
	if next != "" {
		page.Next = v.with("after", next)
	}
	if v.query("after") != "" {
		page.First = v.with("after", "")
	}

	page.Hidden = slices.ContainsFunc(page.Messages, func(m api.Message) bool { return m.BodyHidden })
	page.Show = v.with("body", "1")
	return page, err
}

func (p *deadPage) chooseQueue(queues []api.Queue) {
	dead, most := api.DeadLetterQueues(queues), int64(-1)
	named := p.Queue != ""
	for _, q := range queues {
		if !dead[q.Name] {
			p.Targets = append(p.Targets, q.Name)
			continue
		}
		p.Queues = append(p.Queues, choice{Label: q.Name, Path: "/dead?" + deadFilter{}.query(q.Name), N: q.Ledger.Live})
		if !named && q.Ledger.Live > most {
			p.Queue, most = q.Name, q.Ledger.Live
		}
	}
	for i := range p.Queues {
		p.Queues[i].Chosen = p.Queues[i].Label == p.Queue
	}
	p.Through = queueNamed(queues, p.Queue).Newest
}

func queueNamed(queues []api.Queue, name string) api.Queue {
	for _, q := range queues {
		if q.Name == name {
			return q
		}
	}
	return api.Queue{}
}

func (p *deadPage) group(groups []api.ReasonGroup) {
	most := 1
	for _, g := range groups {
		most = max(most, slices.Max(g.Hours[:]))
	}

	for _, g := range groups[:min(len(groups), pageSize)] {
		filter := p.Filter
		row := reasonGroup{ReasonGroup: g, Chosen: filter.ByReason && filter.Reason == g.Reason}
		filter.ByReason, filter.Reason = !row.Chosen, g.Reason
		row.Path = "/dead?" + filter.query(p.Queue)
		for hour, n := range g.Hours {
			if n > 0 {
				height := max(2, 20*n/most)
				row.Bars = append(row.Bars, hourBar{hour * 5, 20 - height, height})
			}
		}
		p.Groups = append(p.Groups, row)
	}
}

// countGroup returns the selected group's size, or false unless exactly one group is selected.
func (p *deadPage) countGroup() (n int64, is bool) {
	for _, g := range p.Groups {
		if g.Chosen && !p.Filter.Search() {
			return int64(g.Count), true
		}
	}
	return 0, false
}

type chosen struct {
	Queue  string
	Filter deadFilter
	IDs    []string
	sel    api.Selection
}

func chosenOf(values url.Values) (c chosen, err error) {
	c = chosen{Queue: values.Get("queue"), Filter: readDeadFilter(values)}
	switch values.Get("which") {
	case "all":
		c.sel, err = c.Filter.selection()
		return c, err
	case "page":
		c.IDs = values["shown"]
	default:
		c.IDs = values["message"]
	}
	if len(c.IDs) == 0 {
		return c, api.BadRequest("no dead letters selected",
			"select rows, the page, or all that match")
	}
	c.sel.IDs = c.IDs
	return c, nil
}

// A form that acts on all matching messages must contain the newest message and the count shown, and its filter must
// equal the page's.
func confirmed(v *visit) (c chosen, most, rate int, err error) {
	if c, err = chosenOf(v.r.PostForm); err != nil {
		return c, 0, 0, err
	}
	if most, err = v.number("most"); err != nil {
		return c, 0, 0, err
	}

	through, err := v.number("through")
	if err != nil {
		return c, 0, 0, err
	}

	c.sel.Through = int64(through)
	if c.IDs == nil && (through == 0 || !c.isOf(v.r.Referer())) {
		return c, 0, 0, api.NewError(http.StatusConflict,
			"nothing was done: the form does not match the messages on its page",
			"reload the page, and repeat the action")
	}

	rate, err = v.number("rate")
	return c, most, rate, err
}

// isOf accepts addresses other than the page's, because browsers may omit the address.
func (c chosen) isOf(address string) bool {
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(u.Path, "/dead") {
		return true
	}
	shown, queue := readDeadFilter(u.Query()), u.Query().Get("queue")
	shown.Bodies = c.Filter.Bodies
	return shown == c.Filter && (queue == "" || queue == c.Queue)
}

func redrive(v *visit) (string, error) {
	c, most, rate, err := confirmed(v)
	if err != nil {
		return "", err
	}

	to := v.field("to")
	if c.IDs != nil && rate == 0 {
		n, err := v.api.Move(v.ctx, c.Queue, to, c.IDs)
		if err == nil && n < len(c.IDs) {
			err = api.NewError(http.StatusConflict, strconv.Itoa(n)+" of "+
				plural(len(c.IDs), "message")+" moved: the others are gone, in flight, or have no recorded source "+
				"queue",
				"choose a queue to move to")
		}
		return plural(n, "message") + " moved.", err
	}

	task, err := v.api.Redrive(v.ctx, c.Queue, to, rate, c.sel, int64(most))
	return "Redriving " + plural(task.ToMove, "message") + ". It continues if you leave the page.", err
}

type bulkPage struct {
	chosen
	Deletes bool
	Total   api.Total
	Through int64
	Reasons []reasonGroup
	Targets []string
	Back    string
}

const longCount = 20 * time.Second

func loadBulk(deletes bool) func(*visit) (any, error) {
	return func(v *visit) (any, error) {
		c, err := chosenOf(v.r.URL.Query())
		if err != nil {
			return nil, err
		}
		c.Queue, v.title = v.name("name"), "Redrive dead letters"
		if deletes {
			v.title = "Delete dead letters"
		}
		list := &deadPage{Queue: c.Queue}
		list.chooseQueue(v.status.Queues)
		page := &bulkPage{chosen: c, Deletes: deletes, Total: api.Total{N: int64(len(c.IDs)), Exact: true},
			Through: list.Through, Targets: list.Targets, Back: "/dead?" + c.Filter.query(c.Queue)}
		if c.IDs != nil {
			return page, nil
		}
		c.sel.Through = page.Through
		v.api.Bodies = true
		if page.Total, err = v.api.Count(v.ctx, c.Queue, c.sel, longCount); err != nil || c.Filter.Any() {
			return page, err
		}
		groups, err := v.api.Reasons(v.ctx, c.Queue)
		for _, g := range groups[:min(len(groups), pageSize)] {
			one := deadFilter{ByReason: true, Reason: g.Reason}
			page.Reasons = append(page.Reasons, reasonGroup{ReasonGroup: g, Path: "?which=all&" + one.query(c.Queue)})
		}
		return page, err
	}
}

func deleteDead(v *visit) (string, error) {
	c, _, rate, err := confirmed(v)
	if err != nil {
		return "", err
	}
	confirm, err := v.number("confirm")
	if err != nil {
		return "", err
	}
	if c.IDs != nil {
		n, err := v.api.Delete(v.ctx, c.Queue, c.IDs, int64(confirm))
		return plural(n, "message") + " deleted.", err
	}
	task, err := v.api.DeleteMatching(v.ctx, c.Queue, c.sel, rate, int64(confirm))
	return "Deleting " + plural(task.ToMove, "message") + ". It continues if you leave the page.", err
}

type editPage struct {
	api.Message
	AttributesText string
	Targets        []string
	Target         string
	FIFO           bool
}

func loadEdit(v *visit) (any, error) {
	v.api.Bodies = true
	m, err := v.api.Message(v.ctx, v.query("queue"), v.name("id"))
	if err != nil {
		return nil, err
	}

	v.title = "Edit and redrive"
	page := &editPage{Message: m, Target: queue.NameInARN(m.DeadLetterSource)}
	if len(m.Attributes) > 0 {
		text, err := m.Attributes.MarshalJSON()
		if err != nil {
			return nil, err
		}
		page.AttributesText = string(text)
	}

	page.FIFO = queueNamed(v.status.Queues, m.Queue).FIFO
	dead := api.DeadLetterQueues(v.status.Queues)
	for _, q := range v.status.Queues {
		if !dead[q.Name] && q.FIFO == page.FIFO {
			page.Targets = append(page.Targets, q.Name)
		}
	}

	return page, nil
}

func sendEdited(v *visit) (string, error) {
	name, id := v.field("queue"), v.name("id")
	v.api.Bodies = true
	m, err := v.api.Message(v.ctx, name, id)
	if err != nil {
		return "", err
	}
	out, err := v.outgoing()
	if err != nil {
		return "", err
	}
	if strings.Contains(m.Body, "\r\n") {
		out.Body = strings.ReplaceAll(out.Body, "\n", "\r\n")
	}
	out.TraceHeader = m.TraceHeader
	sent, err := v.api.Edit(v.ctx, name, id, v.field("to"), out)
	return "Sent as " + sent + "; the dead letter is removed.", err
}
