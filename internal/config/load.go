package config

import (
	"fmt"
)

// Load reads every source and returns the values in force. The error is an [*Error] that holds everything wrong at
// once; a value counts as wrong also where a higher layer overrides it. Nothing is created or changed on disk.
func Load(src Sources) (*Config, error) {
	l := newLoader(src)
	bundleReader{l.all}.readBundle()
	fileReader{l.all}.readFile()
	l.readEnvironment()
	l.readFlags()
	if len(l.problems) == 0 {
		deriver{l.all}.derive() // from values that are right, lest one mistake be told twice
	}
	if len(l.problems) > 0 {
		return nil, &Error{Problems: l.problems}
	}
	warner{l.all}.warn()
	return l.cfg, nil
}

func newLoader(src Sources) *loader {
	l := &loader{
		src:  src,
		vars: src.variables(),
		cfg:  &Config{options: Options(), chains: map[string][]Setting{}, idle: map[string]bool{}},
	}
	l.all = &view{loader: l, s: &l.cfg.Settings}
	for i := range l.cfg.options {
		o := &l.cfg.options[i]
		if o.Default != "" {
			if err := o.set(&l.cfg.Settings, o.Default); err != nil {
				l.refuse(Problem{Option: o.Name, Text: fmt.Sprintf("the default %s %v", o.Default, err)})
			}
		}
		l.record(o.Name, Origin{})
	}
	return l
}

func (l *loader) readFlags() {
	for i := range l.cfg.options {
		o := &l.cfg.options[i]
		given := ""
		for _, name := range append([]string{o.Name}, o.Aliases...) {
			text, set := l.src.Flags[name]
			switch {
			case !set:
			case given == "":
				given = name
				l.assign(assignment{option: o, origin: Origin{fromFlag, "--" + name}, name: name, text: text})
			case text != l.src.Flags[given]:
				l.refuse(Problem{Where: "--" + name, Option: o.Name,
					Text: fmt.Sprintf("this is the same option as --%s, but the value differs", given), Hint: "give only one of them"})
			}
		}
	}
}
