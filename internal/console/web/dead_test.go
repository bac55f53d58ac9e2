package web

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/console"
	"tendril/queue"
)

func (s *site) dead(tenant, answer string, bodies ...string) (ids []string) {
	s.Helper()
	if _, err := s.broker.Ledger("jobs-dead"); err != nil {
		s.queue("jobs-dead", nil)
		s.queue("jobs", map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":1}`,
			s.broker.ARN("jobs-dead"))})
	}
	now := time.Duration(0)
	for _, body := range bodies {
		id := s.send("jobs", body, queue.Attribute{Name: "tenant", Type: "String", Value: tenant})
		ids = append(ids, id)
		for range 2 {
			got, err := s.broker.Queue("jobs").Receive(s.Context(),
				queue.ReceiveRequest{Max: 1, Wait: &now, Visibility: &now})
			if err != nil {
				s.Fatal(err)
			}
			if len(got) == 1 && answer != "" {
				s.broker.RecordAttempt("jobs", id, broker.Attempt{At: time.Now(), Instance: "i-1", Outcome: "failed", Status: 422,
					Answer: answer, ReceiveCount: 1})
			}
		}
	}
	return ids
}

func (s *site) settled() broker.MoveTask {
	s.Helper()
	for {
		tasks, err := s.broker.MoveTasks(s.broker.ARN("jobs-dead"), 1)
		if err != nil || len(tasks) == 0 {
			s.Fatal(tasks, err)
		}
		if tasks[0].Status != broker.MoveRunning {
			return tasks[0]
		}
	}
}

func (s *site) wantLive(name string, n int64) {
	s.Helper()
	if l, err := s.broker.Ledger(name); err != nil || l.Live != n {
		s.Errorf("%s holds %d messages, want %d (%v)", name, l.Live, n, err)
	}
}

func TestDeadLettersAreGroupedByReason(t *testing.T) {
	s := newSite(t)
	ids := s.dead("a", `{"error":"missing customer_id"}`, "one", "two")
	ids = append(ids, s.dead("b", "<b>no</b> such tenant", "three")...)
	page := s.get("/dead")
	wantText(t, page, "HTTP 422 missing customer_id", "HTTP 422 &lt;b&gt;no&lt;/b&gt; such tenant", ids[0], ids[2],
		"<rect ")
	reason := url.Values{"queue": {"jobs-dead"}, "reason": {"HTTP 422 missing customer_id"}}
	page = s.get("/dead?" + reason.Encode())
	wantText(t, page, ids[0], ids[1], "all 2 that match")
	if strings.Contains(page, ids[2]) {
		t.Error("a message with another reason is shown")
	}
	wantText(t, s.get("/messages/"+ids[2]+"?queue=jobs-dead"), "HTTP 422</span> <b>The app rejected the message.",
		"&lt;b&gt;no&lt;/b&gt; such tenant", "i-1", "Edit and redrive")
}

func TestDeadLettersAreFiltered(t *testing.T) {
	s := newSite(t)
	ids := s.dead("a", "", "apple", "banana")
	ids = append(ids, s.dead("b", "", "apple pie")...)
	for query, want := range map[string][]string{
		"":                                ids,
		"&match=apple":                    {ids[0], ids[2]},
		"&attribute=tenant%3Da":           ids[:2],
		"&attribute=tenant":               ids,
		"&attribute=other":                nil,
		"&until=2020-01-01T00:00":         nil,
		"&since=2020-01-01T00:00":         ids,
		"&match=apple&attribute=tenant=b": {ids[2]},
	} {
		page := s.get("/dead?queue=jobs-dead" + query)
		if got := strings.Count(page, `<tr id="m-`); got != len(want) {
			t.Errorf("%q shows %d rows, want %d", query, got, len(want))
		}
		for _, id := range want {
			wantText(t, page, `id="m-`+id)
		}
	}
	if status, page, _ := s.do("GET", "/dead?queue=jobs-dead&since=soon", nil); status != http.StatusBadRequest ||
		!strings.Contains(page, "is not a time") {
		t.Errorf("a bad time: %d", status)
	}
	if status, page, _ := s.do("GET", "/dead?queue=jobs-dead&attribute=%3Dx", nil); status != http.StatusBadRequest ||
		!strings.Contains(page, "invalid attribute filter") {
		t.Errorf("an attribute without a name: %d", status)
	}
}

