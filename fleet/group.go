package fleet

import (
	"context"

	"tendril/aws"
)

// Group is an Auto Scaling group as something that package autoscale can size, within the
// group's own bounds. Its methods are for one goroutine.
type Group struct {
	*aws.Group
	least, most int
}

// Size returns how many instances are in service, and how many the group wants.
func (g *Group) Size(ctx context.Context) (current, desired int, err error) {
	s, err := g.Describe(ctx)
	if err == nil {
		g.least, g.most = s.Min, s.Max
	}
	return s.InService(), s.Desired, err
}

// Bounds returns the group's bounds as of the last [Group.Size].
func (g *Group) Bounds() (least, most int) { return g.least, g.most }
