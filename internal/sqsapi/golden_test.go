package sqsapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestA4A7Golden replays testdata/golden, each file with its own broker in virtual time from midnight on 1 January
// 2000.
//
//	# comment
//	+ 31s                            time passes
//	>> X-Amzn-Trace-Id: Root=1       header of the next request
//	> SendMessage                    request, with its parameters below
//	{"QueueUrl":"jobs","MessageBody":"hi"}
//	< 200                            reply: status and query error, with the
//	{"MessageId":"<id 1>"}           body below
//
// IDs and receipt handles are numbered in order of appearance, and requests can use them by that name. <12 x> means x
// twelve times.
func TestA4A7Golden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			replayFile(t, file, replay)
		})
	}
}

// replay runs in virtual time. With -update, replayFile rewrites the file.
func replayFile(t *testing.T, file string, replay func(t *testing.T, text string) string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	synctest.Test(t, func(t *testing.T) { got = replay(t, string(want)) })
	switch {
	case got == string(want):
	case *update:
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s: the handler answers otherwise (go test -update rewrites it):\n%s", file,
			firstDifference(string(want), got))
	}
}

func replay(t *testing.T, script string) string {
	t.Helper()
	p := player{h: newHandler(t, nil)}
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		if p.answered && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ">") && !strings.HasPrefix(line, "+") &&
			line != "" {
			continue
		}
		p.answered = false
		switch {
		case strings.HasPrefix(line, "+ "):
			pause, err := time.ParseDuration(line[2:])
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause)
			p.out.WriteString(line + "\n")
		case strings.HasPrefix(line, ">> "):
			p.headers = append(p.headers, line[3:])
			p.out.WriteString(line + "\n")
		case strings.HasPrefix(line, "> "):
			p.action, p.body = line[2:], ""
			p.out.WriteString(line + "\n")
		case strings.HasPrefix(line, "<"):
			p.answer(t)
		case p.action != "":
			p.body += line
			p.out.WriteString(line + "\n")
		default:
			p.out.WriteString(line + "\n")
		}
	}
	return p.out.String()
}

type player struct {
	h            *Handler
	out          strings.Builder
	action, body string
	headers      []string
	answered     bool
	scrubber     scrubber
}

func (p *player) answer(t *testing.T) {
	t.Helper()
	r := newRequest(context.Background(), p.action, p.scrubber.fill(p.body))
	for _, header := range p.headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := serve(p.h, r)
	fmt.Fprintf(&p.out, "< %d", w.Code)
	if code := w.Header().Get("X-Amzn-Query-Error"); code != "" {
		p.out.WriteString(" " + code)
	}
	p.out.WriteString("\n")
	if w.Body.Len() > 0 {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, w.Body.Bytes(), "", "  "); err != nil {
			t.Fatalf("%s answered %q: %v", p.action, w.Body, err)
		}
		p.out.WriteString(p.scrubber.scrub(pretty.String()) + "\n")
	}
	p.action, p.headers, p.answered = "", nil, true
}

type scrubber struct {
	names, values []string
	ids, handles  int
}

var (
	messageID = regexp.MustCompile(`"MessageId": "([^"]+)"`)
	handle    = regexp.MustCompile(`"ReceiptHandle": "([^"]+)"`)
	repeated  = regexp.MustCompile(`<(\d+) (.)>`)
)

func (s *scrubber) scrub(text string) string {
	for _, m := range messageID.FindAllStringSubmatch(text, -1) {
		s.add("id", m[1], &s.ids)
	}
	for _, m := range handle.FindAllStringSubmatch(text, -1) {
		s.add("handle", m[1], &s.handles)
	}
	for i := range s.values {
		text = strings.ReplaceAll(text, s.values[i], s.names[i])
	}
	return text
}

func (s *scrubber) add(kind, value string, count *int) {
	for _, known := range s.values {
		if known == value {
			return
		}
	}
	*count++
	s.values, s.names = append(s.values, value), append(s.names, fmt.Sprintf("<%s %d>", kind, *count))
}

func (s *scrubber) fill(text string) string {
	for i := range s.names {
		text = strings.ReplaceAll(text, s.names[i], s.values[i])
	}
	return repeated.ReplaceAllStringFunc(text, func(m string) string {
		parts := repeated.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[1])
		return strings.Repeat(parts[2], n)
	})
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		a, b := "(end)", "(end)"
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, a, b)
		}
	}
	return ""
}
