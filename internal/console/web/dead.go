package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/api"
	"tendril/internal/host/terminal"
	"tendril/queue"
)

var deadScreens = []screen{
	{path: "/dead", entry: "Dead letters", view: "dead", load: loadDeadLetters},
	{path: "/dead/{name}/redrive", entry: "Dead letters", view: "bulk", still: true,
		load: func(v *visit) (any, error) { return v.loadBulk("Redrive dead letters", false) }},
	{path: "/dead/{name}/delete", entry: "Dead letters", view: "bulk", still: true,
		load: func(v *visit) (any, error) { return v.loadBulk("Delete dead letters", true) }},
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
	First    string
	Next     string
	URL      string // of a queue on Amazon SQS
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
	// ByReason distinguishes the messages without a reason from all messages, because Reason is "" for both.
	Reason   string
	ByReason bool
	Bodies   bool
}

func readDeadFilter(values url.Values) deadFilter {
	text := func(name string) string { return strings.TrimSpace(values.Get(name)) }
	return deadFilter{Match: text("match"), Attribute: text("attribute"), Since: text("since"), Until: text("until"),
		Reason: values.Get("reason"), ByReason: values.Has("reason"), Bodies: text("body") == "1"}
}

func (f deadFilter) Any() bool { return f.ByReason || f.beyondReason() }

func (f deadFilter) beyondReason() bool { return f.Match+f.Attribute+f.Since+f.Until != "" }

func (f deadFilter) selection() (sel api.Selection, err error) {
	sel.Match = f.Match
	if sel.Attribute, sel.Value, err = api.ParseAttributeFilter(f.Attribute); err != nil {
		return sel, err
	}
	if f.ByReason {
		sel.Reason = &f.Reason
	}
	if sel.DeadSince, err = utcTime(f.Since); err != nil {
		return sel, err
	}
	sel.DeadUntil, err = utcTime(f.Until)
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
	page := &deadPage{Queue: v.query("queue"), Filter: readDeadFilter(v.r.URL.Query())}
	page.chooseQueue(v.Status.Queues)
	if page.Queue == "" || page.URL != "" {
		return page, nil // reading messages on Amazon SQS would count as a receive
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
	page.addGroups(groups)
	if page.Total, err = page.count(v, sel); err != nil {
		return nil, err
	}

	messages, next, err := v.api.Messages(v.ctx, page.Queue,
		api.Filter{Selection: sel, After: v.query("after"), Limit: pageSize})
	page.Messages = messages
	page.First, page.Next = v.pageLinks(next)
	page.Hidden = slices.ContainsFunc(page.Messages, func(m api.Message) bool { return m.BodyHidden })
	return page, err
}

func (p *deadPage) chooseQueue(queues []api.Queue) {
	dead := api.DeadLetterQueues(queues)
	for _, q := range queues {
		if dead[q.Name] {
			p.Queues = append(p.Queues, choice{Label: q.Name, Path: "/dead?" + deadFilter{}.query(q.Name), N: q.Ledger.Live})
		}
	}

	if p.Queue == "" && len(p.Queues) > 0 {
		p.Queue = slices.MaxFunc(p.Queues, func(a, b choice) int { return cmp.Compare(a.N, b.N) }).Label
	}
	for i := range p.Queues {
		p.Queues[i].Chosen = p.Queues[i].Label == p.Queue
	}
	chosen := queueNamed(queues, p.Queue)
	p.Through, p.URL = chosen.Newest, chosen.URL
	p.Targets = targetsOf(queues, p.Queue, dead)
}

// targetsOf returns the embedded queues that accept a queue's messages.
func targetsOf(queues []api.Queue, from string, omitted map[string]bool) (names []string) {
	fifo := queueNamed(queues, from).FIFO
	for _, q := range queues {
		if q.URL == "" && q.FIFO == fifo && !omitted[q.Name] {
			names = append(names, q.Name)
		}
	}
	return names
}

func queueNamed(queues []api.Queue, name string) api.Queue {
	for _, q := range queues {
		if q.Name == name {
			return q
		}
	}
	return api.Queue{}
}

const ( // as in the template's chart
	hourWidth = 5
	barHeight = 20
)

func (p *deadPage) addGroups(groups []api.ReasonGroup) {
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
				height := max(2, barHeight*n/most)
				row.Bars = append(row.Bars, hourBar{hour * hourWidth, barHeight - height, height})
			}
		}
		p.Groups = append(p.Groups, row)
	}
}

func (p *deadPage) count(v *visit, sel api.Selection) (api.Total, error) {
	for _, g := range p.Groups {
		if g.Chosen && !p.Filter.beyondReason() {
			return api.Total{N: int64(g.Count), Exact: true}, nil
		}
	}
	sel.Through = p.Through
	return v.api.Count(v.ctx, p.Queue, sel, 0)
}

type deadSelection struct {
	Queue  string
	Filter deadFilter
	IDs    []string
	sel    api.Selection
}

func readDeadSelection(queue string, values url.Values) (deadSelection, error) {
	s := deadSelection{Queue: queue, Filter: readDeadFilter(values)}
	switch values.Get("which") {
	case "all":
		var err error
		s.sel, err = s.Filter.selection()
		return s, err
	case "page":
		s.IDs = values["shown"]
	default:
		s.IDs = values["message"]
	}

	if len(s.IDs) == 0 {
		return s, api.BadRequest("no dead letters selected",
			"select rows, the page, or all that match")
	}
	s.sel.IDs = s.IDs
	return s, nil
}