func TestAnAttributeFilterWithoutANameIsRefused(t *testing.T) {
	s := newSite(t)
	s.dead("a", "", "apple", "banana")
	for _, attribute := range []string{"=", "=a"} {
		query := url.Values{"queue": {"jobs-dead"}, "attribute": {attribute}, "match": {"apple"}}
		for _, path := range []string{"/dead?", "/dead/jobs-dead/delete?which=all&", "/dead/jobs-dead/redrive?which=all&"} {
			status, page, _ := s.do("GET", path+query.Encode(), nil)
			if status != http.StatusBadRequest || !strings.Contains(page, "invalid attribute filter") {
				t.Errorf("%s%s: %d", path, query.Encode(), status)
			}
		}
		query.Set("which", "all")
		query.Set("through", "2")
		query.Set("confirm", "1")
		for _, path := range []string{"/dead/redrive", "/dead/jobs-dead/delete"} {
			if page := s.post(path, query); !strings.Contains(page, "invalid attribute filter") {
				t.Errorf("%s with the attribute %s was accepted", path, attribute)
			}
		}
	}
	s.wantLive("jobs-dead", 2)
}

func TestDeadLettersAreRedriven(t *testing.T) {
	s := newSite(t)
	ids := s.dead("a", "", "one", "two", "three", "four")
	back := url.Values{"back": {"/dead"}, "queue": {"jobs-dead"}}
	with := func(name string, values ...string) url.Values {
		form := url.Values{name: values}
		for key, value := range back {
			form[key] = value
		}
		return form
	}
	wantText(t, s.post("/dead/redrive", back), "no dead letters selected")
	wantText(t, s.post("/dead/redrive", with("message", ids[0])), "1 message moved.")
	form := with("shown", ids[1], ids[2])
	form.Set("which", "page")
	form.Set("rate", "100")
	wantText(t, s.post("/dead/redrive", form), "Redriving 2 messages")
	if task := s.settled(); task.Moved != 2 || task.Rate != 100 {
		t.Errorf("task %+v", task)
	}
	wantText(t, s.get("/dead"), "Last task: 2 of 2 redriven")
	form = with("match", "four")
	form.Set("which", "all")
	form.Set("through", "4")
	wantText(t, s.post("/dead/redrive", form), "Redriving 1 message.")
	s.settled()
	s.wantLive("jobs", 4)
	s.wantLive("jobs-dead", 0)
}

func TestRunningTaskIsShownAndCancelled(t *testing.T) {
	s := newSite(t)
	s.dead("a", "", slices.Repeat([]string{"one"}, 60)...)
	wantText(t, s.post("/dead/redrive", url.Values{"back": {"/dead"}, "queue": {"jobs-dead"}, "which": {"all"},
		"through": {"60"}, "rate": {"1"}}), "Redriving 60 messages", "<progress max=\"60\"", "at most 1/s")
	wantText(t, s.get("/dead"), "<progress")
	wantText(t, s.post("/dead/cancel", url.Values{"back": {"/dead"}, "queue": {"jobs-dead"}}), "Cancelled after ",
		"cancelled")
}

func TestDeletingDeadLettersAsksForTheirNumber(t *testing.T) {
	s := newSite(t)
	ids := s.dead("a", "", "one", "two", "three", "four")
	page := s.get("/dead/jobs-dead/delete?queue=jobs-dead&which=all&attribute=tenant=a")
	wantText(t, page, "<b>4</b> dead letters", `name="confirm"`, `name="attribute" value="tenant=a"`)
	form := url.Values{"back": {"/dead"}, "queue": {"jobs-dead"}, "which": {"all"}, "match": {"o"},
		"through": {"4"}}
	wantText(t, s.post("/dead/jobs-dead/delete", form), "this deletes 3 messages and cannot be undone")
	form.Set("confirm", "2")
	wantText(t, s.post("/dead/jobs-dead/delete", form), "but 3 messages would be deleted")
	s.wantLive("jobs-dead", 4)
	form.Set("confirm", "3")
	wantText(t, s.post("/dead/jobs-dead/delete", form), "Deleting 3 messages")
	s.settled()
	s.wantLive("jobs-dead", 1)
	page = s.get("/dead/jobs-dead/delete?queue=jobs-dead&message=" + ids[2])
	if strings.Contains(page, `name="confirm"`) {
		t.Error("one message asks for its number")
	}
	wantText(t, s.post("/dead/jobs-dead/delete", url.Values{"back": {"/dead"}, "queue": {"jobs-dead"}, "message": {ids[2]}}),
		"1 message deleted.")
	s.wantLive("jobs-dead", 0)
}

func TestBulkPageNamesTheFilterAndExportsTheSameMessages(t *testing.T) {
	s := newSite(t)
	ids := s.dead("a", "no customer", "one", "two")
	query := url.Values{"queue": {"jobs-dead"}, "which": {"all"}, "reason": {"HTTP 422 no customer"}, "match": {"o"},
		"attribute": {"tenant=a"}, "since": {"2020-01-01T00:00"}, "until": {"2120-01-01"}}
	page := html.UnescapeString(s.get("/dead/jobs-dead/delete?" + query.Encode()))
	wantText(t, page, `that failed with <code>HTTP 422 no customer</code>, whose body contains <code>o</code>, with the attribute <code>tenant=a</code>, `+
		`dead since`,
		"To keep them in a file first: <code>tendril dead export --queue jobs-dead --reason 'HTTP 422 no customer' --match o "+
			"--attribute 'tenant=a' --since 2020-01-01T00:00:00Z --until 2120-01-01T00:00:00Z --file dead.ndjson</code>")
	wantText(t, s.get("/dead/jobs-dead/redrive?which=all&queue=jobs-dead&reason="), "Nothing matches anymore.")

	query.Set("which", "rows")
	query.Set("message", ids[0])
	page = s.get("/dead/jobs-dead/delete?" + query.Encode())
	wantText(t, page, "permanently deletes one dead letter of <b>jobs-dead</b>.", "To keep all of jobs-dead",
		"<code>tendril dead export --queue jobs-dead --file dead.ndjson</code>")
}

