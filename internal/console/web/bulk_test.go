package web

import (
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tendril/api"
	"tendril/internal/observe/health"
)

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

func hiddenFields(t *testing.T, page, action string) url.Values {
	t.Helper()
	_, after, found := strings.Cut(page, `action="`+action+`"`)
	if !found {
		t.Fatalf("the page has no form for %s:\n%s", action, page)
	}
	inside, _, _ := strings.Cut(after, "</form>")
	fields := url.Values{}
	for _, match := range hiddenField.FindAllStringSubmatch(inside, -1) {
		fields.Add(match[1], html.UnescapeString(match[2]))
	}
	return fields
}

func TestActOnAllThatMatchMeansTheMessagesOfThePage(t *testing.T) {
	const reason = "HTTP 422 missing customer_id"
	address := "/dead?" + url.Values{"queue": {"jobs-dead"}, "reason": {reason}}.Encode()
	for name, c := range map[string]struct {
		change      func(fields url.Values)
		referer     string
		says        string
		moved, left int64
	}{
		"as shown":            {nil, address, "Redriving 3 messages.", 3, 9},
		"without the address": {nil, "", "Redriving 3 messages.", 3, 9},
		"with a lost filter":  {func(f url.Values) { f.Del("reason") }, address, "does not match the messages", 0, 12},
		"with a lost filter, without the address": {func(f url.Values) { f.Del("reason") }, "",
			"8 messages match, more than the 3 expected: none were moved", 0, 12},
		"with another queue":  {nil, "/dead?queue=mail-dead&reason=" + url.QueryEscape(reason), "does not match the messages", 0, 12},
		"without the newest":  {func(f url.Values) { f.Del("through") }, address, "does not match the messages", 0, 12},
		"with a later newest": {func(f url.Values) { f.Set("through", "1000") }, address, "7 messages match", 0, 12},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.dead("a", `{"error":"missing customer_id"}`, "1", "2", "3")
			s.dead("b", "no such tenant", "4", "5", "6", "7", "8")
			fields := hiddenFields(t, s.get(address), "/dead/redrive")
			s.dead("a", `{"error":"missing customer_id"}`, "9", "10", "11", "12") // after the page was rendered
			fields.Set("which", "all")
			if c.change != nil {
				c.change(fields)
			}
			s.referer = c.referer
			wantText(t, s.post("/dead/redrive", fields), c.says)
			if c.moved > 0 {
				s.settled()
			}
			s.wantLive("jobs", c.moved)
			s.wantLive("jobs-dead", c.left)
		})
	}
}

func TestRedriveFromTheOverviewAsksFirst(t *testing.T) {
	s := newSite(t)
	s.dead("a", `{"error":"missing customer_id"}`, "1", "2", "3")
	s.dead("b", "no such tenant", "4", "5")
	s.health.Details = []health.Cause{{Kind: health.KindDeadLetters, Name: "jobs-dead", Status: health.Warning}}
	page := s.get("/")
	wantText(t, page, "HTTP 422 missing customer_id")
	if strings.Contains(page, `action="/dead/redrive"`) {
		t.Error("the overview redrives at one click")
	}
	wantText(t, page, `href="/dead/jobs-dead/redrive?which=all"`)
	page = s.get("/dead/jobs-dead/redrive?which=all")
	wantText(t, page, "redrives <b>5</b> dead letters", "HTTP 422 missing customer_id", "Only this reason", `name="rate"`,
		"Redrive 5")
	page = s.get("/dead/jobs-dead/redrive?" + url.Values{"which": {"all"}, "queue": {"jobs-dead"},
		"reason": {"HTTP 422 no such tenant"}}.Encode())
	wantText(t, page, "redrives <b>2</b> dead letters", "HTTP 422 no such tenant")
	s.dead("b", "no such tenant", "6")
	fields := hiddenFields(t, page, "/dead/redrive")
	fields.Set("rate", "100")
	wantText(t, s.post("/dead/redrive", fields), "Redriving 2 messages.")
	if task := s.settled(); task.Rate != 100 {
		t.Errorf("task %+v", task)
	}
	s.wantLive("jobs", 2)
	s.wantLive("jobs-dead", 4)
}

func TestTargetsAcceptTheQueuesMessages(t *testing.T) {
	s := newSite(t)
	id := s.dead("a", "no", "1")[0]
	s.queue("other", nil)
	s.queue("orders.fifo", map[string]string{"FifoQueue": "true"})
	s.status.Queues = []api.Queue{{Name: "remote", URL: "https://sqs.us-east-1.amazonaws.com/1/remote"}}
	for _, path := range []string{"/dead?queue=jobs-dead", "/dead/jobs-dead/redrive?which=all", "/messages/" + id + "?queue=jobs-dead",
		"/messages/" + id + "/edit?queue=jobs-dead"} {
		page := s.get(path)
		wantText(t, page, "<option>other</option>")
		for _, name := range []string{"orders.fifo", "remote", "jobs-dead"} {
			if strings.Contains(page, "<option>"+name+"</option>") {
				t.Errorf("%s offers %s", path, name)
			}
		}
	}
}

