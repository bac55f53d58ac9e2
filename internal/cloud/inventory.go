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

// A region in the settings takes precedence over the profile's.
func (e *Environment) aws() *aws.Options {
	opts := &aws.Options{Log: e.SDK}
	if e.Config.IsSet("region") {
		opts.Region = e.Config.Region
	}
	return opts
}

type source interface {
	// list adds a note to resources that cannot be read.
	list(ctx context.Context) ([]Resource, error)
	// remove deletes a resource after verifying again that the environment owns it. It returns mine=false if the
	// resource belongs to another source.
	remove(ctx context.Context, r *Resource) (mine bool, err error)
	// markShared marks resources that other environments also use as not owned.
	markShared(ctx context.Context, found []Resource) error
	close()
}

// Inventory lists and deletes an environment's AWS resources.
type Inventory struct{ sources []source }

// Open creates clients for the services that the settings use, if any.
func Open(ctx context.Context, e *Environment) (*Inventory, error) {
	i := &Inventory{}
	s := &e.Config.Settings

	if s.AnyOnSQS() {
		opts := e.aws()
		opts.Endpoint = s.EndpointURL
		sqs, err := aws.OpenSQS(ctx, opts)
		if err != nil {
			i.Close()
			return nil, err
		}
		i.sources = append(i.sources, &queues{sqs: sqs, settings: s})
	}

	if s.RegistryTable != "" && s.Queues[0].Backend == config.BackendSQS {
		table, err := aws.OpenTable(ctx, s.RegistryTable, &aws.Options{Region: s.Region, Log: e.SDK})
		if err != nil {
			i.Close()
			return nil, err
		}
		i.sources = append(i.sources, &registryTable{table: table, settings: s})
	}

	return i, nil
}

// Close closes idle connections.
func (i *Inventory) Close() {
	for _, s := range i.sources {
		s.close()
	}
}

// List returns the existing resources in deletion order, with a note on those that cannot be read.
func (i *Inventory) List(ctx context.Context) (all []Resource, err error) {
	for _, s := range i.sources {
		found, err := s.list(ctx)
		if err != nil {
			return all, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// Plan returns the resources for a termination. Unlike List, it treats resources shared with other environments as not
// owned.
func (i *Inventory) Plan(ctx context.Context) ([]Resource, error) {
	all, err := i.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range i.sources {
		if err := s.markShared(ctx, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Delete deletes an owned resource returned by [Inventory.Plan]. The error is [ErrNotOwned] if the resource has lost
// its tag. For a missing resource, it is queue.ErrNoQueue or has the code queue.CodeResourceNotFound.
func (i *Inventory) Delete(ctx context.Context, r *Resource) error {
	if !r.Owned {
		return fmt.Errorf("%s %s was %w", r.Kind, r.Name, ErrNotOwned)
	}
	for _, s := range i.sources {
		if mine, err := s.remove(ctx, r); mine {
			return err
		}
	}
	return fmt.Errorf("%s %s is of an unknown kind", r.Kind, r.Name)
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
