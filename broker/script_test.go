package broker

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

var update = flag.Bool("update", false, "rewrite the expected output of the scripts")

// A section starts with "== title" and has its own broker in virtual time. Lines that start with ">" are commands
// (methods of script), followed by their output.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var rewritten strings.Builder
			for i, section := range strings.Split(string(data), "\n== ") {
				if i == 0 {
					rewritten.WriteString(section)
					continue
				}
				title, body, _ := strings.Cut(section, "\n")
				rewritten.WriteString("\n== " + title + "\n")
				t.Run(title, func(t *testing.T) {
					dir := t.TempDir()
					synctest.Test(t, func(t *testing.T) { rewritten.WriteString(runScript(t, dir, body)) })
				})
			}
			if *update {
				if err := os.WriteFile(file, []byte(rewritten.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func runScript(t *testing.T, dir, body string) string {
	s := &script{t: t, dir: dir, handles: map[string]string{}, ids: map[string]string{}}
	s.open()
	defer func() {
		checkLedgers(t, s.b)
		s.b.Close()
	}()
	var out strings.Builder
	lines := strings.Split(body, "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		i++
		out.WriteString(line)
		if i < len(lines) || line != "" {
			out.WriteString("\n")
		}
		command, ok := strings.CutPrefix(line, "> ")
		if !ok {
			continue
		}
		var want []string
		for ; i < len(lines) && lines[i] != "" && !strings.HasPrefix(lines[i], ">") &&
			!strings.HasPrefix(lines[i], "#"); i++ {
			want = append(want, lines[i])
		}
		got := s.run(strings.Fields(command))
		if got := strings.Join(got, "\n"); got != strings.Join(want, "\n") && !*update {
			t.Errorf("> %s\ngot:\n%s\nwant:\n%s", command, got, strings.Join(want, "\n"))
		}
		for _, l := range got {
			out.WriteString(l + "\n")
		}
	}
	return out.String()
}

type script struct {
	t       *testing.T
	dir     string
	opts    Options
	b       *Broker
	handles map[string]string // h1, h2, in the order of receives
	ids     map[string]string // by body
	pending chan func() []string
	copies  int
}

func (s *script) open() {
	s.opts.Logger = quiet().Logger
	b, err := Open(s.dir, &s.opts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.b = b
}

func options(words []string) (opts map[string]string, rest []string) {
	opts = map[string]string{}
	for _, w := range words {
		if name, value, ok := strings.Cut(w, "="); ok {
			opts[name] = strings.ReplaceAll(value, "_", " ")
		} else {
			rest = append(rest, w)
		}
	}
	return opts, rest
}

func (s *script) duration(text string) *time.Duration {
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return &d
}

func describe(err error) string {
	var e *queue.Error
	if errors.As(err, &e) {
		return e.Code + ": " + e.Message
	}
	return err.Error()
}

func (s *script) run(words []string) []string {
	opts, rest := options(words[1:])
	arg := func(i int) string {
		if i < len(rest) {
			return rest[i]
		}
		return ""
	}
	ctx := s.t.Context()
	outcome := func(err error) []string {
		if err != nil {
			return []string{describe(err)}
		}
		return nil
	}
	switch words[0] {
	case "create":
		return outcome(s.b.CreateQueue(ctx, arg(0), opts, nil))
	case "set":
		return outcome(s.b.SetAttributes(ctx, arg(0), opts))
	case "drop":
		return outcome(s.b.DeleteQueue(ctx, arg(0)))
	case "purge":
		n, err := s.b.PurgeQueue(ctx, arg(0))
		return append(outcome(err), strconv.Itoa(n))
	case "list":
		return s.b.ListQueues(arg(0))
	case "sources":
		names, err := s.b.DeadLetterSources(arg(0))
		return append(outcome(err), names...)
	case "attributes":
		return s.attributes(arg(0), rest[1:])
	case "send":
		return s.send(arg(0), rest[1:], opts)
	case "receive":
		return s.receive(arg(0), opts)()
	case "poll":
		s.poll(arg(0), opts)
	case "await":
		synctest.Wait()
		return (<-s.pending)()
	case "delete":
		return s.answers(s.b.Queue(arg(0)).Delete(ctx, s.receipts(rest[1:])), rest[1:])
	case "visibility":
		return s.visibility(arg(0), rest[1:])
	case "advance":
		time.Sleep(*s.duration(arg(0)))
		synctest.Wait()
	case "counts":
		l, err := s.b.Ledger(arg(0))
		return append(outcome(err), fmt.Sprintf("visible=%d delayed=%d inflight=%d", l.Visible, l.Delayed, l.InFlight))
	case "ledger":
		return s.ledger(arg(0))
	case "age":
		age, err := s.b.OldestAge(arg(0))
		return append(outcome(err), age.Round(time.Second).String())
	case "browse":
		return s.browse(arg(0), opts)
	case "remove":
		n, err := s.b.DeleteMessages(ctx, arg(0), s.idsOf(rest[1:]))
		return append(outcome(err), strconv.Itoa(n))
	case "move":
		n, err := s.b.Move(ctx, arg(0), opts["to"], s.idsOf(rest[1:]))
		return append(outcome(err), strconv.Itoa(n))
	case "restart":
		s.close()
		s.open()
	case "kill":
		s.kill()
	default:
		s.t.Fatalf("no such command: %s", words[0])
	}
	return nil
}

func (s *script) close() {
	checkLedgers(s.t, s.b)
	if err := s.b.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) kill() {
	synctest.Wait()
	s.copies++
	next := s.dir + fmt.Sprint("-", s.copies)
	copyDir(s.t, s.dir, next)
	s.close()
	s.dir = next
	s.open()
}

func (s *script) send(name string, bodies []string, opts map[string]string) (out []string) {
	var msgs []queue.Outgoing
	for _, body := range bodies {
		m := queue.Outgoing{Body: body, GroupID: opts["group"], DedupID: opts["dedup"], Delay: s.duration(opts["delay"]),
			TraceHeader: opts["trace"]}
		for _, k := range slices.Sorted(maps.Keys(opts)) {
			if attr, kind, ok := strings.Cut(k, ":"); ok {
				m.Attributes = append(m.Attributes, queue.Attribute{Name: attr, Type: kind, Value: opts[k]})
			}
		}
		msgs = append(msgs, m)
	}
	sent, err := s.b.Queue(name).Send(s.t.Context(), msgs)
	if err != nil {
		return []string{describe(err)}
	}
	for i, r := range sent {
		switch first, known := s.bodyOf(r.ID); {
		case r.Err != nil:
			out = append(out, describe(r.Err))
		case known:
			out = append(out, bodies[i]+" is a duplicate of "+first)
		default:
			s.ids[bodies[i]] = r.ID
		}
	}
	return out
}

func (s *script) bodyOf(id string) (string, bool) {
	for body, known := range s.ids {
		if known == id {
			return body, true
		}
	}
	return "", false
}

func (s *script) receive(name string, opts map[string]string) func() []string {
	n, err := strconv.Atoi(cmp.Or(opts["n"], "10"))
	if err != nil {
		s.t.Fatal(err)
	}
	start := time.Now()
	msgs, err := s.b.Queue(name).Receive(s.t.Context(), queue.ReceiveRequest{
		Max: n, Wait: s.duration(opts["wait"]), Visibility: s.duration(opts["vt"]), AttemptID: opts["attempt"],
	})
	waited := time.Since(start)
	return func() (out []string) {
		if err != nil {
			out = append(out, describe(err))
		}
		for _, m := range msgs {
			out = append(out, s.show(&m))
		}
		if waited > 0 {
			out = append(out, "after "+waited.String())
		}
		if len(out) == 0 {
			out = []string{"nothing"}
		}
		return out
	}
}

func (s *script) show(m *queue.Message) string {
	label := ""
	for l, h := range s.handles {
		if h == m.ReceiptHandle {
			label = l
		}
	}
	if label == "" {
		label = fmt.Sprint("h", len(s.handles)+1)
		s.handles[label] = m.ReceiptHandle
	}
	text := fmt.Sprintf("%s %s count=%d", label, m.Body, m.ReceiveCount)
	if m.GroupID != "" {
		text += " group=" + m.GroupID
	}
	for _, a := range m.Attributes {
		text += fmt.Sprintf(" %s:%s=%s", a.Name, a.Type, a.Value)
	}
	if m.DeadLetterSource != "" {
		text += " from=" + m.DeadLetterSource[strings.LastIndex(m.DeadLetterSource, ":")+1:]
	}
	if known := s.ids[m.Body]; known != m.ID {
		text += " with another id than it was sent with"
	}
	return text
}

func (s *script) poll(name string, opts map[string]string) {
	s.pending = make(chan func() []string, 1)
	go func() { s.pending <- s.receive(name, opts) }()
	synctest.Wait()
}

func (s *script) receipts(labels []string) []string {
	var out []string
	for _, l := range labels {
		out = append(out, cmp.Or(s.handles[l], l))
	}
	return out
}

func (s *script) answers(errs []error, labels []string) (out []string) {
	for i, err := range errs {
		if err != nil {
			out = append(out, strings.ReplaceAll(labels[i]+" "+describe(err), s.receipts(labels[i:])[0], "H"))
		}
	}
	return out
}

func (s *script) visibility(name string, words []string) []string {
	var changes []queue.VisibilityChange
	for i := 0; i+1 < len(words); i += 2 {
		changes = append(changes,
			queue.VisibilityChange{ReceiptHandle: s.receipts(words[i : i+1])[0], Visibility: *s.duration(words[i+1])})
	}
	return s.answers(s.b.Queue(name).ChangeVisibility(s.t.Context(), changes), words)
}

func (s *script) attributes(name string, wanted []string) []string {
	all, err := s.b.Attributes(name)
	if err != nil {
		return []string{describe(err)}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if len(wanted) == 0 || slices.Contains(wanted, k) {
			out = append(out, k+"="+all[k])
		}
	}
	return out
}

func (s *script) ledger(name string) []string {
	l := s.b.TotalLedger()
	if name != "" {
		var err error
		if l, err = s.b.Ledger(name); err != nil {
			return []string{describe(err)}
		}
	}
	text := ""
	for _, f := range []struct {
		name string
		n    int64
	}{{"sent", l.Sent}, {"done", l.Done}, {"dead", l.DeadLettered}, {"in", l.MovedIn}, {"out", l.MovedOut},
		{"expired", l.Expired}, {"purged", l.Purged}, {"live", l.Live}} {
		if f.n != 0 {
			text += fmt.Sprintf(" %s=%d", f.name, f.n)
		}
	}
	return []string{cmp.Or(strings.TrimSpace(text), "empty")}
}

func (s *script) browse(name string, opts map[string]string) (out []string) {
	limit, _ := strconv.Atoi(opts["limit"])
	page, next, err := s.b.Browse(context.Background(), name, BrowseRequest{
		State: State(opts["state"]), Filter: Filter{Match: opts["match"]}, After: opts["after"], Limit: limit,
	})
	if err != nil {
		return []string{describe(err)}
	}
	for _, m := range page {
		text := fmt.Sprintf("%s %s count=%d", m.Body, m.State, m.ReceiveCount)
		if !m.Until.IsZero() {
			text += " for " + time.Until(m.Until).Round(time.Second).String()
		}
		if !m.DeadAt.IsZero() {
			text += " dead " + time.Since(m.DeadAt).Round(time.Second).String() + " ago"
		}
		out = append(out, text)
	}
	if next != "" {
		out = append(out, "next="+next)
	}
	return out
}

func (s *script) idsOf(bodies []string) []string {
	var out []string
	for _, b := range bodies {
		out = append(out, cmp.Or(s.ids[b], b))
	}
	return out
}
