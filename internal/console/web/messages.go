package web

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"mime"
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

var messageScreens = []screen{{path: "/messages/{id}", entry: "Queues", view: "message", load: (*visit).loadMessage}}

var messageActs = []act{
	{"/messages/{id}/retry", func(v *visit) (string, error) {
		_, err := v.api.Retry(v.ctx, v.field("queue"), v.name("id"))
		return "The message is visible now.", err
	}},
	{"/messages/{id}/delay", func(v *visit) (string, error) {
		seconds, err := v.number("seconds")
		if err != nil {
			return "", err
		}
		_, err = v.api.Delay(v.ctx, v.field("queue"), v.name("id"), time.Duration(seconds)*time.Second)
		return "The message is hidden for " + age(time.Duration(seconds)*time.Second) + ".", err
	}},
	{"/messages/{id}/move", func(v *visit) (string, error) {
		n, err := v.api.Move(v.ctx, v.field("queue"), v.field("to"), []string{v.name("id")})
		return "The message was moved to " + v.field("to") + ".", errIfGone(n, err)
	}},
	{"/messages/{id}/delete", func(v *visit) (string, error) {
		n, err := v.api.Delete(v.ctx, v.field("queue"), []string{v.name("id")}, 1)
		return "The message was deleted.", errIfGone(n, err)
	}},
}

func errIfGone(changed int, err error) error {
	if err == nil && changed == 0 {
		return api.NotFound("the message is gone, or in flight", "")
	}
	return err
}

type messagePage struct {
	api.Message
	Forms    []choice
	Form     string
	Raw      string // path of the page with the body as text
	Text     string
	Cut      bool
	Download string // path of the complete body
	Tree     *jsonNode
	Whole    bool
	MaxTries int // 0 without a dead-letter queue
	Dead     bool
	Targets  []string
	Timeline []attempt
	// Curl posts the body to the app; Send sends it to the queue again. Both are "" if the body is too long, and Curl if
	// the target has no HTTP URL.
	Curl, Send string
}

func (v *visit) loadMessage() (any, error) {
	m, err := v.findMessage(v.query("queue"), v.name("id"))
	if err != nil {
		return nil, err
	}
	if m.ID != v.name("id") { // the page's updates would search for the abbreviated ID each time
		page := url.URL{Path: "/messages/" + m.ID, RawQuery: v.r.URL.RawQuery}
		return nil, &movedError{page.RequestURI()}
	}

	v.title = "Message " + m.ID
	page := &messagePage{Message: m, Raw: v.pathWith("as", "raw")}
	for _, a := range slices.Backward(m.Attempts) {
		page.Timeline = append(page.Timeline, attempt{a})
	}

	page.showBody(v)
	page.Dead = api.DeadLetterQueues(v.Status.Queues)[m.Queue]
	if page.Dead {
		v.entry = "Dead letters"
	}

	page.MaxTries = queueNamed(v.Status.Queues, m.Queue).MaxReceives
	page.Targets = targetsOf(v.Status.Queues, m.Queue, map[string]bool{m.Queue: true})
	if len(m.Body) <= maxShownBody {
		page.Curl = curlCommand(v.targetOf(m.Queue), m.Body)
		page.Send = sendCommand(m.Queue, m.Body)
	}
	return page, nil
}

func (v *visit) targetOf(queue string) (target string) {
	for _, w := range v.Status.Workers {
		if w.Queue == queue || target == "" {
			target = w.Target
		}
	}
	return target
}

// maxShownBody also applies to the commands: Linux limits an argument to 128 KiB.
const maxShownBody = 64 << 10

func (s *Site) download(w http.ResponseWriter, r *http.Request) {
	v := newVisit(s, nil, r)
	v.api.Bodies = v.query("body") == "1"
	m, err := v.findMessage(v.query("queue"), v.name("id"))
	if err != nil {
		s.showError(w, v, err)
		return
	}
	if m.BodyHidden {
		s.showError(w, v, api.Forbidden("bodies are hidden", "show the body first"))
		return
	}

	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": m.ID + ".txt"}))
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(m.Body))
}

func curlCommand(target, body string) string {
	if u, err := url.Parse(target); err != nil || !strings.HasPrefix(u.Scheme, "http") {
		return ""
	}
	return "curl -i --data-raw " + terminal.ShellWord(body) + " " + terminal.ShellWord(target)
}

func sendCommand(queue, body string) string {
	if body == "-" { // standard input
		return "printf %s - | tendril send --queue " + terminal.ShellWord(queue)
	}
	return "tendril send --queue " + terminal.ShellWord(queue) + " -- " + terminal.ShellWord(body)
}

func (p *messagePage) showBody(v *visit) {
	query := v.r.URL.Query()
	query.Del("as")
	p.Download = withQuery(v.r.URL.EscapedPath()+"/body", query)

	shown := p.Body
	p.Cut = len(shown) > maxShownBody
	if p.Cut {
		shown = shown[:maxShownBody]
	}

	isJSON := !p.Cut && json.Valid([]byte(p.Body))
	switch asked := v.query("as"); {
	case asked == "hex":
		p.Form = "hex"
		p.Text = hex.Dump([]byte(shown))
	case isJSON && asked != "raw":
		p.Form = "json"
		p.Tree, p.Whole = treeOf(p.Body)
	default:
		p.Form = "raw"
		p.Text = strings.ToValidUTF8(shown, "")
	}

	if isJSON {
		p.addForm(v, "json", "JSON")
	}
	p.addForm(v, "raw", "Text")
	p.addForm(v, "hex", "Hex")
}

func (p *messagePage) addForm(v *visit, name, label string) {
	p.Forms = append(p.Forms, choice{Label: label, Path: v.pathWith("as", name), Chosen: p.Form == name})
}

type attempt struct{ api.Attempt }

// Sign returns the outcome if there is no status, or 200, which failed functions also have.
func (a attempt) Sign() string {
	if a.Status != 0 && a.Status != http.StatusOK {
		return "HTTP " + strconv.Itoa(a.Status)
	}
	return a.Outcome
}

func (a attempt) Words() string {
	switch {
	case a.Status >= 500:
		return "The app failed."
	case a.Status == http.StatusTooManyRequests:
		return "The app is overloaded."
	case a.Status >= 400:
		return "The app rejected the message."
	case a.Status >= 300:
		return "The app responded with a redirect."
	case a.Outcome == queue.Unreached.String() && a.Reason != "":
		return "The app was not reached: " + a.Reason
	case a.Outcome == queue.Unreached.String():
		return "The app was not reached."
	case a.Reason != "":
		return a.Reason
	}
	return "The delivery " + a.Outcome + "."
}

func (a attempt) Waits() bool { return time.Until(a.RetryAt) > 0 }

func (a attempt) Summary() string {
	a.Reason = cmp.Or(a.Reason, a.Sign())
	return preview(a.Attempt.Summary())
}

func lastAttempt(all []api.Attempt) *attempt {
	if len(all) == 0 {
		return nil
	}
	return &attempt{all[len(all)-1]}
}

func (v *visit) findMessage(name, id string) (api.Message, error) {
	if name == "" {
		return v.api.FindMessage(v.ctx, id)
	}
	m, err := v.api.Message(v.ctx, name, id)
	if api.HasStatus(err, http.StatusNotFound) || isConflict(err) { // a conflict means that there are no embedded queues
		return v.api.FindMessage(v.ctx, id)
	}
	return m, err
}
