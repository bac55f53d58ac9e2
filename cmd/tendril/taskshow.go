package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"tendril/console"
)

// taskTable shows tasks; their schedules in words name the time zone.
func taskTable(tasks []console.Task) [][]string {
	rows := [][]string{{"TASK", "SCHEDULE", "NEXT", "LAST RUN", "OUTCOME", "NOTE"}}
	for i := range tasks {
		t := &tasks[i]
		next, last, outcome := "-", "-", "-"
		if len(t.Next) > 0 {
			next = clock(t.Next[0], t.Zone)
		}
		if t.Last != nil {
			last, outcome = clock(t.Last.ScheduledAt, t.Zone), runText(t.Last)
		}
		rows = append(rows, []string{plain(t.Name, false), t.Words, next, last, outcome, noteText(t)})
	}
	return rows
}

// noteText says what keeps a task from being enqueued.
func noteText(t *console.Task) string {
	var notes []string
	if t.Paused {
		notes = append(notes, pausedText(true, t.PauseReason))
	}
	if t.Failing > 0 {
		notes = append(notes, fmt.Sprintf("ENQUEUEING FAILS, %s in a row", plural(t.Failing, "time")))
	}
	return strings.Join(notes, "; ")
}

// clock is a time of a schedule in its zone; an unknown zone is shown as the
// offset that came with it.
func clock(at time.Time, zone string) string {
	if at.IsZero() {
		return "-"
	}
	if place, err := time.LoadLocation(zone); err == nil {
		at = at.In(place)
	}
	layout := "2006-01-02 15:04 MST"
	if at.Second() != 0 {
		layout = "2006-01-02 15:04:05 MST"
	}
	return at.Format(layout)
}

// runText says in a few words what became of a run.
func runText(r *console.TaskRun) string {
	text := r.Outcome
	switch {
	case r.Skipped != "":
		return "left out: " + plain(r.Skipped, false)
	case r.Outcome == "" && r.Attempts == 0:
		return "not delivered here yet"
	case r.Status != 0:
		text += " " + strconv.Itoa(r.Status)
	}
	if r.Reason != "" {
		text += ": " + plain(r.Reason, false)
	}
	text += " in " + (time.Duration(r.DurationMS) * time.Millisecond).String()
	if r.Attempts > 1 {
		text += fmt.Sprintf(" (attempt %d)", r.Attempts)
	}
	return text
}

// runTable is the history. Times are in UTC, as the runs' ids have them.
func runTable(runs []console.TaskRun) [][]string {
	rows := [][]string{{"TASK", "SCHEDULED", "LATE", "OUTCOME", "MESSAGE", "NOTE"}}
	for i := range runs {
		r := &runs[i]
		late := "-"
		if !r.EnqueuedAt.IsZero() {
			late = (time.Duration(r.LatenessMS) * time.Millisecond).String()
		}
		rows = append(rows, []string{plain(r.Task, false), clock(r.ScheduledAt, "UTC"), late, runText(r), or(r.MessageID),
			originText(r)})
	}
	return rows
}

// originText says what is special about how a run was enqueued.
func originText(r *console.TaskRun) string {
	var notes []string
	if r.Manual {
		notes = append(notes, "run by hand")
	}
	if r.Resent {
		notes = append(notes, "perhaps sent twice")
	}
	if r.RunID == "" && r.Skipped == "" {
		notes = append(notes, "enqueued elsewhere")
	}
	return strings.Join(notes, ", ")
}

// leaderText says who enqueues the tasks, or why nobody does.
func leaderText(st *console.TasksStatus) string {
	l := &st.Leader
	text := "led by nobody that is known"
	switch {
	case st.Off != "":
		return "NOT SCHEDULED: " + plain(st.Off, false)
	case l.Local:
		return "led by this instance, declared the only one (--leader local)"
	case l.Leading:
		text = fmt.Sprintf("led by this instance (term %d)", l.Term)
	case l.Holder != "":
		seen := age(time.Duration(l.AgeSeconds * float64(time.Second)))
		text = fmt.Sprintf("led by %s (term %d), seen %s ago", plain(l.Holder, false), l.Term, seen)
	}
	if l.Error != "" {
		text += "; the registry: " + plain(l.Error, false)
	}
	return text
}

// tasksText is the line of the status about periodic tasks.
func tasksText(st *console.TasksStatus) string {
	text := fmt.Sprintf("%d, %s", len(st.Tasks), leaderText(st))
	if st.Off != "" {
		return text
	}
	var first *console.Task
	for i := range st.Tasks {
		t := &st.Tasks[i]
		if !t.Paused && len(t.Next) > 0 && (first == nil || t.Next[0].Before(first.Next[0])) {
			first = t
		}
	}
	if first != nil {
		text += fmt.Sprintf("; next %s, %s", plain(first.Name, false), clock(first.Next[0], first.Zone))
	}
	if paused := countPaused(st.Tasks); paused > 0 {
		text += fmt.Sprintf("; %d PAUSED", paused)
	}
	return text
}

func countPaused(tasks []console.Task) int {
	n := 0
	for i := range tasks {
		if tasks[i].Paused {
			n++
		}
	}
	return n
}
