package periodic

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/registry"
	"tendril/queue"
)

func TestMessageOfARun(t *testing.T) {
	t.Parallel()
	at := time.Date(2017, 3, 23, 0, 10, 0, 0, time.FixedZone("CET", 3600))
	task := Task{Name: "backup-job", URL: "/backup"}
	f := newScheduledRun(&task, Slot{ScheduledAt: at, DueAt: at.Add(time.Second)}, runID(task.Name, at), "jobs", false)
	want := registry.Run{
		Task: "backup-job", Path: "/backup", ScheduledAt: at.UTC(), DueAt: at.Add(time.Second),
		ID:    "backup-job@2017-03-22T23:10:00Z",
		Queue: "jobs",
		Message: queue.Outgoing{Body: "elasticbeanstalk scheduled job", Attributes: []queue.Attribute{
			{Name: "beanstalk.sqsd.path", Type: "String", Value: "/backup"},
			{Name: "beanstalk.sqsd.task_name", Type: "String", Value: "backup-job"},
			{Name: "beanstalk.sqsd.scheduled_time", Type: "String", Value: "2017-03-22 23:10:00 UTC"},
		}},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
	m := queue.Message{Attributes: f.Message.Attributes}
	if run := queue.ParseRun(&m); run.Task != task.Name || !run.ScheduledAt.Equal(at) || IDOf(run) != f.ID {
		t.Errorf("read back as %+v", run)
	}
	for _, missing := range []string{queue.AttributePath, queue.AttributeTask, queue.AttributeTime} {
		var less queue.Message
		for _, a := range f.Message.Attributes {
			if a.Name != missing {
				less.Attributes = append(less.Attributes, a)
			}
		}
		if id := IDOf(queue.ParseRun(&less)); id != "" {
			t.Errorf("a message without %s is a run", missing)
		}
	}
}

func TestMessageOnFIFO(t *testing.T) {
	t.Parallel()
	task := Task{Name: "reports für alle", URL: "/r", Payload: "full",
		Attributes: []queue.Attribute{{Name: "tenant", Type: "String", Value: "blue"}}}
	one := newScheduledRun(&task, Slot{ScheduledAt: noon()}, runID(task.Name, noon()),
		"https://sqs.eu-west-1.amazonaws.com/1/jobs.fifo", false).Message
	two := newScheduledRun(&task, Slot{ScheduledAt: noon().Add(time.Minute)}, runID(task.Name, noon().Add(time.Minute)),
		"jobs.fifo", false).Message
	if one.GroupID != two.GroupID || one.DedupID == two.DedupID || len(one.DedupID) != 64 || len(one.GroupID) > 128 ||
		strings.ContainsAny(one.GroupID, " ü") {
		t.Errorf("groups %q and %q, ids %q and %q", one.GroupID, two.GroupID, one.DedupID, two.DedupID)
	}
	if one.Body != "full" || len(one.Attributes) != 4 || one.Attributes[3].Value != "blue" {
		t.Errorf("message %+v", one)
	}
	for _, task := range []string{"backup-job", "!~", strings.Repeat("x", 100)} {
		if got := groupID(task); got != "periodic-"+task {
			t.Errorf("the group of %s is %s", task, got)
		}
	}
	for _, task := range []string{"a b", "a\x7f", "\x1f", strings.Repeat("x", 101)} {
		if got := groupID(task); got != "periodic-"+digest(task) {
			t.Errorf("the group of %q is %s", task, got)
		}
	}
}

func TestIDOfAManualRun(t *testing.T) {
	t.Parallel()
	for extra, want := range map[string]string{
		"":                                  "audit@2026-03-22T23:10:00Z",
		"audit@2026-03-22T23:10:00Z#ABC":    "audit@2026-03-22T23:10:00Z#ABC",
		"other@2026-03-22T23:10:00Z#ABC":    "",
		"audit@2026-03-22T23:11:00Z#ABC":    "",
		"audit@2026-03-22T23:10:00Z-or-not": "",
	} {
		m := &queue.Message{Attributes: []queue.Attribute{
			{Name: "beanstalk.sqsd.path", Type: "String", Value: "/audit"},
			{Name: "beanstalk.sqsd.scheduled_time", Type: "String", Value: "2026-03-22 23:10:00 UTC"},
			{Name: "beanstalk.sqsd.task_name", Type: "String", Value: "audit"},
		}}
		if extra != "" {
			m.Attributes = append(m.Attributes, queue.Attribute{Name: queue.AttributeRun, Type: "String", Value: extra})
		}
		if id := IDOf(queue.ParseRun(m)); id != want {
			t.Errorf("with run id %q: %q, want %q", extra, id, want)
		}
	}
	if id := IDOf(queue.ParseRun(&queue.Message{})); id != "" {
		t.Errorf("an ordinary message has the run id %q", id)
	}
}
