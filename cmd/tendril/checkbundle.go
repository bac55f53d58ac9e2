package main

import (
	"fmt"
	"slices"

	"tendril/bundle"
	"tendril/config"
	"tendril/environment"
)

// checkBundle prints what is in a bundle: the steps of a deployment in their
// order, what it sets, and what is left aside. A command runs in the place of the
// bundle's own processes.
func (c *cli) checkBundle(opts *environment.Options) error {
	cfg, b := opts.Config, opts.Bundle
	if b == nil {
		return nil
	}
	for _, w := range slices.Concat(b.Warnings, opts.MissingPrograms()) {
		c.printWarning(w.String(), w.Hint)
	}
	if len(opts.Command) == 0 && len(b.Processes) > 0 {
		for _, step := range b.Plan() {
			fmt.Fprintln(c.out, stepLine(step))
		}
	}
	if err := c.checkSettings(cfg, b); err != nil {
		return err
	}
	for _, p := range b.Environment() {
		if opts.Withheld(p) == "" {
			s, _ := b.Setting(bundle.NamespaceEnvironment, p.Name)
			fmt.Fprintf(c.out, "property %s=%s (%s)\n", plain(s.Option, false), plain(c.shownSetting(s), false), c.setBy(s))
		}
	}
	for _, l := range b.Links {
		if queue := opts.LinkedQueue(l); queue != "" {
			fmt.Fprintf(c.out, "link     %s to the queue %s (%s)\n", plain(l.Variable, false), plain(queue, false),
				position(l.File, l.Line))
		}
	}
	for _, f := range environment.Aside(opts) {
		fmt.Fprintf(c.out, "aside    %s\n", plain(f.String(), false))
	}
	return nil
}

// stepLine is one step of a deployment. Processes stay, so that they have a word
// of their own.
func stepLine(s bundle.Step) string {
	if s.Phase == bundle.PhaseStart {
		return fmt.Sprintf("process  %s: %s", s.Name, plain(s.Shell, false))
	}
	if s.Shell != "" {
		return fmt.Sprintf("%-8s %s: %s (%s)", s.Phase, s.Name, plain(s.Shell, false), position(s.File, s.Line))
	}
	return "hook     " + plain(s.Name, false)
}

// checkSettings prints the options whose value in force is one of the bundle's
// settings; a name that is the folder's is none.
func (c *cli) checkSettings(cfg *config.Config, b *bundle.Bundle) error {
	for _, o := range config.Options() {
		from := cfg.Origin(o.Name)
		if from.Layer != config.FromBundle || from.Where == b.Dir || cfg.Idle(o.Name) {
			continue
		}
		e, err := cfg.Explain(o.Name)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "setting  %s = %s (%s)\n", o.Name, plain(e.Value, false), plain(from.Where, false))
	}
	return nil
}

// position is a place in a file; line 0 is the file as a whole.
func position(file string, line int) string {
	if line == 0 {
		return plain(file, false)
	}
	return fmt.Sprintf("%s:%d", plain(file, false), line)
}
