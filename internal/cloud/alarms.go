package cloud

import (
	"context"
	"errors"
	"fmt"

	"tendril/internal/aws"
	"tendril/internal/cloud/alarms"
	"tendril/queue"
)

type alarmSource struct {
	cloudWatch  *aws.CloudWatch
	environment string
}

func (s *alarmSource) close() { s.cloudWatch.Close() }

// list returns the environment's alarms and dashboard. It includes foreign resources with the environment's names,
// and adds a note to them.
func (s *alarmSource) list(ctx context.Context) (all []Resource, err error) {
	found, err := alarms.Find(ctx, s.cloudWatch, s.environment)
	if errors.Is(err, queue.ErrDenied) {
		return []Resource{{Kind: kindAlarm, Name: "any", Note: "may not be read: " + err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}

	const foreign = "not created by 'tendril alarms apply'"
	for i := range found.Alarms {
		all = append(all, Resource{Kind: kindAlarm, Name: found.Alarms[i].Name, ARN: found.Alarms[i].ARN, Owned: true})
	}
	for i := range found.Foreign {
		all = append(all, Resource{Kind: kindAlarm, Name: found.Foreign[i].Name, ARN: found.Foreign[i].ARN, Note: foreign})
	}

	dashboard := alarms.DashboardName(s.environment)
	switch {
	case found.ForeignDashboard:
		all = append(all, Resource{Kind: kindDashboard, Name: dashboard, Note: foreign})
	case found.Dashboard != "":
		all = append(all, Resource{Kind: kindDashboard, Name: dashboard, Owned: true})
	}
	return all, nil
}

func (s *alarmSource) shared(context.Context, []Resource) error { return nil }

func (s *alarmSource) remove(ctx context.Context, r *Resource) (mine bool, err error) {
	switch r.Kind {
	case kindAlarm:
		tags, err := s.cloudWatch.AlarmTags(ctx, r.ARN)
		if err == nil && aws.OwnerOf(tags) != s.environment {
			err = fmt.Errorf("%s %s was %w", r.Kind, r.Name, ErrNotOwned)
		}
		if err != nil {
			return true, err
		}
		return true, s.cloudWatch.DeleteAlarms(ctx, []string{r.Name})
	case kindDashboard:
		found, err := alarms.Find(ctx, s.cloudWatch, s.environment)
		switch {
		case err != nil:
			return true, err
		case found.ForeignDashboard:
			return true, fmt.Errorf("%s %s was %w", r.Kind, r.Name, ErrNotOwned)
		case found.Dashboard == "":
			return true, queue.Errorf(queue.CodeResourceNotFound, "dashboard %s does not exist", r.Name)
		}
		return true, s.cloudWatch.DeleteDashboard(ctx, r.Name)
	}
	return false, nil
}
