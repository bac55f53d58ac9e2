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
	*observer

	mu    sync.Mutex
	found map[string]health.StoredProblem // by text

	refreshing  sync.Mutex // also guards elsewhere and elsewhereAt
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
	p.refreshing.Lock()
	defer p.refreshing.Unlock()
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
	if p.isLeftBehind(name) && ledger.Live > 0 {
		all = append(all, health.StoredProblem{Queue: name, Remedy: "add it to --queues, or move them to another queue",
			Text: fmt.Sprintf("%s left in queue %s, which this environment does not receive from",
				messagesText(ledger.Live), name)})
	}
	return all
}

func (p *problems) isLeftBehind(name string) bool {
	if p.opts.QueuesOnly || p.queues.named(name) != nil || p.queues.broker.Received(name) {
		return false
	}
	dead, _, err := p.queues.broker.Redrive(name)
	return err == nil && dead == queue.DeadLetterName(name)
}

func (p *problems) leftElsewhere() []health.StoredProblem {
	if time.Since(p.elsewhereAt) >= leftBehindRefresh {
		p.elsewhere = p.findElsewhere()
		p.elsewhereAt = time.Now()
	}
	return p.elsewhere
}

func (p *problems) findElsewhere() []health.StoredProblem {
	switch {
	case p.opts.QueuesOnly:
	case p.queues.broker != nil:
		return p.findInSharedDir()
	case p.queues.ownsDataDir():
		dir := p.settings.now().DataDir
		return p.leftIn(dir, "move them with 'tendril migrate --from embedded --to sqs', or delete "+
			filepath.Join(dir, databaseFile), nil)
	}
	return nil
}

// findInSharedDir searches the directory that older versions shared between environments.
func (p *problems) findInSharedDir() []health.StoredProblem {
	s, dir := p.settings.now(), p.opts.stateFolder()
	if p.opts.Config.IsSet("data-dir") || dir == "" || dir == s.DataDir || !exists(filepath.Join(dir, databaseFile)) {
		return nil
	}
	release, err := api.Claim(dir)
	if err != nil {
		return nil // in use
	}
	defer func() { _ = release() }()
	isOwn := func(name string) bool {
		return slices.ContainsFunc(s.Queues, func(set config.QueueSettings) bool {
			return name == set.Name || name == queue.DeadLetterName(set.Name)
		})
	}
	return p.leftIn(dir, "run an environment on them with 'tendril up --data-dir "+dir+"' until they are done", isOwn)
}

// isOwn may be nil.
func (p *problems) leftIn(dir, hint string, isOwn func(queue string) bool) (all []health.StoredProblem) {
	queues, err := broker.Inspect(dir)
	if err != nil {
		p.opts.log("environment").Debug("stored queues not read", "dir", dir, "err", err)
	}
	for _, q := range queues {
		if q.Messages > 0 && (isOwn == nil || isOwn(q.Name)) {
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