func TestDeletionLeavesLaterMessages(t *testing.T) {
	s := newSite(t)
	s.dead("a", "no", "1", "2", "3")
	fields := hiddenFields(t, s.get("/dead/jobs-dead/delete?queue=jobs-dead&which=all&attribute=tenant%3Da"), "/dead/jobs-dead/delete")
	s.dead("a", "no", "4")
	fields.Set("confirm", "3")
	wantText(t, s.post("/dead/jobs-dead/delete", fields), "Deleting 3 messages.")
	s.settled()
	s.wantLive("jobs-dead", 1)
}

func TestPurgeLeavesLaterMessages(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	s.send("jobs", "one")
	s.send("jobs", "two")
	fields := hiddenFields(t, s.get("/queues/jobs"), "/queues/jobs/purge")
	s.send("jobs", "three")
	fields.Set("confirm", "jobs")
	wantText(t, s.post("/queues/jobs/purge", fields), "2 messages removed from jobs.")
	wantText(t, s.get("/queues/jobs"), "three")
	s.wantLive("jobs", 1)
}

func TestQueuesOnAmazonSQSAreShownBesideEmbeddedOnes(t *testing.T) {
	const address = "https://sqs.eu-west-1.amazonaws.com/123456789012/"
	s := newSite(t)
	s.dead("a", "no", "one")
	s.status.Queues = []api.Queue{{Name: "mails", URL: address + "mails", DeadLetterQueue: "mails-dead"},
		{Name: "mails-dead", URL: address + "mails-dead", Ledger: api.Ledger{Live: 76}}}
	s.health.Details = []health.Cause{{Kind: health.KindDeadLetters, Name: "mails-dead", Text: "About 76 messages in mails-dead."}}
	wantText(t, s.get("/queues"), `href="/queues/jobs"`, `href="/queues/mails"`)
	wantText(t, s.get("/queues/mails"), "tendril peek "+address+"mails")
	wantText(t, s.get("/dead?queue=mails-dead"), "About 76 dead letters", "tendril dead list "+address+"mails-dead")
	wantText(t, s.get("/queues/jobs"), `action="/queues/jobs/purge"`)
	overview := s.get("/")
	wantText(t, overview, "About 76 messages in mails-dead", `href="/queues/jobs"`, `href="/queues/mails"`)
	if strings.Contains(overview, "/redrive") {
		t.Error("messages on Amazon SQS can be redriven from the overview")
	}
	if dead := s.get("/dead?queue=jobs-dead"); strings.Contains(dead, "<option>mails") || !strings.Contains(dead, "<option>jobs") {
		t.Error("the destinations of embedded dead letters are not the embedded queues")
	}
}

// actsAtOnce lists the forms that act on a single click, and why each is safe.
var actsAtOnce = map[string]string{
	"frame.html /logout": "undone by a new link",
	"overview.html {{with .Name}}/queues/{{segment .}}{{end}}/resume": "undone by a pause",
	"queue.html /queues/{{segment $q.Name}}/resume":                   "undone by a pause",
	"task.html /tasks/{{segment $t.Name}}/resume":                     "undone by a pause",
	"task.html /tasks/{{segment $t.Name}}/run":                        "adds one message",
	"tasks.html /tasks/{{segment .Name}}/run":                         "adds one message",
	"message.html /messages/{{segment $m.ID}}/retry":                  "one message, which would become visible anyway",
	"message.html /dead/redrive":                                      "one message, which goes back to where it was",
	"dead.html /dead/cancel":                                          "the rest can be redriven later",
	"dead.html /dead/redrive":                                         "a form around a list: its buttons are in a menu, or lead to a page",
}

var (
	popups    = regexp.MustCompile(`(?s)<details class="popup.*?</details>`)
	postForms = regexp.MustCompile(`<form[^>]*method="post" action="([^"]*)"[^>]*>`)
)

// Other destructive forms must be in a menu or on a separate page.
func TestNoActThatDestroysTakesOneClick(t *testing.T) {
	pages := []string{"bulk.html", "key.html", "edit.html", "configuration.html"} // pages that consist of a form
	names, err := templates.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, name := range names {
		text, err := templates.ReadFile("templates/" + name.Name())
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(pages, name.Name()) {
			continue
		}
		for _, form := range postForms.FindAllStringSubmatch(popups.ReplaceAllString(string(text), ""), -1) {
			action := name.Name() + " " + form[1]
			seen[action] = true
			if actsAtOnce[action] == "" {
				t.Errorf("%s acts at one click", action)
			}
		}
	}
	for action := range actsAtOnce {
		if !seen[action] {
			t.Errorf("there is no form %s any more", action)
		}
	}
}

func TestRedriveOfOneReasonNamesIt(t *testing.T) {
	s := newSite(t)
	s.dead("a", "no such tenant", "1", "2")
	page := s.get("/dead/jobs-dead/redrive?which=all")
	wantText(t, page, "redrives <b>2</b> dead letters", "HTTP 422 no such tenant")
	if strings.Contains(page, "Only this reason") {
		t.Error("one reason of one can be chosen")
	}
}