func TestEditedDeadLetterIsSentInstead(t *testing.T) {
	s := newSite(t)
	id := s.dead("a", "", "\n{\n  \"total\": 12345678901234567890\n}")[0]
	page := s.get("/messages/" + id + "/edit?queue=jobs-dead")
	wantText(t, page, "12345678901234567890", `{&#34;tenant&#34;:&#34;a&#34;}`, "<option selected>jobs</option>")
	form := url.Values{"back": {"/queues/jobs"}, "queue": {"jobs-dead"}, "to": {"jobs"},
		"body": {"\r\n{\r\n  \"total\": 7\r\n}"}, "message-attributes": {`{"tenant":"b"}`}}
	wantText(t, s.post("/messages/"+id+"/edit", form), "the dead letter is removed")
	s.wantLive("jobs-dead", 0)
	sent, _, err := s.broker.Browse(s.Context(), "jobs", broker.BrowseRequest{})
	if err != nil || len(sent) != 1 || sent[0].Body != "\n{\n  \"total\": 7\n}" || sent[0].Attributes[0].Value != "b" {
		t.Errorf("sent %+v, %v", sent, err)
	}
}

func TestScheduledMessagesShowWhenTheyBecomeVisible(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	at := time.Now().Add(time.Hour - time.Minute)
	id := s.send("jobs", "later", queue.Attribute{Name: queue.AttributeNotBefore, Type: "String", Value: at.Format(time.RFC3339)})
	page := s.get("/messages/" + id + "?queue=jobs")
	wantText(t, page, "<dt>Sent</dt><dd>counts as sent when it becomes visible</dd>", "<dt>Visible</dt>", ">in 5")
	if strings.Contains(page, "Next attempt") {
		t.Error("a message without an attempt has a next one")
	}
	list := s.get("/queues/jobs")
	wantText(t, list, ">delayed</span>", "visible <time", `data-label="Age">–</td>`)
}

func TestListsHaveTheWordsOfTheCommands(t *testing.T) {
	s := newSite(t)
	s.dead("a", "no customer", "one")
	wantText(t, s.get("/dead?queue=jobs-dead"), "HTTP 422 no customer")
	wantText(t, s.get("/queues/jobs-dead"), ">dead</span>")
	s.runs = []api.TaskRun{{Task: "cleanup", ScheduledAt: time.Now(), Manual: true, Resent: true}}
	wantText(t, s.get("/tasks/cleanup"), "not delivered here yet", "run by hand", "possibly sent twice")
}

func TestMessagePageActs(t *testing.T) {
	s := newSite(t)
	s.queue("jobs", nil)
	s.queue("other", nil)
	id := s.send("jobs", "one")
	form := func(values ...string) url.Values {
		f := url.Values{"back": {"/messages/" + id + "?queue=jobs"}, "queue": {"jobs"}}
		for i := 0; i < len(values); i += 2 {
			f.Set(values[i], values[i+1])
		}
		return f
	}
	wantText(t, s.post("/messages/"+id+"/delay", form("seconds", "600")), "hidden for 10 min", "Retry now", "delayed")
	wantText(t, s.post("/messages/"+id+"/delay", form("seconds", "x")), "is not a whole number")
	wantText(t, s.post("/messages/"+id+"/retry", form()), "The message is visible now.")
	wantText(t, s.post("/messages/"+id+"/move", form("to", "other", "back", "/queues/other")), "moved to other", id)
}

func TestHiddenBodiesAreShownOnRequest(t *testing.T) {
	s := newSiteWith(t, console.Access{HideBodies: true})
	id := s.dead("a", "answer of the app", "a body")[0]
	page := s.get("/messages/" + id + "?queue=jobs-dead")
	wantText(t, page, "are hidden", "body=1")
	for _, secret := range []string{"a body", "answer of the app"} {
		if strings.Contains(page, secret) {
			t.Errorf("the page shows %q", secret)
		}
	}
	wantText(t, s.get("/messages/"+id+"?queue=jobs-dead&body=1"), "a body", "answer of the app")
	if page = s.get("/dead"); strings.Contains(page, "a body") {
		t.Error("the list shows a body")
	}
	wantText(t, page, "Show them")
	wantText(t, s.get("/dead?queue=jobs-dead&body=1&match=body"), "a body")
}
