package environment

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"tendril/internal/autoscale"
	"tendril/internal/console"
	"tendril/internal/observe/eventlog"
	"tendril/internal/observe/logging"
	"tendril/internal/worker"
	"tendril/queue"
)

// eventKinds are the log messages that are events, which are kept on disk.
var eventKinds = map[string]string{
	"deployment started":   eventlog.Deploy,
	"deployment abandoned": eventlog.Deploy,
	"deployment aborted, the old version is still serving":          eventlog.Deploy,
	"deployment failed, the old version is still serving":           eventlog.Deploy,
	"deployment rolled back, the old version is still serving":      eventlog.Deploy,
	"hook failed, the new version is serving":                       eventlog.Deploy,
	"new version is serving":                                        eventlog.Deploy,
	"deployment refused":                                            eventlog.Deploy,
	"settings changed":                                              eventlog.Deploy,
	"settings changed, a restart is needed":                         eventlog.Deploy,
	"changing the settings failed, the old ones are still in force": eventlog.Deploy,
	"periodic tasks reloaded":                                       eventlog.Deploy,
	"periodic tasks not reloaded":                                   eventlog.Deploy,
	"reload refused":                                                eventlog.Deploy,
	"leadership acquired":                                           eventlog.Leadership,
	"leadership lost":                                               eventlog.Leadership,
	"following another leader":                                      eventlog.Leadership,
	"registry refuses the leader's runs":                            eventlog.Leadership,
	"queue paused":                                                  eventlog.Pause,
	"queue is still paused":                                         eventlog.Pause,
	"queue resumed":                                                 eventlog.Pause,
	"all queues paused":                                             eventlog.Pause,
	"task paused":                                                   eventlog.Pause,
	"task resumed":                                                  eventlog.Pause,
	"breaker open":                                                  eventlog.Breaker,
	"trial failed, breaker open":                                    eventlog.Breaker,
	"breaker half-open, trial started":                              eventlog.Breaker,
	"breaker closed":                                                eventlog.Breaker,
	"scaling call failed":                                           eventlog.Scaling,
	"scale target chosen":                                           eventlog.Scaling,
	"instance is being terminated by its group: draining":           eventlog.Scaling,
	"health changed":                                                eventlog.Health,
	"process exited":                                                eventlog.Health,
	"process failed too often":                                      eventlog.Health,
	"app crashes on every message":                                  eventlog.Health,
	"app survives messages again":                                   eventlog.Health,
	"poison message detected":                                       eventlog.Health,
	"scheduled runs skipped":                                        eventlog.Task,
	"enqueueing a scheduled run failed":                             eventlog.Task,
	"periodic tasks not scheduled":                                  eventlog.Task,
	"draining, a second signal stops at once":                       eventlog.Stop,
	"clock was set, or the machine was suspended":                   eventlog.Health,
	"process stalled, messages in work may be attempted twice":      eventlog.Health,
}

// history keeps what happened: events on disk, and the last lines of the log.
type history struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	queues   *queues
	recent   *eventlog.Lines              // of the log
	log      atomic.Pointer[eventlog.Log] // nil before the data directory is this environment's, and without one
	lost     losses
	failed   failures
	totals   totals
}

// newHistory returns one that listens to the log.
func newHistory(o *observer) *history {
	h := &history{opts: o.opts, life: o.life, settings: o.settings, queues: o.queues, recent: eventlog.NewLines(),
		totals: totals{opts: o.opts, life: o.life, queues: o.queues, work: o.work}, failed: failures{shown: o.shown}}
	h.lost.record = h.add
	if o.opts.Logger != nil {
		o.opts.Logger.Observe(h.observe)
	}
	return h
}

// acted is told of what callers of the console did, or tried to do.
func (h *history) acted(a console.Act) {
	text, fields := "console act", map[string]string{"who": a.Who, "remote": a.Remote, "method": a.Method, "path": a.Path,
		"status": strconv.Itoa(a.Status)}
	if a.Subject != "" {
		fields["subject"] = a.Subject
	}
	if a.Count > 0 {
		fields["messages"] = strconv.Itoa(a.Count)
	}
	if a.Refused != "" {
		text, fields["reason"] = "console act refused", a.Refused
	}
	h.add(eventlog.Act, text, fields)
}

