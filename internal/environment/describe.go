package environment

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"tendril/api"
	"tendril/internal/autoscale"
	"tendril/internal/bundle"
	"tendril/internal/cloud"
	"tendril/internal/config"
	"tendril/internal/cron/tasks"
	"tendril/internal/observe/telemetry"
	"tendril/queue"
)

// UseBundle is the Use of the app's folder in a description.
const UseBundle = "bundle"

const (
	kindGroup    = "Auto Scaling group"
	kindFunction = "Lambda function"
	kindBucket   = "S3 bucket"
	kindArchives = "app archives"
	kindMetrics  = "CloudWatch namespace"
)

// Describe describes the environment that these options would create, and its AWS resources. ctx bounds queries to AWS;
// failed queries are noted.
func (o *Options) Describe(ctx context.Context) api.Description {
	d := o.describeOffline()
	o.addResources(ctx, &d)
	return d
}

func (o *Options) describeOffline() api.Description {
	s := &o.Config.Settings
	explained := o.Config.ExplainAll()
	d := api.Description{
		Environment: s.Name, Version: o.Version, Region: s.Region, Processes: o.describedProcesses(),
		Options: describedOptions(explained), Places: api.Places{Files: o.describedFiles()},
		Resources: []api.Resource{}, Scaling: plannedScaling(o.Config),
	}

	if o.CronFile() != "" || mayScaleInstances(s) {
		d.Election = electionText(s)
	}
	if !o.QueuesOnly {
		for i := range s.Queues {
			d.Queues = append(d.Queues, o.plannedQueue(&s.Queues[i]))
		}
	}
	describeQueueSettings(d.Queues, explained)
	if o.HasApp() && o.Bundle != nil {
		d.AppVersion = o.Bundle.Dir
	}

	if path := o.CronFile(); path != "" {
		d.Tasks = &api.TasksStatus{File: path, Off: "nothing is running"}
		if file, err := tasks.Read(path); err == nil {
			d.Tasks.Tasks = withoutSecrets(tasks.Describe(file))
		} else {
			d.Notes = append(d.Notes, "reading the periodic tasks: "+err.Error())
		}
	}

	if s.Console != config.Off {
		d.Ports = append(d.Ports, api.Place{Use: "console", At: s.Console})
	}
	if s.AnyEmbedded() || o.QueuesOnly {
		d.Ports = append(d.Ports, api.Place{Use: "queues, SQS protocol", At: s.Listen})
	}
	d.Ports = append(d.Ports, o.appPort()...)
	return d
}

func (o *Options) plannedQueue(set *config.QueueSettings) api.DescribedQueue {
	s := &o.Config.Settings
	q := api.DescribedQueue{Name: set.Name, Backend: set.Backend, URL: set.URL, FIFO: set.FIFO(),
		Target: withoutSecret(o.targetText(set))}
	if set.Backend != config.BackendEmbedded {
		if set.Managed {
			q.DeadLetterQueue = &api.DescribedQueue{Name: queue.DeadLetterName(set.Name), Backend: set.Backend}
		}
		return q
	}

	created, own := ownAttributes(s, set)
	dead := queue.DeadLetterName(set.Name)
	q.ARN = embeddedARN(s, set.Name)
	q.DeadLetterQueue = &api.DescribedQueue{Name: dead, Backend: set.Backend, ARN: embeddedARN(s, dead),
		FIFO: set.FIFO(), Attributes: created}
	q.Attributes = own
	maps.Copy(q.Attributes, created)
	return q
}

func (o *Options) targetText(set *config.QueueSettings) string {
	path := pathWithoutQuery(set.HTTPPath)
	switch {
	case set.Function != "":
		return "lambda:" + set.Function
	case set.Lambda != "":
		return set.Lambda
	case set.Target != "":
		return strings.TrimSuffix(set.Target, "/") + path
	}
	return ownAddress(&o.Config.Settings) + path
}

