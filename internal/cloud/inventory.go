package cloud

import (
	"context"
	"errors"
	"fmt"

	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/queue"
)

// The kinds of resources.
const (
	kindQueue           = "queue"
	kindDeadLetterQueue = "dead-letter queue"
	kindTable           = "registry table"
	kindAlarm           = "alarm"
	kindDashboard       = "dashboard"
)

// Resource is one resource on AWS that an environment uses.
type Resource struct {
	// Kind is one of the kinds above, Name what the resource is called there.
	Kind string `json:"kind"`
	Name string `json:"name"`
	ARN  string `json:"arn,omitempty"`
	// URL is a queue's URL; "" for other kinds.
	URL string `json:"url,omitempty"`
	// Owned tells that the resource was created for this environment, by its tag: terminate deletes it.
	Owned bool `json:"owned"`
	// Note says why Owned is false, or what could not be read; "" for nothing.
	Note string `json:"note,omitempty"`
	// Messages is the approximate number of a queue's messages, Items that of a table's items; nil when
	// unknown, and for other kinds.
	Messages *int64 `json:"messages,omitempty"`
	Items    *int64 `json:"items,omitempty"`
	// Attributes are the attributes of a queue under their SQS names; nil when unknown.
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Environment is what an [Inventory] is about.
type Environment struct {
	Config *config.Config
	// SDK receives what the AWS SDK logs; nil drops it.
	SDK aws.LogFunc
}

// aws are the options of a connection. A region that nobody set is left to the profile.
func (e *Environment) aws() *aws.Options {
	opts := &aws.Options{Log: e.SDK}
	if e.Config.IsSet("region") {
		opts.Region = e.Config.Region
	}
	return opts
}

// source finds and deletes the resources of one service.
type source interface {
	// list returns the resources that exist. What may not be read is noted in the resource.
	list(ctx context.Context) ([]Resource, error)
	// remove deletes a resource that list returned, and reports whether it is one of this source. It is
	// only called for a resource that is owned, and checks that again.
	remove(ctx context.Context, r *Resource) (mine bool, err error)
	// shared adds to owned resources what a deletion needs to know and list does not read.
	shared(ctx context.Context, found []Resource) error
	close()
}

// Inventory lists and deletes the resources of one environment on AWS.
type Inventory struct{ sources []source }

// Open reads the AWS configuration for the services that the settings use. It calls nobody. An
// environment that uses none has an empty inventory.
func Open(ctx context.Context, e *Environment) (*Inventory, error) {
	i := &Inventory{}
	s := &e.Config.Settings

	if s.CloudWatch == config.On {
		cloudWatch, err := aws.OpenCloudWatch(ctx, e.aws())
		if err != nil {
			return nil, err
		}
		i.sources = append(i.sources, &alarmSource{cloudWatch: cloudWatch, environment: s.Name})
	}

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

// Close drops the connections.
func (i *Inventory) Close() {
	for _, s := range i.sources {
		s.close()
	}
}

// List returns the resources that exist, in the order in which they would be deleted. One that may not be
// read is among them with a note; the error says that a service did not answer, or has no credentials.
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

// Plan is List for a termination: it also looks whether others use what this environment owns, and
// disowns that.
func (i *Inventory) Plan(ctx context.Context) ([]Resource, error) {
	all, err := i.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range i.sources {
		if err := s.shared(ctx, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Delete deletes a resource that [Inventory.Plan] returned as owned. The error wraps [ErrNotOwned] when
// its tag is gone, and is of queue.ErrNoQueue or queue.CodeResourceNotFound when the resource is.
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

// own settles whose a resource is, by its tags and the error of reading them. The error is one that ends
// the listing.
func (r *Resource) own(environment string, tags map[string]string, err error) error {
	switch owner := aws.OwnerOf(tags); {
	case errors.Is(err, queue.ErrDenied):
		r.Note = "tags may not be read: " + err.Error()
	case err != nil:
		return err
	case owner == environment:
		r.Owned = true
	case owner == "":
		r.Note = "not created by tendril"
	default:
		r.Note = fmt.Sprintf("belongs to the environment %q", owner)
	}
	return nil
}
