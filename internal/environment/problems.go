package environment

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/config"
	"tendril/internal/observe/health"
	"tendril/queue"
)

const (
	problemInterval   = 10 * time.Second
	leftBehindRefresh = time.Minute
)

type problems struct {
	opts     *Options
	settings *settings
	queues   *queues
	work     *pipelines

	mu    sync.Mutex
	found map[string]health.StoredProblem

	looking     sync.Mutex
	elsewhere   []health.StoredProblem
	elsewhereAt time.Time
}

func (p *problems) watch(ctx context.Context) {
	tick := time.Tick(problemInterval)
	for {
		p.refresh()
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

func (p *problems) refresh() {
	p.looking.Lock()
	defer p.looking.Unlock()
	found := map[string]health.StoredProblem{}
	for _, one := range append(p.findHere(), p.leftElsewhere()...) {
		found[one.Text] = one
	}
	p.mu.Lock()
	before := p.found
	p.found = found
	p.mu.Unlock()

	for _, text := range slices.Sorted(maps.Keys(found)) {
		if _, known := before[text]; !known {
			p.opts.log("environment").Warn("problem with stored messages", "queue", found[text].Queue,
				"reason", text, "hint", found[text].Remedy)
		}
	}
	for text, one := range before {
		if _, still := found[text]; !still {
			p.opts.log("environment").Info("problem with stored messages resolved", "queue", one.Queue,
				"reason", text)
		}
	}
}

func (p *problems) list() (all []health.StoredProblem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range slices.Sorted(maps.Keys(p.found)) {
		one := p.found[text]
		one.Text += "."
		all = append(all, one)
	}
	return all
}

func (p *problems) findHere() (all []health.StoredProblem) {
	for _, l := range p.work.all {
		r, _ := p.work.depths.onSQS(l.queue.name, time.Now())
		q := api.Queue{DeadLetterQueue: r.deadLetterQueue, DeadLetterQueueMissing: r.deadLetterQueueMissing}
		if text := q.Problem(); text != "" {
			all = append(all, health.StoredProblem{Queue: l.queue.name, Text: "queue " + l.queue.name + ": " + text,
				Remedy: "type 'tendril queues create " + r.deadLetterQueue + " --backend sqs --no-dead-letter-queue'"})
		}
	}
	if p.queues.broker == nil {
		return all
	}

	for _, name := range p.queues.broker.ListQueues("") {
		ledger, err := p.queues.broker.Ledger(name)
		if err != nil {
			continue
		}
		all = append(all, p.ofEmbedded(name, ledger)...)
	}
	return all
}

func (p *problems) ofEmbedded(name string, ledger broker.Ledger) (all []health.StoredProblem) {
	missing := p.queues.broker.MissingDeadLetterQueue(name)
	q := api.Queue{Ledger: ledger, DeadLetterQueue: missing, DeadLetterQueueMissing: missing != ""}
	if text := q.Problem(); text != "" {
		hint := "inspect them with 'tendril peek " + name + " --state damaged', send them again, and delete them"
		if missing != "" {
			hint = "type 'tendril queues create " + missing + " --no-dead-letter-queue'"
		}
		all = append(all, health.StoredProblem{Queue: name, Text: "queue " + name + ": " + text, Remedy: hint})
	}
	if p.isLeft(name) && ledger.Live > 0 {
		all = append(all, health.StoredProblem{Queue: name, Text: fmt.Sprintf("%s left in queue %s, which this environment does not receive from",
			messagesText(ledger.Live), name), Remedy: "add it to --queues, or move them to another queue"})
	}
	return all
}

func (p *problems) isLeft(name string) bool {
	dead, _, err := p.queues.broker.Redrive(name)
	return err == nil && !p.opts.QueuesOnly && p.queues.named(name) == nil && dead == queue.DeadLetterName(name) && !p.queues.broker.Received(name)
}

func (p *problems) leftElsewhere() []health.StoredProblem {
	if time.Since(p.elsewhereAt) >= leftBehindRefresh {
		p.elsewhere = p.findElsewhere()
		p.elsewhereAt = time.Now()
	}
	return p.elsewhere
}

func (p *problems) findElsewhere() (all []health.StoredProblem) {
	if p.opts.QueuesOnly {
		return nil
	}
	s := p.settings.now()
	if p.queues.broker == nil {
		if !p.queues.ownsDataDir() {
			return nil
		}
		return p.leftIn(s.DataDir, "move them with 'tendril migrate --from embedded --to sqs', or delete "+
			filepath.Join(s.DataDir, databaseFile), func(string) bool { return true })
	}

	state := p.opts.stateFolder()
	if p.opts.Config.IsSet("data-dir") || state == "" || state == s.DataDir || !exists(filepath.Join(state, databaseFile)) {
		return nil
	}
	release, err := api.Claim(state)
	if err != nil {
		return nil
	}
	defer func() { _ = release() }()
	return p.leftIn(state, "run an environment on them with 'tendril up --data-dir "+state+"' until they are done", func(name string) bool {
		return slices.ContainsFunc(s.Queues, func(set config.QueueSettings) bool {
			return name == set.Name || name == queue.DeadLetterName(set.Name)
		})
	})
}

func (p *problems) leftIn(dir, hint string, concerns func(queue string) bool) (all []health.StoredProblem) {
	queues, err := broker.Inspect(dir)
	if err != nil {
		p.opts.log("environment").Debug("stored queues not read", "dir", dir, "err", err)
	}
	for _, q := range queues {
		if q.Messages > 0 && concerns(q.Name) {
			all = append(all, health.StoredProblem{Queue: q.Name, Text: fmt.Sprintf(
				"this environment does not receive %s of the embedded queue %s in %s", messagesText(q.Messages), q.Name,
				dir), Remedy: hint})
		}
	}
	return all
}

func messagesText(n int64) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}