func (o *Options) describedProcesses() (all []api.DescribedProcess) {
	add := func(name, command string) {
		p := api.DescribedProcess{Name: name, Command: withoutSecret(command)}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}

	if len(o.Command) > 0 {
		add(bundle.MainProcess, strings.Join(o.Command, " "))
	} else if o.Bundle != nil {
		for _, p := range o.Bundle.Processes {
			add(p.Name, p.Command)
		}
	}
	for i := range o.Config.Queues {
		if q := &o.Config.Queues[i]; runsHere(*q) {
			add("function", q.Lambda)
		}
	}
	return all
}

func (o *Options) describedFiles() (all []api.Place) {
	add := func(use, path string) {
		at, err := filepath.Abs(path)
		if err != nil {
			at = path
		}
		p := api.Place{Use: use, At: at}
		if path != "" && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}

	s := &o.Config.Settings
	add("data directory", s.DataDir)
	add("settings file", s.ConfigFile)
	if b := o.Bundle; b != nil {
		add(UseBundle, b.Dir)
		for _, setting := range b.InForce() {
			add("settings of the bundle", setting.File)
		}
	}

	add("periodic tasks", o.CronFile())
	add("app logs", s.AppLogDir)
	add("PID file", s.PIDFile)
	add("certificate", s.ConsoleTLSCert)
	add("certificate key", s.ConsoleTLSKey)
	return all
}

func (o *Options) appPort() []api.Place {
	if !o.HasApp() {
		return nil
	}
	return []api.Place{{Use: "app", At: strings.TrimPrefix(ownAddress(&o.Config.Settings), "http://")}}
}

func describedOptions(all []config.Explanation) (options []api.DescribedOption) {
	for i := range all {
		e := &all[i]
		o := api.DescribedOption{Name: e.Option.Name, OptionValue: optionValue(e.Option.Name, e.Value, e.From)}
		if len(e.Chain) > 1 {
			for _, set := range e.Chain {
				o.SetBy = append(o.SetBy, optionValue(o.Name, set.Value, set.Origin))
			}
		}
		options = append(options, o)
	}
	return options
}

func describeQueueSettings(queues []api.DescribedQueue, all []config.Explanation) {
	for i := range all {
		for _, explained := range all[i].Queues {
			at := slices.IndexFunc(queues, func(q api.DescribedQueue) bool { return q.Name == explained.Name })
			if at < 0 {
				continue
			}
			for _, s := range explained.Settings {
				queues[at].Settings = append(queues[at].Settings,
					api.DescribedOption{Name: s.Key, OptionValue: optionValue(s.Key, s.Value, s.From)})
			}
		}
	}
}

// optionValue hides the query of a path, because it may contain a secret.
func optionValue(name, value string, from config.Origin) api.OptionValue {
	name, _, _ = strings.Cut(strings.ReplaceAll(name, "_", "-"), " of ")
	if o, found := config.Lookup(name); found {
		value = o.WithoutQuery(value)
	}
	return api.OptionValue{Value: value, Layer: from.Layer.String(), Where: from.Where}
}

func withoutSecrets(list []api.Task) []api.Task {
	list = slices.Clone(list)
	for i := range list {
		list[i].URL = withoutSecret(list[i].URL)
	}
	return list
}

func withoutSecret(text string) string { return bundle.HideSecret("", text) }

func (o *Options) addResources(ctx context.Context, d *api.Description) {
	found, err := o.listCloud(ctx)
	if err != nil {
		d.Notes = append(d.Notes, "reading the resources on AWS: "+err.Error())
	}

	for i := range found {
		r := &found[i]
		d.Resources = append(d.Resources, api.Resource{Kind: r.Kind, Name: r.Name, ARN: r.ARN, URL: r.URL, Owned: r.Owned,
			Note: r.Note})
		for j := range d.Queues {
			for q := &d.Queues[j]; q != nil; q = q.DeadLetterQueue {
				completeQueue(q, r)
			}
		}
	}

	if err == nil {
		d.Notes = append(d.Notes, missingNotes(d, o.Config, found)...)
	}
	d.Resources = append(d.Resources, sharedResources(&o.Config.Settings)...)
}

func completeQueue(q *api.DescribedQueue, r *cloud.Resource) {
	isSame := q.Name == r.Name || q.URL != "" && q.URL == r.URL
	if q.Backend != config.BackendSQS || !isSame {
		return
	}
	q.ARN = cmp.Or(q.ARN, r.ARN)
	q.URL = cmp.Or(q.URL, r.URL)
	if r.Attributes != nil {
		q.Attributes = r.Attributes
	}
}

