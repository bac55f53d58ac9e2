package environment

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/autoscale"
	"tendril/internal/console"
	"tendril/internal/observe/event"
	"tendril/internal/observe/eventlog"
	"tendril/internal/observe/logging"
	"tendril/internal/worker"
	"tendril/queue"
)

type history struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	queues   *queues
	recent   *eventlog.Lines
	log      atomic.Pointer[eventlog.Log]
	endings  atomic.Pointer[eventlog.Endings]
	lost     losses
	failed   failures
	totals   totals
}

func newHistory(o *observer) *history {
	h := &history{opts: o.opts, life: o.life, settings: o.settings, queues: o.queues, recent: eventlog.NewLines(),
		totals: totals{opts: o.opts, life: o.life, queues: o.queues, work: o.work}, failed: failures{shown: o.shown}}
	h.lost.events = h
	o.opts.Logger.Observe(h.recordLine, h)
	return h
}

func (h *history) recordAction(a console.Act) {
	text, fields := "console action", map[string]string{"who": a.Who, "remote": a.Remote, "method": a.Method,
		"path": a.Path, "status": strconv.Itoa(a.Status)}
	kind := event.Act
	if a.Read {
		kind = event.Read
	}
	if a.Text != "" {
		fields["action"] = a.Text
	}
	if a.Subject != "" {
		fields["subject"] = a.Subject
	}
	if a.Count > 0 {
		fields["messages"] = strconv.Itoa(a.Count)
	}
	if a.Refused != "" {
		text, fields["reason"] = "console action rejected", a.Refused
	}

	h.Happened(event.Event{Kind: kind, Text: text, Fields: fields})
}

func (h *history) open(context.Context) error {
	if !h.queues.ownsDataDir() {
		return nil
	}
	h.openEndings()
	h.openEvents()
	if h.settings.now().AnyOnSQS() {
		h.openFailures()
	}
	return nil
}

func (h *history) openEndings() {
	endings := eventlog.OpenEndings(h.settings.now().DataDir, h.logWrites(eventlog.EndingsFile))
	h.endings.Store(endings)
	h.life.closeOnStop("the endings of messages", endings.Close)
}

func (h *history) openEvents() {
	s := h.settings.now()
	log := eventlog.Open(s.DataDir, h.logWrites(eventlog.CurrentFile))
	fields := map[string]string{"version": h.opts.Version, "environment": s.Name}
	if last, found := log.Newest(); found && last.Text != stopText {
		fields["previous_run"] = "did not stop cleanly"
	}
	if !h.opts.Again {
		log.Happened(event.Event{Kind: event.Start, Text: "environment started", Fields: fields})
	}
	h.log.Store(log)

	h.life.onStop("the events", func(context.Context) error {
		h.lost.flush() // after everything that reports losses
		if !h.totals.again {
			log.Happened(event.Event{Kind: event.Stop, Text: stopText, Fields: h.totals.stopFields()})
		}
		return log.Close()
	})
}

func (h *history) openFailures() {
	failed := eventlog.OpenFailures(h.settings.now().DataDir, h.logWrites(eventlog.FailuresFile))
	if err := h.failed.restore(failed); err != nil {
		h.opts.log("environment").Warn("failures of the previous run not read", "file", eventlog.FailuresFile,
			"err", err)
	}
	h.life.closeOnStop("the failures", failed.Close)
}

// logWrites returns a function that logs when writes to the file start to fail, and when they succeed again.
func (h *history) logWrites(file string) func(error) {
	return func(err error) {
		if err != nil {
			h.opts.log("environment").Warn("events not written, the newest are held in memory", "file", file,
				"err", err)
		} else {
			h.opts.log("environment").Info("writing events resumed", "file", file)
		}
	}
}

// stopText is the last event of a run. A killed process leaves a log that ends without it.
const stopText = "environment stopped"

func (h *history) Happened(e event.Event) {
	if log := h.log.Load(); log != nil {
		log.Happened(e)
	}
}

func (h *history) recordLine(r *logging.Record) {
	h.recent.Add(eventlog.Line{At: r.At, Process: cmp.Or(r.Process, eventlog.Own), Stream: r.Stream, Level: r.Level,
		Text: r.Text})
}

func (h *history) messageEnded(e eventlog.Ending) {
	if endings := h.endings.Load(); endings != nil {
		endings.Add(e)
	}
}

func (h *history) recordRemovals(ctx context.Context, removed []broker.Removal) {
	endings := h.endings.Load()
	if endings == nil {
		return
	}
	by := api.CallerName(ctx)
	endings.AddAll(len(removed), func(i int) eventlog.Ending {
		r := &removed[i]
		return eventlog.Ending{MessageID: r.ID, Queue: r.Queue, Outcome: string(r.Cause), Receives: r.Receives,
			To: r.To, By: by}
	})
}

func (h *history) recordDecision(d autoscale.Decided) {
	made := d.Decision
	fields := map[string]string{"from": fmt.Sprint(made.From), "desired": fmt.Sprint(made.Desired),
		"rule": string(made.Rule), "reason": made.Why}

	switch {
	case d.Applied:
		h.Happened(event.Event{Kind: event.Scaling, Text: "size changed", Fields: fields})
	case made.Changes():
		fields["not_applied"] = d.NotApplied
		h.Happened(event.Event{Kind: event.Scaling, Text: "size not changed", Fields: fields})
	}
}

func (h *history) kept() console.History {
	return console.History{Events: h.log.Load(), Lines: h.recent, Endings: h.endings.Load()}
}

// recordEnding records the end of a message on Amazon SQS; embedded queues report it themselves. dead is the
// dead-letter queue, or "" if the message is not dead-lettered.
func (h *history) recordEnding(w *workQueue, s *worker.Settled, dead string) {
	if w.embedded {
		return
	}
	if s.Outcome == queue.Failed && dead != "" {
		h.lost.addLoss(deadText, w.name, dead, s.Reason, 1)
	}
	outcome := s.Outcome.String()
	if dead != "" {
		outcome = api.MessageDeadLettered
	}
	if dead != "" || s.Outcome == queue.Done {
		h.messageEnded(eventlog.Ending{MessageID: s.ID, Queue: w.name, Outcome: outcome, Receives: s.ReceiveCount, To: dead})
	}
}
