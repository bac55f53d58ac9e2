package cloud

import (
	"context"
	"fmt"

	"tendril/internal/aws"
	"tendril/internal/config"
)

const (
	kindQueue           = "queue"
	kindDeadLetterQueue = "dead-letter queue"
	kindTable           = "registry table"
)

// Resource is an AWS resource that an environment uses.
type Resource struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	ARN  string `json:"arn,omitempty"`
	// URL is set only for queues.
	URL string `json:"url,omitempty"`
	// Owned means that the tag names this environment, so terminate deletes the resource.
	Owned bool `json:"owned"`
	// Note explains why Owned is false or which details are missing.
	Note string `json:"note,omitempty"`
	// Messages and Items are the approximate numbers of a queue's messages and of a table's items; nil if unknown.
	Messages *int64 `json:"messages,omitempty"`
	Items    *int64 `json:"items,omitempty"`
	// Attributes contains a queue's attributes by their SQS names; nil if unknown.
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Environment is the environment whose resources an [Inventory] lists.
type Environment struct {
	Config *config.Config
	SDK    aws.LogFunc
}

// A region in the settings takes precedence over the AWS configuration's.
func (e *Environment) aws() *aws.Options {
	opts := &aws.Options{Log: e.SDK}
	if e.Config.IsSet("region") {
		opts.Region = e.Config.Region
	}
	return opts
}

// Inventory lists and deletes an environment's AWS resources.
type Inventory struct {
	settings *config.Settings
	sqs      *aws.SQS   // nil if no queue is on Amazon SQS
	table    *aws.Table // nil without a registry table
}

// Open creates clients for the services that the settings use, if any.
func Open(ctx context.Context, e *Environment) (i *Inventory, err error) {
	s := &e.Config.Settings
	i = &Inventory{settings: s}

	if s.AnyOnSQS() {
		opts := e.aws()
		opts.Endpoint = s.EndpointURL
		if i.sqs, err = aws.OpenSQS(ctx, opts); err != nil {
			return nil, err
		}
	}

	if s.RegistryTable != "" && s.Queues[0].Backend == config.BackendSQS {
		i.table, err = aws.OpenTable(ctx, s.RegistryTable, &aws.Options{Region: s.Region, Log: e.SDK})
		if err != nil {
			i.Close()
			return nil, err
		}
	}

	return i, nil
}

// Close closes idle connections.
func (i *Inventory) Close() {
	if i.sqs != nil {
		i.sqs.Close()
	}
	if i.table != nil {
		i.table.Close()
	}
}

// List returns the existing resources in deletion order, with a note on those that cannot be read.
func (i *Inventory) List(ctx context.Context) (all []Resource, err error) {
	if i.sqs != nil {
		if all, err = i.listQueues(ctx); err != nil {
			return all, err
		}
	}
	if i.table == nil {
		return all, nil
	}
	table, err := i.describeTable(ctx)
	if table != nil {
		all = append(all, *table)
	}
	return all, err
}

// Plan returns the resources for a termination. Unlike List, it treats a registry table shared with other environments
// as not owned.
func (i *Inventory) Plan(ctx context.Context) ([]Resource, error) {
	all, err := i.List(ctx)
	if err != nil {
		return nil, err
	}
	for n := range all {
		r := &all[n]
		if r.Kind != kindTable || !r.Owned {
			continue
		}
		if r.Note, err = i.noteSharedTable(ctx); err != nil {
			return nil, err
		}
		r.Owned = r.Note == ""
	}
	return all, nil
}

// Delete deletes an owned resource returned by [Inventory.Plan]. The error wraps [ErrNotOwned] if the resource is not
// owned or has lost its tag. For a missing resource, it is queue.ErrNoQueue or has the code
// queue.CodeResourceNotFound.
func (i *Inventory) Delete(ctx context.Context, r *Resource) error {
	tags, remove, err := i.prepareDelete(ctx, r)
	if err != nil {
		return err
	}
	if !r.Owned || aws.OwnerOf(tags) != i.settings.Name {
		return fmt.Errorf("%s %s was %w", r.Kind, r.Name, ErrNotOwned)
	}
	return remove(ctx)
}

func (i *Inventory) prepareDelete(ctx context.Context, r *Resource) (tags map[string]string,
	remove func(context.Context) error, err error) {
	if r.Kind == kindTable {
		info, err := i.table.Describe(ctx)
		return info.Tags, i.table.Delete, err
	}

	q, err := i.sqs.Queue(ctx, r.URL)
	if err != nil {
		return nil, nil, err
	}
	tags, err = q.Tags(ctx)
	return tags, q.DeleteQueue, err
}

const tagsDenied = "cannot read tags: "

func (r *Resource) setOwner(environment string, tags map[string]string) {
	switch owner := aws.OwnerOf(tags); owner {
	case environment:
		r.Owned = true
	case "":
		r.Note = "not created by tendril"
	default:
		r.Note = fmt.Sprintf("belongs to the environment %q", owner)
	}
}