// open opens the log on disk. It ends after everything that is started later, and tells how that went.
func (h *history) open(context.Context) error {
	if !h.queues.ownsDataDir() {
		return nil
	}
	writes := func(file string) func(error) {
		return func(err error) {
			if err != nil {
				h.opts.Logger.Warn("events not written, the newest are held in memory", "component", "environment", "file", file,
					"err", err)
			} else {
				h.opts.Logger.Info("events written again", "component", "environment", "file", file)
			}
		}
	}
	log := eventlog.Open(h.settings.now().DataDir, writes(eventlog.CurrentFile))
	fields := map[string]string{"version": h.opts.Version, "environment": h.settings.now().Name}
	if last, found := log.Newest(); found && last.Text != stopText {
		fields["previous_run"] = "ended without a stop"
	}
	log.Add(eventlog.Start, "environment started", fields)
	h.log.Store(log)
	h.life.steps.push("the events", func(context.Context) error {
		h.lost.flush() // after all that reports losses
		log.Add(eventlog.Stop, stopText, h.totals.stopFields())
		return log.Close()
	})
	if !h.settings.now().AnyOnSQS() {
		return nil
	}
	failed := eventlog.OpenFailures(h.settings.now().DataDir, writes(eventlog.FailuresFile))
	if err := h.failed.restore(failed); err != nil {
		h.opts.Logger.Warn("failures of the last run not read", "component", "environment", "file", eventlog.FailuresFile,
			"err", err)
	}
	h.life.steps.push("the failures", func(context.Context) error { return failed.Close() })
	return nil
}

// stopText is the text of the last event of a run that was not killed.
const stopText = "environment stopped"

// add records an event, where events are kept.
func (h *history) add(kind, text string, fields map[string]string) {
	if log := h.log.Load(); log != nil {
		log.Add(kind, text, fields)
	}
}

// observe is told of each line of the log.
func (h *history) observe(r *logging.Record) {
	h.recent.Add(eventlog.Line{At: r.At, Process: cmp.Or(r.Process, eventlog.Own), Stream: r.Stream, Level: r.Level,
		Text: r.Text})
	if kind := eventKinds[r.Message]; kind != "" && r.Process == "" && r.Level >= slog.LevelInfo {
		h.add(kind, r.Message, fieldsOf(r.Attrs))
	}
}

// fieldsOf are the attributes of a log line as the fields of an event.
func fieldsOf(attrs []slog.Attr) map[string]string {
	fields := map[string]string{}
	for _, a := range attrs {
		name, isMillis := strings.CutSuffix(a.Key, "_ms")
		switch {
		case a.Key == "component" || a.Key == "hint":
		case isMillis && a.Value.Kind() == slog.KindInt64:
			fields[name] = (time.Duration(a.Value.Int64()) * time.Millisecond).String()
		case a.Value.String() != "":
			fields[a.Key] = a.Value.String()
		}
	}
	return fields
}

// decided is told of the decisions about the size.
func (h *history) decided(d autoscale.Decided) {
	fields := map[string]string{"from": fmt.Sprint(d.From), "desired": fmt.Sprint(d.Desired), "rule": string(d.Rule),
		"reason": d.Why}
	switch {
	case d.Applied:
		h.add(eventlog.Scaling, "size changed", fields)
	case d.Changes():
		fields["not_applied"] = d.NotApplied
		h.add(eventlog.Scaling, "size not changed", fields)
	}
}

// kept is what the console shows.
func (h *history) kept() console.History {
	return console.History{Events: h.log.Load(), Lines: h.recent}
}

// settled remembers the last failure of a message on Amazon SQS, which is all that is known of a dead letter. An
// embedded queue reports its dead letters itself. dead is "" where the message comes again.
func (h *history) settled(w *workQueue, s *worker.Settled, dead string) {
	if !w.embedded && s.Outcome == queue.Failed && dead != "" {
		h.lost.add(deadText, w.name, dead, s.Reason, 1)
	}
}
