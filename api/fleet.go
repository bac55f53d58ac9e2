package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"tendril/internal/observe/eventlog"
)

const (
	maxAsked      = 50
	parallelAsked = 16
)

// FromInstance is an instance's answer to a query, or the error.
type FromInstance[T any] struct {
	Instance *KnownInstance
	Answer   T
	Err      error
}

// FromEach queries up to 50 instances through c's console. Further instances, and those with NoDetails, get an error.
func FromEach[T any](ctx context.Context, c *Client, all []KnownInstance, ask func(context.Context, *Client) (T, error)) []FromInstance[T] {
	answers := make([]FromInstance[T], len(all))
	var asking errgroup.Group
	asking.SetLimit(parallelAsked)
	for i := range all {
		a := &answers[i]
		a.Instance = &all[i]
		switch {
		case a.Instance.NoDetails != "":
			a.Err = errors.New(a.Instance.NoDetails)
		case i >= maxAsked:
			a.Err = fmt.Errorf("at most %d instances are read at once", maxAsked)
		default:
			asking.Go(func() error {
				a.Answer, a.Err = ask(ctx, c.On(a.Instance.ID))
				return nil
			})
		}
	}
	_ = asking.Wait()
	return answers
}

// Readable returns the instances with a record in the registry, whose IDs [Client.On] accepts.
func (all *Instances) Readable() []KnownInstance {
	return slices.DeleteFunc(slices.Clone(all.Instances), func(one KnownInstance) bool { return one.ID == "" })
}

// NewestEvents merges up to most events, newest first, and sets their Instance.
func NewestEvents(answers []FromInstance[[]eventlog.Event], most int) []eventlog.Event {
	return mergeNewest(answers, most, func(e *eventlog.Event) (at time.Time, instance *string) { return e.At, &e.Instance })
}

// NewestLines is like [NewestEvents] for log lines.
func NewestLines(answers []FromInstance[[]eventlog.Line], most int) []eventlog.Line {
	return mergeNewest(answers, most, func(l *eventlog.Line) (at time.Time, instance *string) { return l.At, &l.Instance })
}

func mergeNewest[E any](answers []FromInstance[[]E], most int, fieldsOf func(*E) (at time.Time, instance *string)) (all []E) {
	for _, a := range answers {
		for _, e := range a.Answer {
			_, instance := fieldsOf(&e)
			*instance = a.Instance.Name
			all = append(all, e)
		}
	}

	slices.SortStableFunc(all, func(a, b E) int {
		atA, _ := fieldsOf(&a)
		atB, _ := fieldsOf(&b)
		return atB.Compare(atA)
	})
	return all[:min(len(all), most)]
}
