package deliver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/queue"
)

func TestScheduledRun(t *testing.T) {
	t.Parallel()
	binary := queue.Attribute{Name: queue.AttributePath, Type: "Binary", Value: "/backup"}
	for _, test := range []struct {
		name       string
		attributes []queue.Attribute
		want       *scheduledRun
	}{
		{"ordinary", []queue.Attribute{text("path", "/x")}, nil},
		{"whole", []queue.Attribute{
			text(queue.AttributePath, "/backup?full=1"), text(queue.AttributeTime, "2017-03-22 23:10:00 UTC"),
			text(queue.AttributeTask, "backup-job"),
		}, &scheduledRun{&queue.Run{Path: "/backup?full=1", Task: "backup-job",
			Time: "2017-03-22 23:10:00 UTC", ScheduledAt: time.Date(2017, 3, 22, 23, 10, 0, 0, time.UTC)}, "/backup?full=1"}},
		{"path alone", []queue.Attribute{text(queue.AttributePath, "/a b")},
			&scheduledRun{&queue.Run{Path: "/a b"}, "/a%20b"}},
		{"no path", []queue.Attribute{text(queue.AttributeTask, "backup-job")}, nil},
		{"binary path", []queue.Attribute{binary}, nil},
		{"another case", []queue.Attribute{text("Beanstalk.Sqsd.Path", "/backup")}, nil},
		{"time unread", []queue.Attribute{text(queue.AttributePath, "/"), text(queue.AttributeTime, "noon")},
			&scheduledRun{&queue.Run{Path: "/", Time: "noon"}, "/"}},
	} {
		got, err := runOf(message(test.attributes...))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(scheduledRun{})); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestScheduledAt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ value, want string }{
		{"2017-03-22 23:10:00 UTC", "2017-03-22T23:10:00Z"},
		{" 2017-03-22 23:10:00 UTC ", "2017-03-22T23:10:00Z"},
		{"2017-03-22 23:10:00 +0100", "2017-03-22T22:10:00Z"},
		{"2017-03-22T23:10:00Z", "2017-03-22T23:10:00Z"},
		{"2017-03-22T23:10:00+01:00", "2017-03-22T22:10:00Z"},
		{"2017-13-22 23:10:00 UTC", "2017-13-22 23:10:00 UTC"},
		{"", ""},
	} {
		if got := scheduledAt(test.value); got != test.want {
			t.Errorf("scheduledAt(%q) = %q, want %q", test.value, got, test.want)
		}
	}
}

func TestBadTaskPathIsNeverPosted(t *testing.T) {
	t.Parallel()
	h, a := start(t, alwaysAnswer(ok200))
	for _, path := range []string{"//evil.example/", "http://evil.example/", "/../admin", "/a\r\nX: y", ""} {
		r := deliver(h, message(text(queue.AttributePath, path)))
		if r.Outcome != queue.Failed || r.Err == nil || r.Status != 0 || !r.Unsent {
			t.Errorf("path %q: %+v", path, r)
		}
	}
	want(t, deliver(h, message(text(queue.AttributePath, "//evil"))), queue.Failed, 0,
		"task path rejected: it has two slashes in a row")
	a.wantCounts(t, 0, 0)
}

func TestScheduledAtKeepsUnknownZones(t *testing.T) {
	t.Parallel()
	if got := scheduledAt("2017-03-22 23:10:00 XYZ"); got != "2017-03-22 23:10:00 XYZ" {
		t.Errorf("got %q", got)
	}
}
