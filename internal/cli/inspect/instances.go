package inspect

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tendril/api"
	"tendril/internal/cli/base"
)

// NewScale returns the command 'tendril scale'.
func NewScale(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Show the desired size, and the last scaling decisions",
		Long: `Shows the desired number of replicas or instances, and the last decisions with their reasons, newest
first. If nothing is scaled, the decisions are advice for an external scaler.`,
		Args: cobra.NoArgs,
	}

	instance := base.AddInstance(cmd)
	base.Asks(c, cmd, func(ctx context.Context, client *api.Client, _ []string) (answer scaleAnswer, err error) {
		on, err := instance.Client(ctx, client)
		if err != nil {
			return answer, err
		}
		now, err := on.Scale(ctx)
		if err != nil {
			return answer, err
		}
		answer = scaleAnswer{environment: client.Instance.Environment, Backlog: now.Backlog, OldestSeconds: now.OldestSeconds,
			Desired: now.Desired}
		answer.ScaleDecisions, err = on.ScaleDecisions(ctx)
		return answer, err
	}, base.ViewOf(func(a scaleAnswer) error { return printScale(c, &a) },
		func(a scaleAnswer) []string { return []string{a.environment} }))
	return cmd
}

func printScale(c *base.CLI, a *scaleAnswer) error {
	what := "desired"
	if a.Advice {
		what = "advised; nothing is scaled"
	}
	c.Printf("%d %s, %s waiting\n", a.Desired, what, base.Plural(int(a.Backlog), "message"))
	if len(a.Decisions) == 0 {
		return nil
	}

	rows := base.Table{{"WHEN", "FROM", "TO", "RULE", "BACKLOG", "OLDEST", "BUSY", "CPU", "WHY"}}
	for i := range a.Decisions {
		d := &a.Decisions[i]
		why := d.Why
		if d.NotApplied != "" {
			why += "; not applied: " + d.NotApplied
		}
		row := []string{base.Since(d.Until) + " ago", strconv.Itoa(d.From), strconv.Itoa(d.Desired), d.Rule}
		row = append(row, inputTexts(d.Inputs)...)
		rows = append(rows, append(row, why))
	}
	return c.PrintTable(rows)
}

type scaleAnswer struct {
	environment   string
	Backlog       int64 `json:"backlog"`
	OldestSeconds int64 `json:"oldestSeconds"`
	Desired       int   `json:"desired"`
	api.ScaleDecisions
}

func inputTexts(in *api.ScaleInputs) []string {
	if in == nil {
		in = &api.ScaleInputs{}
	}
	return []string{figure(in.Backlog, ""), figure(in.OldestSeconds, "s"), figure(in.BusyPercent, "%"),
		figure(in.CPUPercent, "%")}
}

func figure(v *float64, unit string) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%s", *v, unit)
}

// NewInstances returns the command 'tendril instances'.
func NewInstances(c *base.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "instances",
		Short: "List the instances of the environment with health, load and leader",
		Long: `Lists the instances that share a registry, with the state, health and load that each reports at least once a
minute. Also lists the leader and the members of an Auto Scaling group. An instance that has not reported for 90 seconds
is unreachable. Without a shared registry only this instance and the leader are known.`,
		Args: cobra.NoArgs,
	}

	base.Asks(c, cmd, func(ctx context.Context, client *api.Client, _ []string) (api.Instances, error) {
		return client.Instances(ctx)
	}, base.ViewOf(func(all api.Instances) error {
		addUnappliedChanges(&all)
		if err := c.PrintTable(instanceList.Table(all.Instances)); err != nil {
			return err
		}
		for _, note := range all.Notes {
			c.PrintErrln(base.Plain(note))
		}
		return nil
	}, func(all api.Instances) []string { return base.Named(instanceList.Name)(all.Instances) }))
	return cmd
}

func addUnappliedChanges(all *api.Instances) {
	for i := range all.Instances {
		one := &all.Instances[i]
		if one.Revision > 0 && one.Revision < all.Revision {
			one.State += fmt.Sprintf(", behind: applied revision %d of %d", one.Revision, all.Revision)
		}
		if one.Rejected != "" {
			one.State += ", rejected settings: " + one.Rejected
		}
	}
}

var instanceList = base.List[api.KnownInstance]{
	Heading: []string{"INSTANCE", "STATE", "HEALTH", "LEADS", "IN FLIGHT", "CPU", "LONGEST", "APP", "VERSION", "STARTED",
		"KNOWN FROM"},
	Name: func(one *api.KnownInstance) string { return one.Name },
	Row: func(one *api.KnownInstance) []string {
		return []string{one.Name, instanceState(one), cmp.Or(one.Health, "-"), leadsText(one), inFlightText(one),
			figure(one.CPUPercent, "%"), base.KnownSeconds(float64(one.LongestSeconds)), cmp.Or(one.AppVersion, "-"),
			cmp.Or(one.Version, "-"), base.Since(one.StartedAt), sourceText(one)}
	},
}

func instanceState(one *api.KnownInstance) string {
	var words base.Words
	words.Add(one.State)
	words.AddIf(one.Unreachable, "unreachable")
	words.AddIf(one.NotAuthenticated, "not authenticated")
	words.AddIf(one.Deploying, "deploying")
	words.AddIf(len(one.PausedQueues) > 0, "paused: "+strings.Join(one.PausedQueues, " "))
	words.AddIf(one.Unhealthy, "unhealthy")
	words.AddIf(one.Protected != nil && *one.Protected, "protected")
	return cmp.Or(words.Join(", "), "-")
}

func leadsText(one *api.KnownInstance) string {
	if !one.Leads {
		return "-"
	}
	return fmt.Sprintf("term %d, seen %s ago", one.Term, base.Seconds(one.LeaseAgeSeconds))
}

func inFlightText(one *api.KnownInstance) string {
	if one.InFlight == nil {
		return "-"
	}
	if one.Slots > 0 {
		return fmt.Sprintf("%d of %d", *one.InFlight, one.Slots)
	}
	return strconv.Itoa(*one.InFlight)
}

func sourceText(one *api.KnownInstance) string {
	if one.Source != api.SourceRegistry {
		return one.Source
	}
	return fmt.Sprintf("%s, %s ago", one.Source, base.Seconds(one.RecordAgeSeconds))
}
