package environment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"tendril/api"
	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/queue"
)

// Describe describes the running environment. ctx bounds queries to AWS; failed queries are noted.
func (e *Environment) Describe(ctx context.Context) api.Description {
	now := *e.opts
	if e.life.running() {
		now.Bundle = e.changes.currentBundle()
	}

	d := now.describeOffline()
	st := e.Status()
	d.Running = true
	d.PID = os.Getpid()
	d.StartedAt = st.StartedAt
	d.State = st.State
	d.Options = describedOptions(e.settings.explanations())
	d.Ports = e.openPorts()
	if e.instance.address != "" {
		token := filepath.Join(e.settings.now().DataDir, api.TokenFile)
		d.Files = append(d.Files, api.Place{Use: "console token", At: token})
	}
	if !e.life.running() {
		d.Notes = append(d.Notes, errStarting.Error())
		return d
	}

	d.Queues, d.Notes = e.work.describeQueues(ctx)
	describeQueueSettings(d.Queues, e.settings.explanations())
	now.addResources(ctx, &d)
	d.Scaling = st.Scaling
	e.describeTasks(&d, st.Tasks)
	if e.programs.app != nil {
		d.AppVersion = e.programs.app.Version()
		d.Deployments = e.programs.app.Deployments()
	}

	change, err := e.changes.pendingChange()
	if err != nil {
		d.Notes = append(d.Notes, "the settings in the files are now invalid and would be rejected: "+refusal(err))
		return d
	}
	d.Changes = pendingChanges(&change)
	return d
}

func (e *Environment) describeTasks(d *api.Description, status *api.TasksStatus) {
	d.Tasks = status
	if status != nil {
		d.Tasks.Tasks = withoutSecrets(status.Tasks)
		d.Election = electionText(e.settings.now())
	}
	isElecting := d.Election != "" && (status == nil || status.Off == "")
	if isElecting && e.cron.election != nil {
		leader := e.cron.election.Status()
		d.Leader = &leader
	}
}

func pendingChanges(c *config.Change) (all []api.OptionChange) {
	add := func(names []string, restart bool) {
		for _, name := range names {
			p := c.Pending(name)
			all = append(all, api.OptionChange{Name: name, OptionValue: optionValue(name, p.Value, p.Origin), Restart: restart})
		}
	}
	add(c.Live, false)
	add(c.Later, true)
	return all
}

func (e *Environment) openPorts() (all []api.Place) {
	if e.instance.address != "" {
		all = append(all, api.Place{Use: "console", At: e.instance.address})
	}
	if e.queues.endpoint != "" {
		all = append(all, api.Place{Use: "queues, SQS protocol", At: strings.TrimPrefix(e.queues.endpoint, "http://")})
	}
	return append(all, e.opts.appPort()...)
}

func (p *pipelines) describeQueues(ctx context.Context) (all []api.DescribedQueue, notes []string) {
	if len(p.all) == 0 {
		return p.queues.describeAllEmbedded(), nil
	}

	all = make([]api.DescribedQueue, len(p.all))
	errs := make([]error, len(p.all))
	var described sync.WaitGroup
	for i, l := range p.all {
		described.Go(func() { all[i], errs[i] = p.queues.describeQueue(ctx, l) })
	}
	described.Wait()

	for i, err := range errs {
		if err != nil {
			notes = append(notes, "reading the attributes of "+all[i].Name+": "+err.Error())
		}
	}
	return all, notes
}

func (q *queues) describeAllEmbedded() (all []api.DescribedQueue) {
	if q.broker == nil {
		return []api.DescribedQueue{}
	}
	for _, name := range q.broker.ListQueues("") {
		if found, err := q.describeEmbedded(name); err == nil {
			all = append(all, found)
		}
	}
	return all
}

func (q *queues) describeQueue(ctx context.Context, l *pipeline) (found api.DescribedQueue, err error) {
	remote, _ := l.queue.source.(*aws.Queue)
	if remote != nil {
		found = api.DescribedQueue{Name: l.queue.name, Backend: config.BackendSQS, URL: l.queue.url, ARN: l.queue.arn,
			FIFO: l.queue.fifo}
		found.Attributes, err = remote.Attributes(ctx)
	} else {
		found, err = q.describeEmbedded(l.queue.name)
	}

	found.Target = withoutSecret(l.target.current())
	dead, _ := queue.ParseRedrivePolicy(found.Attributes["RedrivePolicy"])
	if err != nil || dead == "" {
		return found, err
	}

	if remote == nil {
		deadQueue, err := q.describeEmbedded(dead)
		found.DeadLetterQueue = &deadQueue
		return found, err
	}
	found.DeadLetterQueue = &api.DescribedQueue{Name: dead, Backend: config.BackendSQS, FIFO: l.queue.fifo}
	return found, nil // addResources completes it
}

func (q *queues) describeEmbedded(name string) (api.DescribedQueue, error) {
	attributes, err := q.broker.Attributes(name)
	if errors.Is(err, queue.ErrNoQueue) {
		err = errors.New("queue " + name + " not found")
	}
	return api.DescribedQueue{Name: name, Backend: config.BackendEmbedded, URL: q.urlOf(name), ARN: q.broker.ARN(name),
		FIFO: attributes["FifoQueue"] == "true", Attributes: attributes}, err
}
