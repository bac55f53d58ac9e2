package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli"
	"tendril/internal/cli/base"
	"tendril/internal/console"
	"tendril/internal/migrate"
	"tendril/queue"
)

func newStageOfQueues(t *testing.T, names ...string) *stage {
	t.Helper()
	s := newStage(t, func(_ *console.Options, i *api.Instance) {
		i.Queues = nil
		for _, name := range names {
			i.Queues = append(i.Queues, api.InstanceQueue{Name: name, DeadLetterQueue: name + "-dead", Embedded: true})
		}
	})
	for _, name := range names {
		if name == "jobs" {
			continue
		}
		if err := s.b.CreateQueue(t.Context(), name+"-dead", nil, nil); err != nil {
			t.Fatal(err)
		}
		policy := map[string]string{"RedrivePolicy": migrate.RedrivePolicy(s.b.ARN(name+"-dead"), 1)}
		if err := s.b.CreateQueue(t.Context(), name, policy, nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *stage) send(name string, die bool, bodies ...string) (ids []string) {
	s.t.Helper()
	for _, body := range bodies {
		sent, err := s.b.Queue(name).Send(s.t.Context(), []queue.Outgoing{{Body: body}})
		if err != nil || sent[0].Err != nil {
			s.t.Fatal(err, sent)
		}
		ids = append(ids, sent[0].ID)
	}
	now := time.Duration(0)
	for die {
		got, err := s.b.Queue(name).Receive(s.t.Context(), queue.ReceiveRequest{Max: 10, Wait: &now, Visibility: &now})
		if err != nil {
			s.t.Fatal(err)
		}
		die = s.live(name+"-dead") < len(bodies) || len(got) > 0
	}
	return ids
}

// Defaults of a queue argument if the environment has several queues.
const (
	meansAll     = "all"
	meansOnlyOne = "refused with the names"
	meansNone    = "a queue is an argument"
)

// queueVerbs has the default of each command with a queue argument. If that is all queues, args is run with two queues,
// each with one message and one dead letter. DEAD and OTHER are IDs of the dead letters.
var queueVerbs = []struct {
	verb, means, args string
	want              string
}{
	{"send", meansOnlyOne, "body", ""},
	{"receive", meansOnlyOne, "", ""},
	{"peek", meansAll, "", "jobs mails"},
	{"queues", meansAll, "", "jobs jobs-dead mails mails-dead"},
	{"queues list", meansAll, "", "jobs jobs-dead mails mails-dead"},
	{"queues show", meansOnlyOne, "", ""},
	{"queues create", meansNone, "", ""},
	{"queues purge", meansNone, "", ""},
	{"queues delete", meansNone, "", ""},
	{"queues pause", meansAll, "--dry-run", "pause receiving from jobs, mails"},
	{"queues resume", meansAll, "--dry-run", "resume receiving from jobs, mails"},
	{"dead list", meansAll, "", "OTHER DEAD"},
	{"dead reasons", meansAll, "", "jobs-dead mails-dead"},
	{"dead show", meansAll, "OTHER DEAD", "OTHER DEAD"},
	{"dead export", meansAll, "", "OTHER DEAD"},
	{"dead redrive", meansAll, "--all --dry-run", "messages from jobs-dead messages from mails-dead"},
	{"dead redrive", meansAll, "OTHER DEAD --dry-run", "1 message from jobs-dead 1 message from mails-dead"},
	{"dead redrive", meansOnlyOne, "--limit 1 --dry-run", ""},
	{"dead delete", meansAll, "--all --yes --dry-run", "messages from jobs-dead messages from mails-dead"},
	{"dead delete", meansOnlyOne, "--limit 1 --dry-run", ""},
	{"dead export", meansOnlyOne, "--limit 1", ""},
	{"message", meansAll, "OTHER", "mails-dead"},
	{"message show", meansAll, "OTHER", "mails-dead"},
	{"message retry", meansAll, "LIVE --dry-run", "mails"},
	{"message delay", meansAll, "LIVE --for 1m --dry-run", "mails"},
	{"message delete", meansAll, "LIVE --dry-run", "mails"},
	{"replay", meansNone, "", ""}, // searches all queues: see testdata/script/several_queues.txtar
	{"migrate", meansNone, "", ""},
	{"config set", meansNone, "", ""}, // OPTION of QUEUE
	{"config unset", meansNone, "", ""},
	{"credentials create", meansNone, "", ""}, // queues that the key pair may use
}

func TestQueueDefaultsOfEveryVerb(t *testing.T) {
	t.Parallel()
	s := newStageOfQueues(t, "jobs", "mails")
	ids := map[string]string{}
	for name, word := range map[string]string{"jobs": "DEAD", "mails": "OTHER"} {
		ids[word] = s.send(name, true, "dead of "+name)[0]
	}
	s.send("jobs", false, "waits in jobs")
	ids["LIVE"] = s.send("mails", false, "waits in mails")[0]
	insert := func(text string) string {
		for word, id := range ids {
			text = strings.ReplaceAll(text, word, id)
		}
		return text
	}

	declared := map[string]bool{}
	for _, c := range queueVerbs {
		declared[c.verb] = true
		if c.means == meansNone {
			continue
		}
		t.Run(c.verb+" "+c.args, func(t *testing.T) {
			args := strings.Fields(c.verb + " " + insert(c.args))
			out, talk, code := s.tendril("", args...)
			if c.means == meansOnlyOne {
				if code != base.ExitUsage || !strings.Contains(talk, "jobs") || !strings.Contains(talk, "mails") ||
					!strings.Contains(talk, "hint: name one: tendril "+c.verb) {
					t.Errorf("exit %d, want a refusal with the names:\n%s%s", code, out, talk)
				}
				return
			}
			for _, want := range strings.Fields(insert(c.want)) {
				if code != 0 || !strings.Contains(out, want) {
					t.Errorf("exit %d, without %q:\n%s%s", code, want, out, talk)
				}
			}
		})
	}

	walkCommands(cli.NewRoot((&base.CLI{})), nil, func(cmd *cobra.Command, words []string) {
		takes := cmd.Flags().Lookup("queue")
		if path := strings.Join(words, " "); (takes != nil && !base.IsSetting(takes) || strings.Contains(cmd.Use, "QUEUE")) &&
			!declared[path] {
			t.Errorf("%q takes a queue: add it to the table with its default", path)
		}
	})
}

func TestDeadLettersOfAllQueuesAreListedOldestFirst(t *testing.T) {
	t.Parallel()
	s := newStageOfQueues(t, "jobs", "mails", "reports")
	s.send("mails", true, "first")
	s.send("reports", true, "second")
	s.send("jobs", true, "third", "fourth")
	s.send("mails", true, "fifth", "sixth")

	bodies := func(args ...string) (got []string) {
		for _, line := range strings.Split(strings.TrimSpace(s.must(args...)), "\n")[1:] {
			fields := strings.Fields(line)
			got = append(got, fields[len(fields)-1])
		}
		return got
	}
	if diff := cmp.Diff([]string{"first", "second", "third", "fourth", "fifth", "sixth"}, bodies("dead", "list")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"first", "second", "third"}, bodies("dead", "list", "-n", "3")); diff != "" {
		t.Errorf("with a limit: %s", diff)
	}
	if diff := cmp.Diff([]string{"second"}, bodies("dead", "list", "-q", "reports")); diff != "" {
		t.Errorf("of one queue: %s", diff)
	}
}

func TestDeadLettersOfAllQueuesAreMoved(t *testing.T) {
	t.Parallel()
	s := newStageOfQueues(t, "jobs", "mails")
	jobs := s.send("jobs", true, "a", "keep")
	mails := s.send("mails", true, "b", "keep too", "by id")

	out := s.must("dead", "export")
	if n := strings.Count(out, "\n"); n != 5 {
		t.Errorf("exported %d of 5:\n%s", n, out)
	}
	s.must("dead", "redrive", mails[2], jobs[0])
	if s.live("jobs") != 1 || s.live("mails") != 1 {
		t.Errorf("by id: %d in jobs, %d in mails, want 1 in each", s.live("jobs"), s.live("mails"))
	}
	_, talk, code := s.tendril("", "dead", "redrive", jobs[1], "00000000-0000-0000-0000-000000000001")
	if code != base.ExitNotFound || !strings.Contains(talk, "jobs-dead, mails-dead") {
		t.Errorf("an id that is in none: exit %d, %s", code, talk)
	}
	s.must("dead", "redrive", "--match", "b")
	s.must("dead", "delete", "--all", "--yes")
	if s.live("jobs-dead") != 0 || s.live("mails-dead") != 0 || s.live("mails") != 2 {
		t.Errorf("%d and %d dead letters, %d in mails", s.live("jobs-dead"), s.live("mails-dead"), s.live("mails"))
	}
}

// A message's settings and target depend on its queue.
func TestReplayedFileNamesItsQueue(t *testing.T) {
	t.Parallel()
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer app.Close()
	s := newStageOfQueues(t, "jobs", "mails")
	file := filepath.Join(s.dir, "messages")
	if err := os.WriteFile(file, []byte(`{"body": "of no queue"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, talk, code := s.tendril("", "replay", file)
	if code != base.ExitUsage || !strings.Contains(talk, "--queue: one of jobs, mails") {
		t.Errorf("exit %d: %s", code, fmt.Sprint(talk))
	}
}

func walkCommands(cmd *cobra.Command, words []string, do func(cmd *cobra.Command, words []string)) {
	do(cmd, words)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			walkCommands(sub, append(slices.Clone(words), sub.Name()), do)
		}
	}
}