type confirmedAction struct {
	deadSelection
	most, rate int
}

// A form for all matching messages must contain the position of the newest message, and its page's filter.
func readConfirmed(v *visit) (a confirmedAction, err error) {
	form := v.r.PostForm
	if a.deadSelection, err = readDeadSelection(form.Get("queue"), form); err != nil {
		return a, err
	}
	if a.most, err = v.number("most"); err != nil {
		return a, err
	}

	through, err := v.number("through")
	if err != nil {
		return a, err
	}

	a.sel.Through = int64(through)
	if a.IDs == nil && (through == 0 || !a.matchesPage(v.r.Referer())) {
		return a, api.Conflict("nothing was done: the form does not match the messages on its page",
			"reload the page, and repeat the action")
	}
	a.rate, err = v.number("rate")
	return a, err
}

// matchesPage accepts addresses outside /dead, because browsers may omit the referrer.
func (s deadSelection) matchesPage(address string) bool {
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(u.Path, "/dead") {
		return true
	}
	if queue := u.Query().Get("queue"); queue != "" && queue != s.Queue {
		return false
	}
	shown := readDeadFilter(u.Query())
	shown.Bodies = s.Filter.Bodies
	return shown == s.Filter
}

func redrive(v *visit) (string, error) {
	a, err := readConfirmed(v)
	if err != nil {
		return "", err
	}

	to := v.field("to")
	if a.IDs == nil || a.rate != 0 {
		task, err := v.api.Redrive(v.ctx, a.Queue, to, a.rate, a.sel, int64(a.most))
		return "Redriving " + plural(task.ToMove, "message") + ". It continues if you leave the page.", err
	}

	n, err := v.api.Move(v.ctx, a.Queue, to, a.IDs)
	if err == nil && n < len(a.IDs) {
		return "", api.Conflict(strconv.Itoa(n)+" of "+plural(len(a.IDs), "message")+
			" moved: the others are gone, in flight, or have no recorded source queue",
			"choose a queue to move to")
	}
	return plural(n, "message") + " moved.", err
}

type bulkPage struct {
	deadSelection
	Deletes bool
	Total   api.Total
	Through int64
	Reasons []reasonGroup
	Targets []string
	Back    string
}

const longCount = 20 * time.Second

// Flag is the option of 'tendril dead export'.
type condition struct{ Words, Flag, Value string }

func (s *deadSelection) Conditions() (all []condition) {
	if s.IDs != nil {
		return nil
	}
	if s.Filter.ByReason {
		all = append(all, condition{"that failed with", "--reason", s.Filter.Reason})
	}
	for _, one := range []condition{
		{"whose body contains", "--match", s.Filter.Match},
		{"with the attribute", "--attribute", s.Filter.Attribute},
		{"dead since", "--since", timeText(s.sel.DeadSince)},
		{"dead before", "--until", timeText(s.sel.DeadUntil)},
	} {
		if one.Value != "" {
			all = append(all, one)
		}
	}
	return all
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// ExportCommand exports the matching messages, or the whole queue if messages are selected by ID.
func (p *bulkPage) ExportCommand() string {
	command := "tendril dead export --queue " + terminal.ShellWord(p.Queue)
	for _, c := range p.Conditions() {
		command += " " + c.Flag + " " + terminal.ShellWord(c.Value)
	}
	return command + " --file dead.ndjson"
}

func (v *visit) loadBulk(title string, deletes bool) (*bulkPage, error) {
	v.title = title
	selected, err := readDeadSelection(v.name("name"), v.r.URL.Query())
	if err != nil {
		return nil, err
	}

	queues, name := v.Status.Queues, selected.Queue
	page := &bulkPage{deadSelection: selected, Deletes: deletes, Through: queueNamed(queues, name).Newest,
		Targets: targetsOf(queues, name, api.DeadLetterQueues(queues)), Back: "/dead?" + selected.Filter.query(name)}
	if selected.IDs != nil {
		page.Total = api.Total{N: int64(len(selected.IDs)), Exact: true}
		return page, nil
	}
	return page, page.count(v)
}

func (p *bulkPage) count(v *visit) (err error) {
	p.sel.Through = p.Through
	v.api.Bodies = true // a filter may search hidden bodies
	p.Total, err = v.api.Count(v.ctx, p.Queue, p.sel, longCount)
	if err != nil || p.Filter.Any() {
		return err
	}

	groups, err := v.api.Reasons(v.ctx, p.Queue)
	for _, g := range groups[:min(len(groups), pageSize)] {
		filter := deadFilter{ByReason: true, Reason: g.Reason}
		p.Reasons = append(p.Reasons, reasonGroup{ReasonGroup: g, Path: "?which=all&" + filter.query(p.Queue)})
	}
	return err
}

func deleteDead(v *visit) (string, error) {
	a, err := readConfirmed(v)
	if err != nil {
		return "", err
	}
	confirm, err := v.number("confirm")
	if err != nil {
		return "", err
	}

	if a.IDs != nil {
		n, err := v.api.Delete(v.ctx, a.Queue, a.IDs, int64(confirm))
		return plural(n, "message") + " deleted.", err
	}
	task, err := v.api.DeleteMatching(v.ctx, a.Queue, a.sel, a.rate, int64(confirm))
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

	queues := v.Status.Queues
	page.FIFO = queueNamed(queues, m.Queue).FIFO
	page.Targets = targetsOf(queues, m.Queue, api.DeadLetterQueues(queues))
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
