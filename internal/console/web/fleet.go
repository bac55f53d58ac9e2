package web

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/api"
)

type fleetView struct {
	All     []api.KnownInstance // this one first, unless it is starting or stopping
	Chosen  *api.KnownInstance  // nil for all
	Choices []choice
	Kept    url.Values // the page's query without instance and position
	Missing []string
}

func (f *fleetView) IDs() string {
	shown := f.All
	if f.Chosen != nil {
		shown = []api.KnownInstance{*f.Chosen}
	}
	var ids []string
	for _, one := range shown {
		if one.NoDetails == "" {
			ids = append(ids, one.ID)
		}
	}
	return strings.Join(ids, " ")
}

func (f *fleetView) Few() bool { return len(f.All) <= 8 }

func (v *visit) findFleet() error {
	if h := v.Status.Health; h == nil || !h.Environment.IsShared() || !v.Caller.May(api.ScopeRead) {
		return nil
	}
	known, err := v.api.Instances(v.ctx)
	if err != nil {
		return err
	}

	id, all := v.query("instance"), known.Readable()
	if len(all) < 2 && id == "" {
		return nil
	}
	f := &fleetView{All: all, Kept: v.r.URL.Query()}
	f.Kept.Del("instance")
	f.Kept.Del("after")

	var ids []string
	names := map[string]string{}
	for _, one := range all {
		ids = append(ids, one.ID)
		names[one.ID] = one.Name
		if one.This {
			names[one.ID] += ", this one"
		}
	}
	f.Choices = v.choices("instance", "All instances", ids, func(id string) string { return names[id] })
	f.choose(id)
	v.Fleet = f
	return nil
}

func (f *fleetView) choose(id string) {
	if id == "" {
		return
	}
	if i := slices.IndexFunc(f.All, func(one api.KnownInstance) bool { return one.ID == id }); i >= 0 {
		f.Chosen = &f.All[i]
		return
	}
	f.Chosen = &api.KnownInstance{ID: id, Name: "Instance " + id, NoDetails: "not found; it may have stopped or restarted"}
}

// shown returns the instances on the page, at least one. The ID is "" if this is the only one.
func (v *visit) shown() []api.KnownInstance {
	switch {
	case v.Fleet == nil:
		return []api.KnownInstance{{This: true}}
	case v.Fleet.Chosen != nil:
		return []api.KnownInstance{*v.Fleet.Chosen}
	}
	return v.Fleet.All
}

func fromEach[T any](v *visit, ask func(context.Context, *api.Client) (T, error)) ([]api.FromInstance[T], error) {
	return fromInstances(v, v.shown(), ask)
}

// fromInstances omits instances of a fleet that do not respond. Each only adds a line to the page.
func fromInstances[T any](v *visit, instances []api.KnownInstance,
	ask func(context.Context, *api.Client) (T, error)) ([]api.FromInstance[T], error) {
	answers := api.FromEach(v.ctx, v.api, instances, ask)
	if v.Fleet == nil {
		return answers, answers[0].Err
	}

	var answered []api.FromInstance[T]
	for _, a := range answers {
		if a.Err != nil {
			v.Fleet.addMissing(a.Instance.Name + ": " + refusalOf(a.Err).Message)
			continue
		}
		answered = append(answered, a)
	}
	return answered, nil
}

func (f *fleetView) addMissing(line string) {
	if !slices.Contains(f.Missing, line) {
		f.Missing = append(f.Missing, line)
	}
}

// fromOne returns the zero value if an instance of a fleet does not respond.
func fromOne[T any](v *visit, instance api.KnownInstance, ask func(context.Context, *api.Client) (T, error)) (answer T, err error) {
	answers, err := fromInstances(v, []api.KnownInstance{instance}, ask)
	if len(answers) > 0 {
		answer = answers[0].Answer
	}
	return answer, err
}

func (v *visit) subject() api.KnownInstance { return v.shown()[0] }

func (v *visit) subjectStatus() (api.Status, error) {
	if subject := v.subject(); !subject.This {
		return fromOne(v, subject, readStatus)
	}
	return v.Status, nil
}

func (v *visit) statuses() ([]api.FromInstance[api.Status], error) {
	if v.Fleet == nil {
		return []api.FromInstance[api.Status]{{Instance: &api.KnownInstance{This: true}, Answer: v.Status}}, nil
	}
	return fromEach(v, readStatus)
}

func readStatus(ctx context.Context, c *api.Client) (api.Status, error) { return c.Status(ctx) }

// A page of rows starts before an ID, or before a time if the rows come from several instances.
type position struct {
	before int64
	until  time.Time
}

func (v *visit) position() (at position, err error) {
	text := v.query("after")
	if text == "" {
		return at, nil
	}
	kind := "a time"
	if v.Fleet == nil {
		kind = "an ID"
		at.before, err = strconv.ParseInt(text, 10, 64)
	} else {
		at.until, err = time.Parse(time.RFC3339Nano, text)
	}
	if err != nil {
		err = api.BadRequest("after "+strconv.Quote(text)+" is not "+kind, "go to the first page")
	}
	return at, err
}

func (v *visit) positionOf(id int64, at time.Time) string {
	if v.Fleet == nil {
		return strconv.FormatInt(id, 10)
	}
	return at.UTC().Format(time.RFC3339Nano)
}

func rowID(prefix, instance string, id int64) string {
	return prefix + strings.ReplaceAll(instance, " ", "") + "-" + strconv.FormatInt(id, 10)
}

func (v *visit) deploysEverywhere() bool {
	return v.Fleet != nil && slices.ContainsFunc(v.Fleet.All, func(one api.KnownInstance) bool { return one.This && one.TakesVersions })
}
