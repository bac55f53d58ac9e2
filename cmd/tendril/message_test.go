package main

import (
	"encoding/json"
	"strings"
	"testing"

	"tendril/api"
	"tendril/internal/cli/base"
)

func TestMessageVerbs(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	id := strings.TrimSpace(s.must("send", "--queue", "jobs", "--attr", "tenant=a", "plum"))
	if out := s.must("message", "show", id); !strings.Contains(out, "attribute tenant") || !strings.Contains(out, "plum") {
		t.Errorf("show:\n%s", out)
	}
	var m api.Message
	if out := s.must("message", "show", id, "-o", "json"); json.Unmarshal([]byte(out), &m) != nil || m.ID != id ||
		m.Queue != "jobs" || m.Body != "plum" {
		t.Errorf("show -o json: %s", out)
	}
	if _, talk, code := s.tendril("", "message", "delay", id, "--for", "10m"); code != 0 ||
		!strings.Contains(talk, "in jobs is hidden until") {
		t.Errorf("delay: exit %d, %s", code, talk)
	}
	if _, talk, code := s.tendril("", "message", "retry", id, "--queue", "jobs"); code != 0 ||
		!strings.Contains(talk, "is visible in jobs") {
		t.Errorf("retry: exit %d, %s", code, talk)
	}
	for want, args := range map[string][]string{
		"use 1s to 12h":    {"delay", id, "--for", "13h"},
		"not found in any": {"retry", "00000000-0000-0000-0000-000000000000"},
		"has no message":   {"show", "nonsense", "--queue", "jobs"},
	} {
		if _, talk, code := s.tendril("", append([]string{"message"}, args...)...); code == 0 ||
			!strings.Contains(talk, want) {
			t.Errorf("%v: exit %d, %s", args, code, talk)
		}
	}
	s.must("message", "delete", id)
	if n := s.live("jobs"); n != 0 {
		t.Errorf("%d messages are left", n)
	}
	dead := s.deadLetter("broken")[0]
	if _, talk, code := s.tendril("", "message", "retry", dead); code != base.ExitConflict ||
		!strings.Contains(talk, "tendril dead redrive "+dead) {
		t.Errorf("retrying a dead letter: exit %d, %s", code, talk)
	}
}

func TestDeadVerbsTakeFilters(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	s.deadLetter("apple", "banana", "cherry", "apple pie")
	if out := s.must("dead", "list", "--match", "apple", "--since", "1h"); strings.Count(out, "apple") != 2 {
		t.Errorf("list:\n%s", out)
	}
	if _, talk, code := s.tendril("", "dead", "redrive", "--until", "1h"); code != 0 ||
		!strings.Contains(talk, "0 messages moved") {
		t.Errorf("until an hour ago: exit %d, %s", code, talk)
	}
	if _, talk, code := s.tendril("", "dead", "redrive", "--attribute", "tenant=a"); code != 0 ||
		!strings.Contains(talk, "0 messages moved") {
		t.Errorf("by an attribute that none has: exit %d, %s", code, talk)
	}
	for _, args := range [][]string{{"list"}, {"redrive", "--all"}, {"delete", "--yes"}, {"export"}} {
		args = append([]string{"dead"}, append(args, "--attribute", "=x")...)
		if out, talk, code := s.tendril("", args...); code != base.ExitUsage || out != "" || s.live("jobs-dead") != 4 ||
			talk != "tendril: invalid attribute filter \"=x\"\nhint: use NAME or NAME=VALUE\n" {
			t.Errorf("%v: exit %d, %s%s", args, code, out, talk)
		}
	}
	if _, talk, code := s.tendril("", "dead", "redrive", "--match", "banana", "--rate", "100/s"); code != 0 ||
		!strings.Contains(talk, "1 message moved") || s.live("jobs") != 1 {
		t.Errorf("redrive: exit %d, %s", code, talk)
	}
	if _, talk, code := s.tendril("", "dead", "delete", "--match", "apple"); code != base.ExitUsage ||
		!strings.Contains(talk, "2 messages") {
		t.Errorf("unconfirmed: exit %d, %s", code, talk)
	}
	if _, talk, code := s.tendril("", "dead", "delete", "--match", "apple", "--yes"); code != 0 ||
		!strings.Contains(talk, "2 messages deleted") || s.live("jobs-dead") != 1 {
		t.Errorf("delete: exit %d, %s", code, talk)
	}
	if _, talk, code := s.tendril("", "dead", "list", "--since", "yesterday"); code != base.ExitUsage ||
		!strings.Contains(talk, "--since") {
		t.Errorf("a bad time: exit %d, %s", code, talk)
	}
}
