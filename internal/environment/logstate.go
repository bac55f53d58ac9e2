package environment

import (
	"cmp"
	"log/slog"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	maxStacks      = 4 << 20 // bytes
	maxStackGroups = 200     // lines
	maxStackDepth  = 24      // functions in a line
	maxStateQueues = 200
)

// LogState logs goroutines grouped by stack, and the state of the environment and its parts. Goroutines come first,
// since the rest takes locks.
func LogState(e *Environment) {
	log := e.opts.log("environment")
	logGoroutines(log, readStacks())

	st := e.Status()
	attrs := []any{"state", st.State, "uptime_ms", time.Since(st.StartedAt).Milliseconds(), "version", e.opts.Version,
		"goroutines", runtime.NumGoroutine()}
	if !e.life.running() {
		log.Info("environment state", attrs...)
		return
	}
	if e.programs.app != nil {
		attrs = append(attrs, "app_version", e.programs.app.Version())
	}
	if !e.opts.QueuesOnly {
		report := e.observe.monitor.Report()
		attrs = append(append(attrs, "status", string(report.Status)), report.LogAttrs()...)
	}
	log.Info("environment state", attrs...)

	e.queues.logQueues(log)
	for i := range st.Workers {
		w := &st.Workers[i]
		log.Info("worker state", "queue", w.Queue, "target", w.Target, "receiving", w.Receiving,
			"reason", strings.Join(w.GateReasons, "; "), "in_work", w.InWork, "concurrency", w.Concurrency,
			"prefetched", w.Prefetched, "received", w.Received, "done", w.Done, "failed", w.Failed,
			"oldest_ms", int64(w.OldestSeconds*1000))
	}
	for i := range st.App {
		p := &st.App[i]
		log.Info("process state", "process", p.Name, "state", p.State, "pid", p.PID, "ready", p.Ready,
			"restarts", p.Restarts, "memory", p.Memory, "last_exit", p.LastExit)
	}
	if d := st.Deployment; d != nil {
		log.Info("last deployment state", "state", d.State, "step", d.Step, "from", d.From, "to", d.To)
	}
}

func (q *queues) logQueues(log *slog.Logger) {
	if q.broker == nil {
		return
	}
	names := q.broker.ListQueues("")
	for _, name := range names[:min(len(names), maxStateQueues)] {
		l, err := q.broker.Ledger(name)
		if err != nil {
			continue
		}
		log.Info("queue state", "queue", name, "visible", l.Visible, "in_flight", l.InFlight, "delayed", l.Delayed,
			"done", l.Done, "dead_lettered", l.DeadLettered)
	}
	if left := len(names) - maxStateQueues; left > 0 {
		log.Info("queues omitted", "queues", left)
	}
}

func readStacks() string {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) || len(buf) >= maxStacks {
			return string(buf[:n])
		}
		buf = make([]byte, 2*len(buf))
	}
}

type stackGroup struct {
	state, stack string
	count        int
}

func logGoroutines(log *slog.Logger, stacks string) {
	groups := groupStacks(stacks)
	for _, g := range groups[:min(len(groups), maxStackGroups)] {
		log.Info("goroutines", "count", g.count, "state", g.state, "stack", g.stack)
	}
	if left := len(groups) - maxStackGroups; left > 0 {
		log.Info("goroutines omitted", "groups", left)
	}
}

var stackHead = regexp.MustCompile(`^goroutine \d+(?: [^\[]*)?\[([a-zA-Z .()-]+?)(?:, [^\]]*)?\]:$`)

func groupStacks(stacks string) (groups []stackGroup) {
	at := map[stackGroup]int{}
	for one := range strings.SplitSeq(strings.TrimSpace(stacks), "\n\n") {
		lines := strings.Split(one, "\n")
		head := stackHead.FindStringSubmatch(lines[0])
		if head == nil {
			continue
		}
		key := stackGroup{state: head[1], stack: oneLineStack(lines[1:])}
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key], groups = i, append(groups, key)
		}
		groups[i].count++
	}

	slices.SortStableFunc(groups, func(a, b stackGroup) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.stack, b.stack))
	})
	return groups
}

func oneLineStack(lines []string) string {
	var calls []string
	for _, line := range lines {
		if line == "" || line[0] == '\t' {
			continue
		}
		line, _, _ = strings.Cut(line, " in goroutine ")
		if end := strings.LastIndexByte(line, '('); end > 0 && !strings.HasPrefix(line, "created by ") {
			line = line[:end]
		}
		calls = append(calls, line)
	}
	if len(calls) > maxStackDepth {
		calls = append(calls[:maxStackDepth-1], "...", calls[len(calls)-1])
	}
	return strings.Join(calls, " < ")
}
