package config

// Load reads every source and returns the settings in force. The error is an [*Error] with every problem, even in
// overridden values.
func Load(src Sources) (*Config, error) {
	l := newLoader(src)

	readBundle(l)
	readSettingsFile(l)
	readRegistry(l)
	readEnvironment(l)
	readFlags(l)
	if len(l.refused.Problems) > 0 {
		return nil, l.refused
	}

	derive(l)
	if len(l.refused.Problems) > 0 {
		return nil, l.refused
	}

	warn(l)
	return l.cfg, nil
}
