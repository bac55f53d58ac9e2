package config

// Load reads every source and returns the values in force. The error is an [*Error] that holds everything wrong at
// once; a value counts as wrong also where a higher layer overrides it. Nothing is created or changed on disk.
func Load(src Sources) (*Config, error) {
	l := newLoader(src)

	readBundle(l)
	readSettingsFile(l)
	readEnvironment(l)
	readFlags(l)
	if len(l.refused.Problems) > 0 {
		return nil, l.refused // a derived value would report the same mistake again
	}

	derive(l)
	if len(l.refused.Problems) > 0 {
		return nil, l.refused
	}

	warn(l)
	return l.cfg, nil
}

func readFlags(l *loader) {
	for _, o := range l.rows {
		given := ""
		for _, name := range append([]string{o.Name}, o.Aliases...) {
			text, set := l.src.Flags[name]
			switch {
			case !set:
			case given == "":
				given = name
				l.assign(assignment{option: o, origin: Origin{fromFlag, "--" + name}, name: name, text: text})
			case text != l.src.Flags[given]:
				l.refuseAt("--"+name, o.Name, "give only one of them",
					"this is the same option as --%s, but the value differs", given)
			}
		}
	}
}