func (o *Options) listCloud(ctx context.Context) ([]cloud.Resource, error) {
	if o.QueuesOnly {
		return nil, nil
	}
	inventory, err := cloud.Open(ctx, &cloud.Environment{Config: o.Config, SDK: o.aws().Log})
	if err != nil {
		return nil, err
	}
	defer inventory.Close()
	return inventory.List(ctx)
}

func missingNotes(d *api.Description, cfg *config.Config, found []cloud.Resource) (notes []string) {
	exists := func(name string) bool {
		return slices.ContainsFunc(found, func(r cloud.Resource) bool { return r.Name == name })
	}

	for i := range d.Queues {
		if q := &d.Queues[i]; q.Backend == config.BackendSQS && !exists(q.Name) {
			note := "queue " + q.Name + " does not exist"
			if dead := q.DeadLetterQueue; dead != nil {
				note += ": 'tendril up' creates it, with " + dead.Name
			}
			notes = append(notes, note)
		}
	}

	if table := cfg.RegistryTable; table != "" && cfg.Backend == config.BackendSQS && !exists(table) {
		note := "table " + table + " does not exist in DynamoDB"
		if cfg.RegistryCreate {
			note += ": 'tendril up' creates it for periodic tasks"
		}
		notes = append(notes, note)
	}
	return notes
}

func sharedResources(s *config.Settings) []api.Resource {
	const notCreated, metrics = "not created by tendril", "metrics are sent to it"
	var all []api.Resource
	add := func(kind, name, note string) {
		if r := (api.Resource{Kind: kind, Name: name, Region: s.Region, Note: note}); !slices.Contains(all, r) {
			all = append(all, r)
		}
	}

	for i := range s.Queues {
		if function := s.Queues[i].Function; function != "" {
			add(kindFunction, function, notCreated)
		}
	}
	if group, ok := strings.CutPrefix(s.ScaleTarget, config.ScaleGroup); ok {
		add(kindGroup, group, notCreated)
	}
	if s.ScaleTarget == config.ScalePublish {
		add(kindMetrics, loadNamespace(s), metrics)
	}
	if s.CloudWatch == config.On {
		add(kindMetrics, telemetry.NamespacePrefix+s.Name, metrics)
	}
	for _, bucket := range s.S3Payloads {
		add(kindBucket, bucket, notCreated)
	}
	if bucket, _ := s.VersionsBucket(); bucket != "" {
		add(kindArchives, s.Versions, "deployed archives are stored in it")
	}
	return all
}

func plannedScaling(cfg *config.Config) *api.Scaling {
	s := &cfg.Settings
	if s.ScaleTarget == config.ScaleNone {
		return nil
	}
	planned := &api.Scaling{Target: s.ScaleTarget, MinSize: s.ScaleMinSize, MaxSize: s.ScaleMaxSize}
	switch {
	case s.ScaleTarget == config.ScaleProcesses, s.ScaleTarget == config.ScaleAuto && !s.AnyOnSQS():
		planned.MinSize, planned.MaxSize = s.ProcessesMin, maxReplicas(s)
	case strings.HasPrefix(s.ScaleTarget, config.ScaleGroup):
		planned.MinSize, planned.MaxSize = groupBounds(cfg)
	}
	return planned
}

func groupBounds(cfg *config.Config) (least, most int) {
	least, most = cfg.ScaleMinSize, cfg.ScaleMaxSize
	if !cfg.IsSet("scale-min-size") {
		least = 1
	}
	if !cfg.IsSet("scale-max-size") {
		most = autoscale.MaxSize
	}
	return least, most
}

func electionText(s *config.Settings) string {
	switch {
	case s.Leader == config.LeaderLocal:
		return "none: this instance is declared the only one"
	case s.Backend == config.BackendEmbedded:
		return "lease in the embedded queue " + s.Queues[0].Name
	case s.RegistryTable != "":
		return "lease in the DynamoDB table " + s.RegistryTable
	}
	return "lease in the registry of the queue's server, if it has one"
}
